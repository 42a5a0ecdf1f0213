"""The harness that injects faults: a few of them, and that it notices what it is there to notice."""

import pytest

from tests.faults import histories
from tests.faults.outcomes import Stage
from tests.faults.registry import all_faults
from tests.faults.staging import fork_server

CHEAP = {
    "SIGTERM within a batch / best-mean / sqlite",
    "its texts' campaign is pruned within a round / best-mean / sqlite",
    "an engine's message is of the wrong kind / workers / sqlite",
}


@pytest.fixture(scope="module")
def stage(prefect_api, tmp_path_factory):
    return Stage(fork_server(), tmp_path_factory.mktemp("faults"), None)


@pytest.mark.parametrize("fault", [each for each in all_faults() if each.key in CHEAP], ids=lambda f: f.key)
def test_a_campaign_that_met_a_fault_ends_as_one_that_did_not(stage, fault):
    row = stage.outcome(fault)
    assert row.wrong == []
    assert row.same_decision
    assert (row.lost, row.doubled) == (0, 0)


def test_the_names_of_faults_tell_them_apart_and_there_are_enough():
    faults = all_faults()
    assert len({each.key for each in faults}) == len(faults)
    assert len({each.name for each in faults}) >= 25
    assert {each.kind for each in faults} >= {"best-mean", "best-duel", "certify", "route"}


def test_rows_that_are_lost_or_doubled_are_noticed(stage):
    reference = stage.reference("best-mean")
    found = {table: rows.copy() for table, rows in reference.items()}
    (lost,) = list(found["comparisons"])[:1]
    del found["comparisons"][lost]
    assert (histories.lost(found, reference), histories.doubled(found, reference)) == (1, 0)
    (twice,) = list(found["generations"])[:1]
    found["generations"][twice] += 1
    assert (histories.lost(found, reference), histories.doubled(found, reference)) == (1, 1)

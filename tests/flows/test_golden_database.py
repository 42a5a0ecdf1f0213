"""A database that an earlier Winnow made goes on as it began: the same texts, comparisons and decisions."""

import json

import pytest
from faulty_server import faulty_server
from test_command_line import winnow

from tests.golden_database.campaigns import CAMPAIGNS, DATABASE, OUTCOMES, outcome, unpack
from winnow.tasks.engines.providers import PROVIDERS

STORAGE = ("--storage", f"sqlite:///{DATABASE}")
EXPECTED = json.loads(OUTCOMES.read_text())


@pytest.fixture(scope="module")
def gone_on(plain_runs, tmp_path_factory):
    """The folder, and what each campaign said when it was opened, resumed and reported; by its name."""
    folder = tmp_path_factory.mktemp("golden")
    unpack(folder)
    left = {name: outcome(folder / DATABASE, name) for name in CAMPAIGNS}
    before = {name: winnow(folder, "report", name, *STORAGE) for name in CAMPAIGNS}
    checked = winnow(folder, "db", "check", *STORAGE)
    with pytest.MonkeyPatch.context() as patch, faulty_server() as server:
        patch.setitem(PROVIDERS, "digest", "tests.faults.digest_engine:start")
        resumed = {
            name: winnow(folder, "resume", name, *STORAGE, "--trust", *golden.options_at(server.url))
            for name, golden in CAMPAIGNS.items()
        }
    return folder, left, before, checked, resumed


def test_it_opens_and_is_sound(gone_on):
    folder, _, _, checked, _ = gone_on
    assert checked.returncode == 0, checked.stdout + checked.stderr
    listed = json.loads(winnow(folder, "status", *STORAGE, "--json").stdout)
    assert {each["name"] for each in listed} == set(CAMPAIGNS)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_each_campaign_goes_on_to_what_the_earlier_winnow_came_to(gone_on, name):
    folder, left, before, _, resumed = gone_on
    assert left[name] == EXPECTED[name]["left"]
    assert before[name].returncode in (0, 3), before[name].stderr
    assert before[name].stdout.startswith(name)
    assert resumed[name].returncode in (0, 3), resumed[name].stderr
    found = outcome(folder / DATABASE, name)
    assert found["comparisons"] == EXPECTED[name]["ended"]["comparisons"]
    expected = EXPECTED[name]["ended"]["decisions"]
    assert [_exact(row) for row in found["decisions"]] == [_exact(row) for row in expected]
    for row, as_before in zip(found["decisions"], expected, strict=True):
        assert _numbers(row) == pytest.approx(_numbers(as_before), rel=1e-4)


def test_it_is_sound_when_all_have_gone_on_and_each_is_reported(gone_on):
    folder, _, _, _, _ = gone_on
    checked = winnow(folder, "db", "check", *STORAGE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    for name in CAMPAIGNS:
        reported = winnow(folder, "report", name, *STORAGE)
        assert reported.returncode in (0, 3), reported.stderr
        assert reported.stdout.startswith(name)


def _exact(row):
    return [None if isinstance(each, float) else each for each in row]


def _numbers(row):
    return [each for each in row if isinstance(each, float)]

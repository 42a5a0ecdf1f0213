"""Readers of a campaign that runs: none sees half a round, and the writer waits for none of them."""

import threading
from contextlib import closing
from itertools import pairwise

import pytest
from stored_campaigns import NOW, StoredCampaign
from waiting import PATIENCE_S, until

from winnow.storage.engine import statements
from winnow.storage.engine.database import open_database
from winnow.storage.queries import campaign_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import datasets as dataset_records
from winnow.storage.records.record_types import NewCandidate, NewExample
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import campaign_status

ROUNDS, CANDIDATES, READERS = 30, 4, 3

COUNTS = {
    "comparisons": "SELECT count(*) FROM comparisons",
    "candidate_stats": "SELECT coalesce(sum(comparisons), 0) FROM candidate_stats",
    "decisions": "SELECT coalesce(sum(comparisons), 0) FROM decisions",
    "decided rounds": f"SELECT {CANDIDATES} * count(*) FROM decisions",
    "v_comparisons": "SELECT count(*) FROM v_comparisons",
    "v_coverage": "SELECT coalesce(sum(comparisons), 0) FROM v_coverage",
    "v_leaderboard": "SELECT coalesce(sum(scored + unscored), 0) FROM v_leaderboard",
    "v_curve": "SELECT coalesce(max(comparisons), 0) FROM v_curve",
}
"""Ways to count the comparisons of all finished rounds in SQL."""


@pytest.fixture
def wide(database):
    """A campaign with one example for every round; each round asks all candidates."""
    with database.writing() as session:
        examples = [NewExample(key=f"e{i}", fields={"input": str(i)}, targets=["x"]) for i in range(ROUNDS)]
        dataset_id = dataset_records.ensure_dataset(
            session, fingerprint="w" * 64, name="wide", path="wide.jsonl", examples=examples, now=NOW
        )
        candidates = [NewCandidate(name=f"c{i}", model={}, prompt={}, sampling={}) for i in range(CANDIDATES)]
        record = campaign_records.add_campaign(
            session, name="wide", objective="best-mean", dataset_id=dataset_id, seed=7,
            spec={"stopping": {"delta": 0.05, "epsilon": 0.0}, "selector": {"name": "ucb-e", "params": {}}},
            execution={"budget": 1000}, versions={},
            candidates=candidates, now=NOW,
        )  # fmt: skip
        return StoredCampaign(
            database=database,
            record=record,
            candidate_ids=campaign_records.candidate_ids(session, record.id),
            example_ids=dataset_records.example_ids(session, dataset_id),
        )


def counts(session, campaign_id):
    """How many comparisons there are, by everything that says so."""
    status = campaign_status(Look(session, campaign_records.get_campaign(session, "wide")))
    board = campaign_views.leaderboard(session, campaign_id)
    return {
        "status": status.totals["comparisons"],
        "leaderboard": sum(row["scored"] + row["unscored"] for row in board),
        "comparisons view": len(list(campaign_views.comparisons(session, campaign_id))),
        "curve": max(
            (int(row["comparisons"]) for row in campaign_views.curve(session, campaign_id)), default=0
        ),
        "rounds": sum(row["comparisons"] or 0 for row in campaign_views.rounds(session, campaign_id)),
        **{name: int(next(statements.run_sql(session, each)[1])[0]) for name, each in COUNTS.items()},
    }


def count_on(url, campaign_id, ended, seen):
    """Count again and again, each time in one session, and once more when the writer has ended."""
    with closing(open_database(url, read_only=True)) as database:
        is_last = False
        while not is_last:
            is_last = ended.is_set()
            with database.reading() as session:
                seen.append(counts(session, campaign_id))


def test_readers_see_whole_rounds_only_and_no_writer_fails_because_of_them(wide):
    ended, seen = threading.Event(), [[] for _ in range(READERS)]
    url = wide.database.url
    readers = [
        threading.Thread(target=count_on, args=(url, wide.record.id, ended, each), daemon=True)
        for each in seen
    ]
    for reader in readers:
        reader.start()
    try:
        for number in range(ROUNDS):
            round_ = wide.plan(number, list(range(CANDIDATES)), [number] * CANDIDATES)
            if number % 5 == 0:  # a writer that never waits may end before anybody has read
                looks = sum(map(len, seen))
                until(lambda looks=looks: sum(map(len, seen)) > looks or not readers[0].is_alive())
            wide.finish(round_, [1.0, 0.0, 0.5, None], best=0)
    finally:
        ended.set()
        for reader in readers:
            reader.join(PATIENCE_S)
    for one in seen:
        assert [found for found in one if len(set(found.values())) > 1] == []
        totals = [found["comparisons"] for found in one]
        assert totals[-1] == ROUNDS * CANDIDATES
        assert {total % CANDIDATES for total in totals} == {0}
        assert all(before <= after for before, after in pairwise(totals))
    assert len({found["comparisons"] for one in seen for found in one}) > 3, (
        "nobody read while it was written"
    )

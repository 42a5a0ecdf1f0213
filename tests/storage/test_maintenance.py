"""A sound database has no problems; a broken one names them."""

import sqlite3

import pytest
from sqlalchemy import text
from stored_campaigns import all_parts, store_campaign

from winnow.storage.admin import check, maintenance


def problems(database):
    """All problems but that a digest does not fit, which the tests of digests are about."""
    with database.reading() as session:
        return [each for each in check.problems(session) if "is not as it was stored" not in each]


def break_it(database, statement):
    """As a hand with another tool would: without our foreign keys."""
    if database.is_postgresql:
        with database.writing() as session:
            session.execute(text(statement))
        return
    with sqlite3.connect(database.url.removeprefix("sqlite:///")) as connection:
        connection.execute(statement)
    connection.close()


def test_a_finished_and_a_planned_round_are_sound(campaign):
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, None])
    campaign.plan(1, [2], [0])
    assert problems(campaign.database) == []


def test_a_decided_round_that_lacks_a_comparison_is_named(campaign):
    campaign.finish(campaign.plan(0, [0, 1], [0, 0]), [1.0, None])
    break_it(campaign.database, "DELETE FROM comparisons WHERE position = 1")
    assert problems(campaign.database) == [
        f"round 1 of campaign {campaign.record.id} was planned with 2 comparisons and decided with 1",
        f"the stats of candidate {campaign.candidate_ids[1]} differ from the sums of its comparisons",
        f"the paid outputs of campaign {campaign.record.id} differ from the sums of its rounds",
    ]


BELIEVED = {"estimates": [0.5, 0.25, None], **all_parts([1, 2, 3])}


@pytest.mark.parametrize("table", ["standings", "rankings", "differences", "bets"])
def test_a_round_that_lacks_what_it_changed_is_named(campaign, table):
    for number in range(2):
        campaign.finish(campaign.plan(number, [number], [0]), [1.0], best=0, **BELIEVED)
    assert problems(campaign.database) == []
    break_it(campaign.database, f"DELETE FROM {table} WHERE candidate_id = {campaign.candidate_ids[1]}")
    assert problems(campaign.database) == [
        f"round 1 of campaign {campaign.record.id} changed 12 rows of its candidates, and "
        "11 are stored: this decision and later ones cannot be read back"
    ]


def test_what_is_known_after_a_round_that_was_not_told_is_named(campaign):
    campaign.finish(campaign.plan(0, [0], [0]), [1.0], best=0, **BELIEVED)
    planned = campaign.plan(1, [1], [0])
    break_it(
        campaign.database,
        "INSERT INTO standings (candidate_id, round_id, status) "
        f"VALUES ({campaign.candidate_ids[2]}, {planned.id}, 'active')",
    )
    [found] = problems(campaign.database)
    assert found.startswith(f"round 2 of campaign {campaign.record.id} changed 0 rows")


@pytest.mark.parametrize("changed", ["estimate = 0.75", "lower = 0.25", "upper = NULL"])
def test_a_decision_whose_best_candidate_stands_otherwise_is_named(campaign, changed):
    ends = {"lower": [0.0, 0.0, None], "upper": [1.0, 1.0, None]}
    for number in range(2):
        campaign.finish(campaign.plan(number, [number], [0]), [1.0], best=0, **{**BELIEVED, **ends})
    assert problems(campaign.database) == []
    break_it(
        campaign.database,
        f"UPDATE standings SET {changed} WHERE candidate_id = {campaign.candidate_ids[0]}",
    )
    assert problems(campaign.database) == [
        f"the decision of round {number} of campaign {campaign.record.id} and the stored status of "
        "its best candidate have different values"
        for number in (1, 2)
    ]


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_a_row_that_refers_to_nothing_is_named(campaign):
    campaign.finish(campaign.plan(0, [0], [0]), [1.0])
    break_it(campaign.database, "DELETE FROM generations")
    assert problems(campaign.database)[:1] == ["a row of comparisons refers to a missing row of generations"]


def test_tables_are_counted_in_the_order_the_data_flows(campaign):
    store_campaign(campaign.database, "other")
    with campaign.database.reading() as session:
        sizes = {row["table"]: row["rows"] for row in maintenance.table_sizes(session)}
        size = maintenance.size_in_bytes(session)
    assert [sizes[name] for name in ("datasets", "examples", "campaigns", "candidates", "rounds")] == [
        1,
        5,
        2,
        6,
        0,
    ]
    assert list(sizes).index("datasets") < list(sizes).index("examples") < list(sizes).index("comparisons")
    assert size >= 4096

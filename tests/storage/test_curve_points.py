"""The curve that a figure shows: the rows of the curve, of very many of them some, each read once."""

import pytest
from sqlalchemy import event
from stored_campaigns import store_campaign

from winnow.storage.queries.campaign_views import curve
from winnow.storage.queries.curve_points import CurvePoints


def tell(campaign, leaders, start=0):
    """Rounds of one comparison each, after which these lead, by position; None where nobody does."""
    for number, best in enumerate(leaders, start):
        told = {} if best is None else {"estimates": [0.5, 0.25, None]}
        campaign.finish(campaign.plan(number, [number % 3], [number // 3]), [1.0], best=best, **told)


def seen(campaign, points):
    with campaign.database.reading() as session:
        return points.look(session, campaign.record.id)


def rows(campaign):
    with campaign.database.reading() as session:
        return list(curve(session, campaign.record.id))


@pytest.fixture
def long(database):
    return store_campaign(database, n_examples=20)


def test_few_rounds_are_the_rows_of_the_curve(long):
    points = CurvePoints(most=10, changes=10)
    assert seen(long, points) == []
    tell(long, [0, None, 1])
    long.plan(3, [1], [2])  # is not told yet
    assert [(row["comparisons"], row["best"]) for row in rows(long)] == [(1, "a"), (2, None), (3, "b")]
    assert seen(long, points) == seen(long, points) == rows(long)


def test_a_later_look_reads_the_rounds_since_and_shows_what_a_first_one_would(long):
    points, read = CurvePoints(most=6, changes=2), []
    event.listen(long.database.engine, "before_cursor_execute", lambda *asked: read.append(asked))
    for start, leaders in ((0, [0, 0, 1]), (3, []), (3, [0]), (4, [1, 1, None, 1, 1, 0, 0, 0, 0, 0])):
        tell(long, leaders, start)
        assert seen(long, points) == seen(long, CurvePoints(most=6, changes=2))
    found = [row["round"] for row in seen(long, points)]
    # Every fourth of 14 rounds, the last two changes of the lead, and the last round.
    assert found == [0, 4, 7, 8, 9, 12, 13]
    assert [row for row in rows(long) if row["round"] in found] == seen(long, points)


def test_another_campaign_or_another_past_is_read_from_the_start(long):
    points = CurvePoints(most=10, changes=10)
    tell(long, [0, 1, 1])
    other = store_campaign(long.database, "other")
    tell(other, [1])
    assert seen(long, points) == rows(long)
    assert seen(other, points) == rows(other)
    assert seen(long, points) == rows(long)
    with long.database.writing() as session:
        session.connection().exec_driver_sql("UPDATE decisions SET best_estimate = 0.125")
    assert seen(long, points) == rows(long)
    assert rows(long)[0]["estimate"] == 0.125

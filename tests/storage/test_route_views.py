"""Chosen candidates for which prompts, counted by hand."""

import pytest
from sqlalchemy import update
from stored_campaigns import store_campaign

from winnow.storage.models import Example
from winnow.storage.queries.objective import route as route_views

TYPES = ["sum", "sum", "word", "word", None]
"""Of the examples of a stored campaign; the last has none."""


@pytest.fixture
def routed(database):
    """Two rounds, a third one planned, and another campaign on the same examples that must not be counted."""
    campaign = store_campaign(database, objective="route")
    with database.writing() as session:
        for key, kind in zip(campaign.example_ids, TYPES, strict=True):
            fields = {"input": "x"} if kind is None else {"type": kind}
            session.execute(update(Example).where(Example.id == key).values(fields=fields))
    campaign.finish(campaign.plan(0, [0, 1, 1], [0, 1, 2]), [1.0, 0.5, None])
    campaign.finish(campaign.plan(1, [0, 0], [3, 4]), [0.0, 1.0])
    campaign.plan(2, [2], [0])
    other = store_campaign(database, "other", objective="route")
    other.finish(other.plan(0, [2], [0]), [1.0])
    return campaign


def ask(campaign, view, *arguments, **named):
    with campaign.database.reading() as session:
        return view(session, campaign.record.id, *arguments, **named)


def test_picks_are_counted_by_window_type_and_candidate(routed):
    rows = [tuple(row.values()) for row in ask(routed, route_views.picks, "type")]
    assert rows == [
        (3, "sum", "a", 1, 0.5, 1.0),
        (3, "sum", "b", 1, 0.5, 0.5),
        (3, "word", "b", 1, 1.0, None),
        (5, "word", "a", 1, 1.0, 0.0),
        (5, None, "a", 1, 1.0, 1.0),
    ]


def test_without_a_type_all_prompts_are_of_one(routed):
    rows = [tuple(row.values()) for row in ask(routed, route_views.picks, None)]
    assert rows == [
        (3, None, "a", 1, pytest.approx(1 / 3), 1.0),
        (3, None, "b", 2, pytest.approx(2 / 3), 0.5),
        (5, None, "a", 2, 1.0, 0.5),
    ]


def test_many_rounds_are_shown_in_few_windows_that_hold_every_prompt(database):
    campaign = store_campaign(database, objective="route")
    for number in range(15):
        campaign.finish(campaign.plan(number, [number % 3], [number % 5]), [1.0])
    rows = ask(campaign, route_views.picks, None)
    assert sum(row["picks"] for row in rows) == 15
    assert sorted({row["until"] for row in rows}) == [2, 4, 6, 8, 10, 12, 14, 15]


def test_a_campaign_without_a_round_has_no_picks_and_no_mean(campaign):
    assert ask(campaign, route_views.picks, "type") == []
    campaign.plan(0, [0], [0])
    assert ask(campaign, route_views.picks, "type") == []
    assert ask(campaign, route_views.answered) == route_views.Answered(count=0, mean=None)


def test_the_mean_is_of_scored_prompts_from_a_round_on(routed):
    assert ask(routed, route_views.answered) == route_views.Answered(count=4, mean=0.625)
    assert ask(routed, route_views.answered, from_round=1) == route_views.Answered(count=2, mean=0.5)

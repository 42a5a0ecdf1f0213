"""Rows for other tools' formats, on both databases."""

import pytest
from stored_campaigns import NOW, store_campaign

from winnow.storage.queries import exports as export_views


@pytest.fixture
def played(campaign):
    """Candidate a scores 1 and 0.5, b is unscored once; another campaign's rows must not be counted."""
    campaign.finish(campaign.plan(0, [0, 1], [1, 0]), [1.0, None])
    campaign.finish(campaign.plan(1, [0], [0]), [0.5])
    other = store_campaign(campaign.database, "other")
    other.finish(other.plan(0, [0], [0]), [0.0])
    return campaign


def test_what_a_candidates_examples_come_to_is_told_without_those_that_have_none(played):
    with played.database.reading() as session:
        rows = export_views.tallied(session, played.record.id)
    shown = ("name", "position", "comparisons", "scored", "outcome_sum", "input_tokens", "output_tokens")
    assert [tuple(row[name] for name in shown) for row in rows] == [
        ("a", 0, 2, 2, 1.5, 6, 4),
        ("b", 1, 1, 0, 0.0, 3, 2),
    ]
    assert all(type(row["comparisons"]) is int for row in rows)


def test_a_candidates_examples_come_in_the_order_of_the_dataset(played):
    with played.database.reading() as session:
        first, second = (list(export_views.scored_examples(session, id_)) for id_ in played.candidate_ids[:2])
    shown = ("example", "targets", "outcome", "reason", "text", "round")
    assert [tuple(row[name] for name in shown) for row in first] == [
        ("e0", ["x"], 0.5, None, "text of letters-1-0", 1),
        ("e1", ["x"], 1.0, None, "text of letters-0-0", 0),
    ]
    assert [(row["outcome"], row["reason"]) for row in second] == [(None, "no_answer")]


def test_duels_without_an_outcome_are_no_battles(database):
    campaign = store_campaign(database, objective="best-duel")
    campaign.finish_duels(campaign.plan(0, [[0, 1], [1, 2]], [0, 1]), [(None, []), (0.75, [])])
    with database.reading() as session:
        rows = list(export_views.judged_duels(session, campaign.record.id))
    shown = ("candidate", "candidate_b", "outcome", "text", "text_b", "decided_at")
    assert [tuple(row[name] for name in shown) for row in rows] == [
        ("b", "c", 0.75, "text of letters-0-1-a", "text of letters-0-1-b", NOW)
    ]

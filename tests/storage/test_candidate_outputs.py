"""Counts and outputs of single candidates, as warnings about them are made from, in both databases."""

from dataclasses import replace

from stored_campaigns import NOW, decision, store_campaign

from winnow.storage.queries.candidate_outputs import (
    counts_by_candidate,
    ids_without_point,
    settings_of,
    some_outputs,
)
from winnow.storage.records import outcomes as outcome_records


def play(campaign):
    """A gets a point, B has zeros, and C was refused all that it was asked."""
    round_ = campaign.plan(0, [0, 0, 1, 1, 2, 2], [0, 1, 0, 1, 0, 1])
    rows = campaign.comparisons(round_, [1.0, 0.0, 0.0, 0.0, None, None])
    refused = {"generation_a_id": None, "reason": "refused", "detail": "no\N{SNOWMAN}"}
    rows = [row if row.outcome is not None else replace(row, **refused) for row in rows]
    with campaign.database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, rows, decision(), NOW)


def test_counts_are_sums_over_all_reasons_and_those_without_a_point_come_first(campaign):
    play(campaign)
    with campaign.database.reading() as session:
        found = counts_by_candidate(session, campaign.record.id, most=9)
        first = counts_by_candidate(session, campaign.record.id, most=2)
    told = [(each.name, each.scored, each.unscored, each.highest, each.texts, each.refused) for each in found]
    assert told == [("a", 2, 0, 1.0, 2, 0), ("b", 2, 0, 0.0, 2, 0), ("c", 0, 2, None, 0, 2)]
    assert [each.has_no_point for each in found] == [False, True, True]
    assert [each.refusal for each in found] == [None, None, "no\N{SNOWMAN}"]
    assert [each.name for each in first] == ["b", "c"]


def test_candidates_without_a_point_are_those_with_enough_comparisons(campaign):
    play(campaign)
    with campaign.database.reading() as session:
        assert ids_without_point(session, campaign.record.id, fewest=2) == set(campaign.candidate_ids[1:])
        assert ids_without_point(session, campaign.record.id, fewest=3) == set()
        settings = settings_of(session, campaign.candidate_ids[:2])
    assert settings == {id_: ({"name": "m", "provider": "vllm"}, {}) for id_ in campaign.candidate_ids[:2]}


def test_outputs_are_read_by_example_as_many_as_are_wanted(campaign):
    play(campaign)
    with campaign.database.reading() as session:
        ask = {"duels_of": None, "several": False}
        a = some_outputs(session, campaign.candidate_ids[0], most=9, **ask)
        one = some_outputs(session, campaign.candidate_ids[0], most=1, **ask)
        c = some_outputs(session, campaign.candidate_ids[2], most=9, **ask)
    assert [(each.example, each.targets, each.text) for each in a] == [
        ("e0", ["x"], "text of letters-0-0"),
        ("e1", ["x"], "text of letters-0-1"),
    ]
    assert (one, c) == (a[:1], [])


def test_a_duels_second_side_is_read_too(database):
    duels = store_campaign(database, objective="best-duel")
    round_ = duels.plan(0, [[0, 1], [1, 0]], [0, 1])
    duels.finish_duels(round_, [(1.0, []), (0.0, [])])
    with database.reading() as session:
        found = some_outputs(session, duels.candidate_ids[1], most=9, duels_of=duels.record.id, several=False)
    assert [each.text for each in found] == ["text of letters-0-1-a", "text of letters-0-0-b"]

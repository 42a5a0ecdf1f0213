"""Two candidates on the examples that both were scored on."""

from dataclasses import replace

import pytest
from sqlalchemy import event
from stored_campaigns import NOW, new_database, store_campaign

from winnow.storage.queries.objective import paired as paired_views
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import NewMetric


def test_scores_are_subtracted_where_both_have_one(campaign):
    campaign.finish(campaign.plan(0, [0, 1, 0, 1, 0, 2], [3, 3, 1, 1, 2, 2]), [1.0, 0.25, 0.0, 1.0, 0.5, 1.0])
    campaign.finish(campaign.plan(1, [0, 1], [4, 4]), [1.0, None])
    with campaign.database.reading() as session:
        found = paired_views.score_differences(session, campaign.record.id, "a", "b")
        assert [each.difference for each in found] == [-1.0, 0.75]  # by position of the example
        found = paired_views.score_differences(session, campaign.record.id, "b", "a")
        assert [each.difference for each in found] == [1.0, -0.75]
        assert paired_views.score_differences(session, campaign.record.id, "b", "c") == []
        a, b, c = (paired_views.positions_scored(session, campaign.record.id, name) for name in "abc")
        assert [len(each) for each in (a & b, a & c, b & c)] == [2, 1, 0]


def test_of_each_example_the_first_scored_duel_counts_from_either_side(campaign):
    arms = [[0, 1], [1, 0], [1, 0], [0, 2], [0, 1], [1, 0]]
    outcomes = [(1.0, ()), (1.0, ()), (None, ()), (1.0, ()), (None, ()), (0.75, ())]
    campaign.finish_duels(campaign.plan(0, arms, [2, 2, 0, 2, 4, 0]), outcomes)

    def found(first, second):
        duels = paired_views.first_duels(session, campaign.record.id, first, second)
        return [(each.example, each.outcome) for each in duels]

    with campaign.database.reading() as session:
        assert found("a", "b") == [(2, 1.0), (0, 0.25), (4, None)]
        assert found("b", "a") == [(2, 0.0), (0, 0.75), (4, None)]
        assert found("c", "a") == [(2, 0.0)]


def test_draws_are_in_the_order_in_which_they_were_planned(campaign):
    campaign.finish(campaign.plan(0, [1, 0, 1], [3, 3, 1]), [1.0, 0.25, None])
    campaign.finish(campaign.plan(1, [0, 2], [0, 4]), [1.0, 0.5])
    with campaign.database.reading() as session:
        found = [tuple(each) for each in paired_views.draws(session, campaign.record.id)]
    assert found == [(1, 3, 1.0), (0, 3, 0.25), (1, 1, None), (0, 0, 1.0), (2, 4, 0.5)]


@pytest.mark.parametrize(
    ("asking", "names"), [(paired_views.score_differences, "ab"), (paired_views.positions_scored, "a")]
)
def test_the_scores_of_a_candidate_are_found_in_the_index_of_pairs(tmp_path, asking, names):
    campaign, asked = store_campaign(new_database(tmp_path / "winnow.db")), []
    engine = campaign.database.engine
    event.listen(engine, "before_cursor_execute", lambda *seen: asked.append(seen[2:4]))
    with campaign.database.reading() as session:
        asking(session, campaign.record.id, *names)
        plan = session.connection().exec_driver_sql(f"EXPLAIN QUERY PLAN {asked[-1][0]}", asked[-1][1]).all()
    steps = [row[3] for row in plan if "comparisons" in row[3]]
    assert len(steps) == len(names)
    assert all("INDEX uq_comparisons_candidate_example" in step for step in steps)


def test_values_of_metrics_are_those_of_one_candidate_by_example(campaign):
    round_ = campaign.plan(0, [0, 1, 0], [3, 3, 1])
    valid, none = NewMetric(name="valid", score=1.0), NewMetric(name="valid", reason="not_json")
    short = NewMetric(name="short", score=0.5)
    said = [[valid, short], [valid], [none]]
    comparisons = [
        replace(each, metrics=metrics)
        for each, metrics in zip(campaign.comparisons(round_, [1.0, 0.25, 0.0]), said, strict=True)
    ]
    with campaign.database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, comparisons, campaign.decision(None), NOW)
    with campaign.database.reading() as session:
        found = paired_views.metric_values(session, campaign.record.id, "a", {"valid", "short"})
        assert found == {"valid": {"e3": 1.0, "e1": None}, "short": {"e3": 0.5}}
        assert paired_views.metric_values(session, campaign.record.id, "c", {"valid"}) == {"valid": {}}

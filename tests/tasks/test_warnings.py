"""What may be wrong with a campaign is told from its rows, and only where it is."""

from dataclasses import replace
from functools import reduce
from operator import add

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_campaigns import NOW, decision, judgment, store_campaign

from winnow.storage.queries.unscored import by_reason
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.campaigns import grow_campaign
from winnow.storage.records.record_types import NewCandidate, NewComparison
from winnow.tasks.campaign.budget import has_ended
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.best_mean.holdout.split import split_examples
from winnow.tasks.queries.warnings import campaign_warnings as module
from winnow.tasks.queries.warnings.campaign_warnings import (
    FEWEST_TOLD_EARLY,
    EarlyWarnings,
    Gap,
    campaign_warnings,
)
from winnow.tasks.queries.warnings.from_spec import judge_changed
from winnow.tasks.spec.judge_tree import JUDGES

NO_END = {"stop": False, "reason": "running"}
END = {"stop": True, "reason": "exhausted", "status": ["best", "eliminated", "eliminated"]}
KEYS = [f"e{number}" for number in range(5)]
KNOWN = {"estimates": [0.9, 0.5, 0.1], "lower": [None] * 3, "upper": [None] * 3}


def warnings(campaign):
    return of_record(campaign, campaign.record)


def of_record(campaign, record):
    with campaign.database.reading() as session:
        is_over = has_ended(session, record, outcome_records.latest_decision(session, record.id))
        return campaign_warnings(Look(session, record), has_ended=is_over)


def kinds(campaign):
    return [each.kind for each in warnings(campaign)]


def play(campaign, scores, number=0, **fields):
    """A round in which each arm meets the first examples with these scores, of which "-" stands for none."""
    pairs = [(arm, example) for arm, row in enumerate(scores) for example in range(len(row))]
    round_ = campaign.plan(number, [arm for arm, _ in pairs], [example for _, example in pairs])
    outcomes = [scores[arm][example] for arm, example in pairs]
    campaign.finish(round_, [None if each == "-" else each for each in outcomes], best=0, **KNOWN, **fields)


NOW_1 = {"version": 1, "options": {"no_answer": 1}}


@pytest.mark.parametrize(
    ("judge", "code", "judge_and_versions"),
    [
        ({"type": "rouge"}, {"version": 1}, "rouge now reads some outputs differently (version 1 when"),
        ({"type": "rouge"}, {"version": JUDGES["rouge"].outputs.version}, None),
        (
            {"type": "all", "judges": [{"type": "exact"}, {"type": "any", "judges": [{"type": "code"}]}]},
            {"version": 1, "judges": [NOW_1, {"version": 1, "judges": [{"version": 1}]}]},
            "code now reads some outputs differently (version 1 when",
        ),
        ({"type": "of-a-package"}, {"files": {"a.py": "0" * 64}}, None),
        ({"type": "of-a-package"}, {"version": 1}, None),
        ({"type": "exact"}, {}, None),
    ],
)
def test_a_judge_that_changed_is_told_with_the_command_that_scores_anew(judge, code, judge_and_versions):
    warning = judge_changed("mine", {"judge": judge, "judge_identity": {"code": code}})
    assert (warning is None) == (judge_and_versions is None)
    if warning is not None:
        assert warning.sentence.startswith(f"judge {judge_and_versions}")
        assert warning.sentence.endswith("winnow rescore mine scores its outputs again")


def test_a_campaign_without_a_round_has_no_warning(campaign):
    assert warnings(campaign) == []


@pytest.mark.parametrize(
    ("scores", "kind", "words"),
    [
        ([[0.0, 0.0], [0.0]], "all-zero", "all 3 scores are 0: compare some outputs"),
        ([[1.0, 1.0], [1.0, "-"]], "all-equal", "all 3 scores are 1: check whether the judge"),
        ([[0.5], [0.5]], "all-equal", "all 2 scores are 0.5"),
    ],
)
def test_equal_scores_are_told_with_what_to_check(campaign, scores, kind, words):
    play(campaign, scores, **END)
    (warning,) = warnings(campaign)
    assert warning.kind == kind
    assert warning.sentence.startswith(words)


def test_a_certificate_need_not_tell_candidates_apart(database):
    certifying = store_campaign(database, objective="certify")
    play(certifying, [[1.0, 1.0], [1.0]], **END)
    assert [each.sentence for each in warnings(certifying)] == [
        "all 3 scores are 1: check whether the judge can tell right from wrong"
    ]


def test_equal_scores_of_a_campaign_that_goes_on_are_told_of_ten_for_each_candidate_that_has_any(database):
    running = store_campaign(database, n_examples=11)
    play(running, [[1.0] * 10, [1.0] * 9], **NO_END)
    assert warnings(running) == []
    round_ = running.plan(1, [1], [9])
    running.finish(round_, [1.0], best=0, **KNOWN, **NO_END)
    (warning,) = warnings(running)
    assert warning.sentence.startswith("all 20 scores are 1: check whether the judge")
    running.finish(running.plan(2, [2], [0]), [1.0], best=0, **KNOWN, **NO_END)
    assert warnings(running) == []


def test_while_a_campaign_runs_each_kind_is_told_once_and_not_before_there_is_something_to_go_by(database):
    campaign, early = store_campaign(database, n_examples=10), EarlyWarnings()

    def told(comparisons, *, stop=False):
        found = early.new(campaign.database, campaign.record, comparisons=comparisons, stop=stop)
        return [each.kind for each in found]

    play(campaign, [[0.0] * 10] * 2, **NO_END)
    assert told(FEWEST_TOLD_EARLY - 1) == []
    assert told(FEWEST_TOLD_EARLY, stop=True) == []
    assert told(FEWEST_TOLD_EARLY) == ["all-zero"]
    assert kinds(campaign) == ["all-zero"]
    assert told(2 * FEWEST_TOLD_EARLY) == []


def test_it_is_looked_for_at_twice_as_many_comparisons(database):
    campaign, early = store_campaign(database, n_examples=10), EarlyWarnings()
    look = {"stop": False}
    assert early.new(campaign.database, campaign.record, comparisons=FEWEST_TOLD_EARLY, **look) == []
    play(campaign, [[0.0] * 10] * 2, **NO_END)
    assert early.new(campaign.database, campaign.record, comparisons=2 * FEWEST_TOLD_EARLY - 1, **look) == []
    assert early.new(campaign.database, campaign.record, comparisons=2 * FEWEST_TOLD_EARLY, **look) != []


@pytest.mark.parametrize(
    ("engines", "told"),
    [
        (["sleepy 1", "sleepy 1", "sleepy 1"], None),
        (
            ["sleepy 1", "sleepy 2", "sleepy 2"],
            "the first outputs of m are from engine sleepy 1, the last from sleepy 2: ",
        ),
        (["openai vllm/0.9 m", "openai m", "openai vllm/0.10 m"], None),
    ],
)
def test_engines_that_were_exchanged_are_named_with_the_model_and_servers_are_not(campaign, engines, told):
    for number, engine in enumerate(engines):
        campaign.texts(campaign.plan(number, [0], [number]), engine=engine)
    found = of_record(
        campaign, replace(campaign.record, spec={"models": [{"name": "m"}, {"name": "silent"}]})
    )
    assert [each.kind for each in found] == ([] if told is None else ["other-engine"])
    assert told is None or found[0].sentence.startswith(told)


@pytest.mark.parametrize("scores", [[[0.0]], [[0.0, 1.0]], [[0.0], [0.25]], [["-"]]])
def test_a_single_score_or_two_that_differ_are_no_equal_scores(campaign, scores):
    play(campaign, scores, **END)
    assert kinds(campaign) == []


def test_scores_that_differ_between_rounds_alone_are_no_equal_scores(campaign):
    play(campaign, [[1.0], [1.0]], **END)
    assert kinds(campaign) == ["all-equal"]
    round_ = campaign.plan(1, [0], [1])
    campaign.finish(round_, [0.75], best=0, **KNOWN, **END)
    assert kinds(campaign) == []


def test_duels_that_are_all_ties_are_told_and_a_single_win_is_enough_not_to(database):
    duels = store_campaign(database, objective="best-duel")
    duels.finish_duels(duels.plan(0, [[0, 1], [1, 2]], [0, 1]), [(0.5, []), (0.5, [])], stop=True)
    (warning,) = warnings(duels)
    assert warning.sentence.startswith("all 2 scored duels are ties")
    with database.reading() as session:
        assert by_reason(session, duels.record) == {"": 2}
    duels.finish_duels(duels.plan(1, [[0, 1]], [2]), [(1.0, [])], stop=True)
    assert warnings(duels) == []


def either_way_round(database, outcome, count=20, *, name="letters", judged=(), judge=None):
    """A campaign of duels of a and b, and as many of b and a, all with one outcome for the first of two."""
    duels = store_campaign(database, name, objective="best-duel", n_examples=count)
    arms = [[0, 1] if number % 2 else [1, 0] for number in range(count)]
    duels.finish_duels(duels.plan(0, arms, list(range(count))), [(outcome, list(judged))] * count, stop=True)
    spec = duels.record.spec if judge is None else {**duels.record.spec, "judge": judge}
    return replace(duels, record=replace(duels.record, spec=spec))


@pytest.mark.parametrize(("outcome", "place"), [(1.0, "first"), (0.75, "first"), (0.0, "second")])
def test_duels_that_the_same_side_always_won_are_told_where_candidates_met_either_way_round(
    database, outcome, place
):
    duels = either_way_round(database, outcome)
    (warning,) = warnings(duels)
    assert warning.kind == "one-side"
    assert warning.sentence.startswith(f"the output shown {place} was always preferred, even when")
    duels.finish_duels(duels.plan(1, [[0, 1]], [0]), [(1.0 - outcome, [])], stop=True)
    assert warnings(duels) == []
    assert kinds(either_way_round(database, outcome, count=18, name="few")) == []


def test_a_candidate_that_always_stands_first_may_always_win(database):
    duels = store_campaign(database, objective="best-duel", n_examples=30)
    duels.finish_duels(duels.plan(0, [[0, 1]] * 30, list(range(30))), [(1.0, [])] * 30, stop=True)
    assert warnings(duels) == []


@pytest.mark.parametrize(("swapped", "found"), [(0.0, ["all-equal", "one-side"]), (0.5, ["all-equal"])])
def test_a_model_that_always_prefers_the_answer_shown_first_is_told_whatever_its_duels_come_to(
    database, swapped, found
):
    judged = (judgment("original", 1.0), judgment("swapped", swapped))
    judge = {"type": "llm", "models": [{"name": "j", "provider": "vllm", "model": "m"}]}
    assert kinds(either_way_round(database, 0.5, judged=judged, judge=judge)) == found


@pytest.mark.parametrize(("count", "found"), [(1, []), (2, ["no-answer"])])
def test_more_than_two_in_a_hundred_texts_without_an_answer_are_told(database, count, found):
    wide = store_campaign(database, names=[f"c{number}" for number in range(10)])
    pairs = [(arm, example) for arm in range(10) for example in range(5)]
    round_ = wide.plan(0, [arm for arm, _ in pairs], [example for _, example in pairs])
    rows = wide.comparisons(round_, [float(place % 2) for place in range(50)])
    rows = [replace(row, no_answer=row.position < count) for row in rows]
    with database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, rows, decision(), NOW)
    assert kinds(wide) == found
    for warning in warnings(wide):
        assert warning.sentence.startswith("2 of 50 outputs (4.0%) have no answer that the judge can read")
        assert "counted as wrong" in warning.sentence


def test_texts_without_an_answer_that_are_left_unscored_are_called_that(campaign):
    record = replace(campaign.record, spec={**campaign.record.spec, "judge": {"no_answer": "unscored"}})
    round_ = campaign.plan(0, [0, 1], [0, 0])
    rows = [replace(row, no_answer=row.outcome is None) for row in campaign.comparisons(round_, [1.0, None])]
    with campaign.database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, rows, decision(), NOW)
        (warning,) = campaign_warnings(Look(session, record), has_ended=False)
    assert "1 of 2 outputs (50.0%) has no answer that the judge can read and is left unsc" in warning.sentence


@pytest.mark.parametrize(
    ("fates", "said"),
    [
        (("wrong", "unscored"), "is counted as wrong or left unscored by the part that finds no answer: "),
        (("unscored", "unscored"), "is left unscored by the part that finds no answer: "),
        (("wrong",), "is counted as wrong: "),
    ],
)
def test_each_part_of_a_judge_says_what_becomes_of_a_text_without_an_answer(campaign, fates, said):
    judge = {"type": "all", "judges": [{"type": "exact", "no_answer": each} for each in fates]}
    round_ = campaign.plan(0, [0, 1], [0, 0])
    rows = [replace(row, no_answer=row.outcome is None) for row in campaign.comparisons(round_, [1.0, None])]
    with campaign.database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, rows, decision(), NOW)
    (warning,) = of_spec(campaign, judge=judge)
    assert said in warning.sentence


@pytest.mark.parametrize(("count", "found"), [(1, []), (2, ["truncated"])])
def test_more_than_two_in_a_hundred_texts_cut_off_are_told_and_keep_their_scores(database, count, found):
    wide = store_campaign(database, names=[f"c{number}" for number in range(10)])
    for number, size in enumerate((count, 50 - count)):
        pairs = [divmod(place, 5) for place in range(50)]
        pairs = pairs[:count] if number == 0 else pairs[count:]
        round_ = wide.plan(number, [arm for arm, _ in pairs], [example for _, example in pairs])
        texts = wide.texts(round_, finish_reason="length" if number == 0 else "stop")
        rows = [
            NewComparison(
                position=position,
                candidate_a_id=wide.candidate_ids[arm],
                example_id=wide.example_ids[example],
                generation_a_id=texts[position],
                judge="exact",
                outcome=float(position % 2),
            )
            for position, (arm, example) in enumerate(pairs)
        ]
        assert len(rows) == size
        with database.writing() as session:
            outcome_records.add_outcomes(session, round_.id, rows, decision(), NOW)
    assert kinds(wide) == found
    for warning in warnings(wide):
        assert warning.sentence.startswith("2 of 50 outputs (4.0%) were cut off by max_tokens")


def test_what_has_no_text_counts_among_no_texts(campaign):
    play(campaign, [[1.0], [0.0]], **NO_END)
    round_ = campaign.plan(1, [2] * 5, list(range(5)))
    rows = [
        NewComparison(
            position=position,
            candidate_a_id=campaign.candidate_ids[2],
            example_id=campaign.example_ids[position],
            judge="exact",
            reason="load_failed",
        )
        for position in range(5)
    ]
    with campaign.database.writing() as session:
        outcome_records.add_outcomes(session, round_.id, rows, decision(), NOW)
    assert warnings(campaign) == []


def test_one_example_that_the_answer_rests_on_is_named_once_the_campaign_has_ended(campaign):
    play(campaign, [[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0, 1.0], [0.0] * 5], **END)
    (warning,) = warnings(campaign)
    assert warning.kind == "one-example"
    assert warning.sentence.startswith("without example 'e1', a would be level with b in the mean of the ")
    assert "and not 0.2000 ahead of it" in warning.sentence


def test_a_spent_limit_ends_a_campaign_as_its_selector_does(database):
    by_tokens = store_campaign(database, budget={"comparisons": 100, "tokens": 15})
    play(by_tokens, [[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0, 1.0], [0.0] * 5], **NO_END)
    assert kinds(by_tokens) == ["one-example"]
    few = store_campaign(database, "few", budget={"comparisons": 100, "tokens": 15})
    play(few, [[1.0] * 2, [1.0] * 2], **NO_END)
    assert kinds(few) == ["all-equal"]


def test_a_gap_that_is_small_is_no_gap_of_nothing(campaign):
    play(campaign, [[0.5, 0.5001, 0.5, 0.5, 0.5], [0.5] * 5, [0.0] * 5], **END)
    (warning,) = warnings(campaign)
    assert "would be level with b in the mean of the scored examples, and not 0.00002 ahead of it" in (
        warning.sentence
    )


def of_spec(campaign, **changes):
    """The warnings that it would have with another spec."""
    record = replace(campaign.record, spec={**campaign.record.spec, **changes})
    return of_record(campaign, record)


def test_an_example_that_is_held_out_had_no_part_in_the_gap(campaign):
    """Without those that are held out the two are level, and no single one decides."""
    held_out = {f"e{number}" for number in split_examples(KEYS, share=0.4, seed=7).held_out.tolist()}
    ahead = [float(key in held_out) for key in KEYS]
    play(campaign, [ahead, [0.0] * 5, [0.0] * 5], **END)
    assert [each.kind for each in warnings(campaign)] == ["one-example"]
    assert of_spec(campaign, holdout=0.4) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"selector": {"name": "gate", "params": {"baseline": "b"}}},
        {"selector": {"name": "champion", "params": {"top_m": 2}}},
        {"groups": {"by": "level", "objective": "worst", "weights": "equal"}},
    ],
)
def test_no_example_is_named_where_the_answer_does_not_rest_on_the_gap_of_two_means(campaign, changes):
    play(campaign, [[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0, 1.0], [0.0] * 5], **END)
    assert of_spec(campaign, **changes) == []


def test_while_a_campaign_runs_nobody_looks_for_such_an_example(campaign):
    play(campaign, [[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0, 1.0], [0.0] * 5], **NO_END)
    assert warnings(campaign) == []


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ([1.0] * 5, [0.0] * 5, END["status"]),  # each example is worth the same
        ([1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0], ["tied", "tied", "eliminated"]),  # there is no gap
        ([1.0, 0.5], [0.0], END["status"]),  # a single score says nothing of the others
    ],
)
def test_no_example_is_named_where_none_is_worth_much(campaign, first, second, status):
    play(campaign, [first, second], **{**END, "status": status})
    assert warnings(campaign) == []


def test_the_second_is_the_closest_rival_and_not_a_high_mean_of_a_few_examples(campaign):
    """Of b two examples were asked before it was out, and its estimate is the higher one; c was asked all."""
    differences = {"against": 0, "delta": 0.05, "estimates": [None, -0.2, -0.3], "upper": [None, 0.1, 0.2]}
    scores = [[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.5], [1.0, 0.0, 0.0, 1.0, 1.0]]
    play(campaign, scores, **END, differences={**differences, "lower": [None, -0.9, -0.3]})
    (warning,) = warnings(campaign)
    assert "a would be level with c" in warning.sentence


def test_who_joined_once_the_budget_was_spent_is_nobodys_second(database):
    campaign = store_campaign(database, budget=12)
    differences = {"against": 0, "delta": 0.05, "estimates": [None, -0.2, -0.3], "upper": [None, 0.1, 0.2]}
    scores = [[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.5], [1.0, 0.0, 0.0, 1.0, 1.0]]
    play(campaign, scores, **END, differences={**differences, "lower": [None, -0.9, -0.3]})
    late = NewCandidate(name="late", model={}, prompt={}, sampling={})
    with campaign.database.writing() as session:
        grow_campaign(session, campaign.record.id, spec=campaign.record.spec, candidates=[late])
    (warning,) = warnings(campaign)
    assert "a would be level with c" in warning.sentence


def test_the_second_is_the_best_of_those_that_were_not_dropped(campaign):
    scores = [[1.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0, 0.5]]
    play(campaign, scores, **{**END, "status": ["best", "dropped", "eliminated"]})
    assert warnings(campaign) == []


def test_the_gap_without_an_example_is_that_of_the_other_rows():
    rows = [(1.0, 0.5), (None, 0.25), (0.75, None), (0.0, 1.0)]
    gap = Gap.of(rows)
    assert gap.size == pytest.approx(1.75 / 3 - 1.75 / 3)
    for left_out in range(len(rows)):
        others = Gap.of(row for place, row in enumerate(rows) if place != left_out)
        assert gap.without(*rows[left_out]) == pytest.approx(others.size)


@given(st.lists(st.tuples(st.floats(0.0, 1.0), st.floats(0.0, 1.0)), min_size=2, max_size=12))
def test_no_example_is_worth_more_than_what_is_said_without_a_look_at_it(rows):
    gap = Gap.of(rows)
    # Not `sum`, which has rounded less since Python 3.12 than one addition after the other does.
    assert gap == Gap.of_sums(*((reduce(add, scores), len(scores)) for scores in zip(*rows, strict=True)))
    assert all(gap.size - gap.without(*row) <= gap.most_worth + 1e-12 for row in rows)


def test_scores_are_looked_at_one_by_one_only_where_one_could_be_worth_enough(campaign, monkeypatch):
    read = []
    pairs = module.warning_views.score_pairs
    monkeypatch.setattr(
        module.warning_views, "score_pairs", lambda *given: read.append(given) or pairs(*given)
    )
    play(campaign, [[1.0] * 5, [0.0] * 5], **END)
    assert warnings(campaign) == []
    assert len(read) == 2  # of five examples one might be
    monkeypatch.setattr(module, "MOST_OF_THE_GAP", 0.6)
    assert warnings(campaign) == []
    assert len(read) == 2

"""People as judges: what a scale may be, what tells tasks apart, and how what they said becomes a verdict."""

import re

import pytest

from tests.tasks.pair_judges.scripted_judges import duel
from winnow.tasks.errors import JudgeError, LabelMissing
from winnow.tasks.judges.human import (
    Annotation,
    duel_key,
    in_order,
    needs_people,
    presentation_order,
    rating_key,
)
from winnow.tasks.judges.protocol import Sample
from winnow.tasks.judges.registry import create_judge, create_pair_judge, describe

LEVELS = {"right": 1.0, "half": 0.5, "wrong": 0.0}


def rater(**params):
    return create_judge("human", **{"question": "Right?", "levels": LEVELS, **params})


def said(verdict):
    return Annotation(verdict=verdict, annotator="Ann")


@pytest.mark.parametrize(
    ("params", "path", "sentence"),
    [
        ({"levels": {"only": 1.0}}, "judge.levels", "must have 2 to 9 levels, each with its score, got 1"),
        ({"levels": {f"level {n}": n / 10 for n in range(10)}}, "judge.levels", "got 10"),
        ({"levels": {"a lot": 2.0, "none": 0.0}}, "judge.levels", "'a lot' must be between 0 and 1, got 2"),
        ({"levels": {"some": float("nan"), "none": 0.0}}, "judge.levels", "must be between 0 and 1, got nan"),
        ({"levels": {"one": 0.5, "other": 0.5}}, "judge.levels", "two levels have the same score"),
        ({"levels": {"Good": 1.0, "good ": 0.5}}, "judge.levels", "the same name, apart from case"),
        ({"levels": {"Unclear": 0.0, "good": 1.0}}, "judge.levels", "cannot be called 'Unclear'"),
        (
            {"levels": {"1": 1.0, "2": 0.0}},
            "judge.levels",
            "is a single character, but the key of this level",
        ),
        ({"levels": {"q": 1.0, "bad": 0.0}}, "judge.levels", "'q' is a single character"),
        ({"question": " "}, "judge.question", "is empty; write what annotators should look for"),
        ({"extract": "x"}, "judge.extract", "annotators judge whole outputs"),
        ({"scale": "1..5"}, "judge.scale", "unknown parameter of human 'scale'"),
    ],
)
def test_a_scale_on_which_nobody_could_rate_is_refused_in_a_sentence(params, path, sentence):
    with pytest.raises(JudgeError, match=re.escape(sentence)) as caught:
        rater(**params)
    assert caught.value.path == path


def test_a_level_without_scale_or_question_is_asked_for():
    with pytest.raises(JudgeError, match="human needs levels"):
        create_judge("human", question="Right?")
    with pytest.raises(JudgeError, match="human needs question"):
        create_pair_judge("human")


def test_digits_may_name_levels_that_have_these_keys():
    assert in_order(rater(levels={"2": 1.0, "1": 0.0}).levels) == ["1", "2"]


def test_the_judge_describes_itself_without_the_options_that_it_does_not_take():
    assert [each.name for each in describe("human").parameters] == ["question", "levels", "reference"]


def test_an_output_has_the_score_of_the_level_that_somebody_chose():
    judge = rater().with_annotations({rating_key("e1", "46"): said(0.5), rating_key("e2", "46"): said(None)})
    found = judge.judge(Sample(output="46", example="e1"))
    assert (found.score, found.answer) == (0.5, "Ann: half")
    unclear = judge.judge(Sample(output="46", example="e2"))
    assert (unclear.score, unclear.reason) == (None, "unclear")
    with pytest.raises(LabelMissing):
        judge.judge(Sample(output="47", example="e1"))


def test_texts_that_no_database_holds_are_the_same_before_and_after_they_were_stored():
    assert rating_key("e", "a\0b\ud800") == rating_key("e", "a\N{REPLACEMENT CHARACTER}b?")


def test_a_duel_goes_to_whom_somebody_preferred_and_the_same_answer_twice_to_nobody():
    judge = create_pair_judge("human", question="Which?")
    one = duel("x", "y")
    for verdict, note in ((1.0, "Ann: A"), (0.0, "Ann: B"), (0.5, "Ann: tie")):
        found = judge.with_annotations({duel_key(one): said(verdict)}).judge(one)
        assert (found.score, found.answer) == (verdict, note)
    unclear = judge.with_annotations({duel_key(one): said(None)}).judge(one)
    assert (unclear.score, unclear.reason) == (None, "unclear")
    same = duel("x", "x")
    assert not needs_people(same)
    assert judge.judge(same).score == 0.5
    with pytest.raises(LabelMissing):
        judge.judge(one)
    assert not judge.is_deterministic


def test_answers_that_meet_again_are_another_task():
    assert duel_key(duel("x", "y", seed=1)) != duel_key(duel("x", "y", seed=2))
    assert duel_key(duel("x", "y", seed=1)) != duel_key(duel("y", "x", seed=1))


def test_a_fair_coin_says_which_answer_is_shown_first():
    swapped = sum(presentation_order(duel("x", "y", seed=seed)) == "swapped" for seed in range(2000))
    assert abs(swapped - 1000) < 5 * 500**0.5  # 5 standard deviations of a fair coin: wrong once in 10**6

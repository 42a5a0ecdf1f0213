"""The rule judge: correctness, then style, then a coin."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_judges import duel

from winnow.tasks.judges.pairwise.rules import coin, has_steps
from winnow.tasks.judges.registry import create_pair_judge

LAST_NUMBER = {"type": "numeric"}


def verdict(answer_a, answer_b, *, scorer=LAST_NUMBER, seed=7, targets=("42",), **params):
    judge = create_pair_judge("rules", scorer=scorer, **params)
    this = duel(answer_a, answer_b, targets=targets, seed=seed)
    assert (judge.models, judge.calls(this, {})) == ((), ())
    return judge.judge(this)


@pytest.mark.parametrize("both_right", ["shorter", "clearer-steps", "tie"])
@pytest.mark.parametrize("both_wrong", ["coin", "tie"])
def test_the_correct_answer_wins_whatever_else_is_said_of_it(both_right, both_wrong):
    rules = {"both_right": both_right, "both_wrong": both_wrong}
    assert verdict("a long way to\n1. this\n2. that\n42", "41", **rules).score == 1.0
    assert verdict("41", "42", **rules).score == 0.0


@pytest.mark.parametrize(
    ("a", "b", "shorter", "clearer"),
    [
        ("42", "It is 42", 1.0, 1.0),
        ("It is 42", "42", 0.0, 0.0),
        ("is  \n\n 42", "is 42", 0.5, 0.5),
        ("42", "1. Add.\n2. Done: 42", 1.0, 0.0),
        ("1. Add.\n2. Done: 42", "1. Add.\n2. Check it.\n3. Done: 42", 1.0, 1.0),
    ],
)
def test_of_two_right_answers_the_shorter_or_the_clearer_wins(a, b, shorter, clearer):
    assert verdict(a, b).score == verdict(a, b, both_right="shorter").score == shorter
    assert verdict(a, b, both_right="clearer-steps").score == clearer
    assert verdict(a, b, both_right="tie").score == 0.5


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("1. a\n2. b", True),
        ("Plan:\n\n  (1) a\n words\n  (2) b", True),
        ("**Step 1:** a\n**Step 2:** b", True),
        ("- STEP 1) a\n- STEP 2) b", True),
        ("### 1.\r\n### 2.", True),
        ("2. b\n1. a", False),
        ("1. a", False),
        ("1.5 kg\n2.5 kg", False),
        ("1 and\n2", False),
        ("see 1. and\nsee 2. too", False),
        ("1" * 500_000 + "\n" * 500_000, False),
    ],
)
def test_steps_are_lines_numbered_one_and_two_in_this_order(text, steps):
    assert has_steps(text) is steps


def test_two_wrong_answers_get_the_coin_of_the_duels_seed_or_a_tie():
    tossed = [verdict("1", "2", seed=seed).score for seed in range(40)]
    assert tossed == [verdict("3", "4", seed=seed).score for seed in range(40)]
    assert set(tossed) == {0.0, 1.0}
    assert verdict("1", "2", both_wrong="tie").score == 0.5


FAIR = (4_694, 5_306)
"""Outside it a fair coin falls in 10 000 throws with probability below 1e-9."""


@pytest.mark.statistical
def test_the_coin_is_fair_and_the_check_would_catch_one_that_is_not():
    low, high = FAIR
    assert low <= sum(coin(seed) for seed in range(10_000)) <= high
    assert not low <= sum(coin(seed) * coin(-seed) for seed in range(10_000)) <= high


@pytest.mark.parametrize(
    ("a", "b", "note"),
    [
        ("none", "42", "answer A: no_number"),
        ("42", "none", "answer B: no_number"),
        ("none", "nothing", "answer A: no_number; answer B: no_number"),
    ],
)
def test_an_answer_that_cannot_be_scored_leaves_the_duel_unscored_and_is_named(a, b, note):
    unscored = verdict(a, b, scorer={**LAST_NUMBER, "no_answer": "unscored"})
    assert (unscored.score, unscored.reason, unscored.answer) == (None, "no_number", note)


def test_an_answer_that_cannot_be_read_is_wrong_unless_the_scorer_says_otherwise():
    assert verdict("none", "42").score == 0.0
    assert verdict("none", "42", targets=()).reason == "no_target"


@given(st.text(), st.text(), st.sampled_from(["shorter", "clearer-steps", "tie"]))
def test_any_two_answers_are_judged_and_their_mirror_image_alike(a, b, both_right):
    rules = {"scorer": {"type": "contains"}, "both_right": both_right, "both_wrong": "tie", "targets": ["a"]}
    assert verdict(a, b, **rules).score == 1.0 - verdict(b, a, **rules).score


def test_rules_without_a_coin_always_say_the_same():
    assert not create_pair_judge("rules", scorer=LAST_NUMBER).is_deterministic
    assert create_pair_judge("rules", scorer=LAST_NUMBER, both_wrong="tie").is_deterministic
    for answers in (("42", "41"), ("41", "40"), ("42", "It is 42")):
        said = {verdict(*answers, both_wrong="tie", seed=seed).score for seed in range(20)}
        turned = {1.0 - verdict(*answers[::-1], both_wrong="tie", seed=seed).score for seed in range(20)}
        assert said == turned
        assert len(said) == 1

"""Several scores of an example become one: against exact values, all subsets, and exact expectations."""

from fractions import Fraction
from itertools import combinations, permutations, product
from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.tasks.rounds.score import ScoredText, pass_at, reduced
from winnow.tasks.spec.sections.generate_config import SamplesSpec

SCORES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=7)


def texts(*answers, right="a"):
    return [
        ScoredText(
            text=f"I say {each}",
            score=float(each == right),
            answer=None if each is None else each,
            no_answer=each is None,
        )
        for each in answers
    ]


def score(how, *answers):
    return reduced(SamplesSpec(n=len(answers), reduce=how), texts(*answers)).score


@given(scores=SCORES, data=st.data())
def test_pass_at_k_is_the_mean_of_the_highest_over_all_ways_to_take_k(scores, data):
    k = data.draw(st.integers(1, len(scores)))
    ways = [max(way) for way in combinations(scores, k)]
    assert pass_at(k, scores) == pytest.approx(sum(ways) / len(ways))
    assert pass_at(1, scores) == pytest.approx(sum(scores) / len(scores))
    assert pass_at(len(scores), scores) == max(scores)


@given(scores=SCORES, data=st.data())
def test_pass_hat_k_is_the_mean_of_the_lowest_over_all_ways_to_take_k(scores, data):
    k = data.draw(st.integers(1, len(scores)))
    ways = [min(way) for way in combinations(scores, k)]
    made = [ScoredText(text=f"{each}", score=each) for each in scores]
    found = reduced(SamplesSpec(n=len(scores), reduce=f"pass^{k}"), made)
    assert found.score == pytest.approx(sum(ways) / len(ways))
    assert 0.0 <= found.score <= 1.0
    assert scores[found.shown] == min(scores)


@pytest.mark.parametrize(("n", "c", "k"), [(10, 0, 3), (10, 3, 3), (10, 4, 3), (10, 10, 3), (100, 87, 20)])
def test_pass_hat_k_of_right_and_wrong_is_the_published_estimator(n, c, k):
    found = score(f"pass^{k}", *"a" * c, *"b" * (n - c))
    assert found == pytest.approx(comb(c, k) / comb(n, k))


@pytest.mark.parametrize(("n", "c", "k"), [(10, 0, 3), (10, 1, 3), (10, 4, 3), (10, 8, 3), (100, 7, 20)])
def test_pass_at_k_of_right_and_wrong_is_the_published_estimator(n, c, k):
    assert pass_at(k, [1.0] * c + [0.0] * (n - c)) == pytest.approx(1 - comb(n - c, k) / comb(n, k))


def expected(estimate, n, p):
    """The exact mean of an estimate over n texts that are each right with probability p."""
    return sum(
        p**c * (1 - p) ** (n - c) * comb(n, c) * Fraction(estimate([1.0] * c + [0.0] * (n - c)))
        for c in range(n + 1)
    )


@pytest.mark.parametrize("p", [Fraction(1, 10), Fraction(1, 2), Fraction(4, 5)])
def test_pass_at_k_is_unbiased_and_the_plain_formula_is_not(p):
    n, k = 6, 3
    truth = float(1 - (1 - p) ** k)

    def plain(scores):
        return 1 - (1 - sum(scores) / n) ** k

    assert float(expected(lambda scores: pass_at(k, scores), n, p)) == pytest.approx(truth, abs=1e-12)
    assert abs(float(expected(plain, n, p)) - truth) > 1e-3


def test_the_mean_is_the_mean():
    assert score("mean", "a", "b", "a", "b") == 0.5


@pytest.mark.parametrize(
    ("answers", "said", "expected"),
    [
        ("aab", "a (2 of 3)", 1.0),
        ("abb", "b (2 of 3)", 0.0),
        ("ab", "a (1 of 2, as many as 1 other)", 0.5),
        ("abc", "a (1 of 3, as many as 2 other)", 1 / 3),
        ((None, None, "a"), "a (1 of 3)", 1.0),
        ((None, None), "none of 2 holds an answer", 0.0),
    ],
)
def test_the_answer_of_most_texts_is_scored(answers, said, expected):
    found = reduced(SamplesSpec(n=len(answers), reduce="majority"), texts(*answers))
    assert found.answer == said
    assert found.score == pytest.approx(expected)


@pytest.mark.parametrize(
    ("preferences", "shown", "expected"),
    [((0.1, 0.9, 0.5), 1, 0.0), ((0.7, 0.7, 0.5), 0, 0.5), ((0, 0, 0), 0, 2 / 3)],
)
def test_the_text_that_is_liked_best_is_scored(preferences, shown, expected):
    made = [
        ScoredText(text="t", score=score, preference=liked)
        for score, liked in zip((1.0, 0.0, 1.0), preferences, strict=True)
    ]
    found = reduced(SamplesSpec(n=3, reduce="best-of"), made)
    assert (found.shown, found.score) == (shown, pytest.approx(expected))


def test_without_an_answer_read_whole_texts_are_counted():
    made = [ScoredText(text=text, score=float(text == "y")) for text in ("x", " y", "y ", "z")]
    made[1:3] = [ScoredText(text=each.text, score=1.0) for each in made[1:3]]
    found = reduced(SamplesSpec(n=4, reduce="majority"), made)
    assert (found.score, found.shown, found.answer) == (1.0, 1, "y (2 of 4)")


@pytest.mark.parametrize("how", ["mean", "majority", "pass@2", "pass^2"])
def test_the_order_of_texts_changes_no_score_and_every_score_is_in_range(how):
    for answers in product((None, "a", "b"), repeat=4):
        scores = {round(score(how, *order), 12) for order in permutations(answers)}
        assert len(scores) == 1
        assert 0.0 <= scores.pop() <= 1.0

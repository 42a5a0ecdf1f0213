"""Exact tests of the intervals when some scores are chosen by what was told, and not drawn.

A path is the order in which the examples of one small arm become told. At every step a rule looks at the
scores so far and either names an example or has one drawn; enumerating the draws gives every path with its
probability, so expectations are exact.
"""

from itertools import accumulate

import numpy as np
import pytest
from literal_betting import literal_capital

from winnow.algorithms.bounds.confidence_sequences import FinitePopulationIntervals
from winnow.algorithms.bounds.wealth import Wealth

POPULATIONS = {
    "binary": [0, 0, 0, 1, 1, 1],
    "one deviating example": [1, 1, 1, 1, 1, 0],
    "U-shaped": [0, 0.05, 0.9, 1, 0, 1],
}
population = pytest.mark.parametrize("scores", POPULATIONS.values(), ids=POPULATIONS)


def highest_after_a_win(scores, told):
    """After a score above 1/2 that was drawn, the highest of what is left is chosen: an oracle's rule."""
    (example, is_draw) = told[-1] if told else (None, False)
    if not is_draw or scores[example] <= 0.5:
        return None
    return max(set(range(len(scores))) - {example for example, _ in told}, key=lambda e: scores[e])


def lowest_every_other_time(scores, told):
    """A draw, the lowest of what is left, a draw, ..."""
    if len(told) % 2 == 0:
        return None
    return min(set(range(len(scores))) - {example for example, _ in told}, key=lambda e: scores[e])


rules = pytest.mark.parametrize("rule", [highest_after_a_win, lowest_every_other_time])


def paths(scores, rule, told=()):
    """All ways to tell all examples: tuples of (example, whether drawn), and their probabilities."""
    left = [e for e in range(len(scores)) if e not in {example for example, _ in told}]
    if not left:
        yield told, 1.0
        return
    chosen = rule(scores, told)
    steps = [(e, True) for e in left] if chosen is None else [(chosen, False)]
    for step in steps:
        for path, probability in paths(scores, rule, (*told, step)):
            yield path, probability / len(steps)


def enumerated(scores, rule):
    """Scores in the order told and what was drawn, shapes (P, 6), and probabilities, shape (P,)."""
    listed = list(paths(scores, rule))
    examples = np.array([[example for example, _ in path] for path, _ in listed])
    is_draw = np.array([[drawn for _, drawn in path] for path, _ in listed])
    assert 0.0 < is_draw.mean() < 1.0
    return np.array(scores, float)[examples], is_draw, np.array([probability for _, probability in listed])


def capital_paths(told, is_draw, mean, level=0.2):
    """Capital against the mean after every score, shape (P, 6)."""
    wealth = Wealth(len(told), told.shape[1], level, np.array([mean]))
    capital = np.empty(told.shape)
    for arm, t in np.ndindex(*told.shape):
        wealth.bet(arm, told[arm, t : t + 1], slice(None), is_draw[arm, t : t + 1])
        capital[arm, t] = wealth.capital(arm)[0]
    return capital


@population
@rules
def test_expected_capital_is_exactly_one_whatever_is_chosen_between_draws(scores, rule):
    told, is_draw, probabilities = enumerated(scores, rule)
    capital = capital_paths(told, is_draw, np.mean(scores))
    np.testing.assert_allclose(probabilities @ capital, 1.0, rtol=1e-9)
    assert capital.min() > 0.0


@population
@rules
def test_the_check_catches_bets_on_what_was_chosen(scores, rule):
    told, is_draw, probabilities = enumerated(scores, rule)
    for mirrored in (told, 1.0 - told):
        capital = capital_paths(mirrored, np.ones_like(is_draw), mirrored[0].mean())
        if (probabilities @ capital).max() > 1.05:
            return
    pytest.fail("no bet on a chosen score was seen")


@population
@rules
def test_the_check_catches_chosen_scores_that_are_left_out_of_what_is_known(scores, rule):
    told, is_draw, probabilities = enumerated(scores, rule)
    capital = np.ones(told.shape)
    for path, (path_scores, drawn) in enumerate(zip(told, is_draw, strict=True)):
        only_draws = literal_capital(path_scores[np.newaxis, drawn], np.mean(scores), 6, level=0.2)[0]
        capital[path] = [([1.0, *only_draws])[count] for count in accumulate(map(int, drawn))]
    assert abs(probabilities @ capital - 1.0).max() > 0.01


@population
@rules
@pytest.mark.parametrize("level", [0.05, 0.3, 0.6])
def test_the_true_mean_is_refuted_with_at_most_the_allowed_probability(scores, rule, level):
    told, is_draw, probabilities = enumerated(scores, rule)
    capital = capital_paths(told, is_draw, np.mean(scores), level)
    assert probabilities @ (capital.max(axis=1) >= 1.0 / level) <= level + 1e-12


def test_capital_equals_the_formula_written_out_with_bets_of_zero_on_the_chosen():
    rng = np.random.default_rng(0)
    scores, is_draw = rng.random((4, 60)), rng.random((4, 60)) < 0.4
    wealth = Wealth(4, 80, 0.1, np.array([0.3, 0.5, 0.8]))
    for arm in range(4):
        for start in range(0, 60, 7):
            part = slice(start, start + 7)
            wealth.bet(arm, scores[arm, part], slice(None), is_draw[arm, part])
        for point, mean in enumerate((0.3, 0.5, 0.8)):
            expected = literal_capital(scores[arm : arm + 1], mean, 80, 0.1, is_draw=is_draw[arm : arm + 1])
            assert wealth.capital(arm)[point] == pytest.approx(expected[0, -1], rel=1e-9)


def test_chosen_scores_alone_give_exactly_what_is_certain():
    scores = np.array([1.0, 0.5, np.nan, 1.0])
    intervals = FinitePopulationIntervals(2, 10, 0.1)
    intervals.update(np.ones(4, dtype=int), scores, np.zeros(4, dtype=bool))
    assert intervals.lower.tolist() == [0.0, 0.25]
    assert intervals.upper.tolist() == [1.0, 0.95]


def test_marking_every_score_as_a_draw_is_the_same_as_marking_none():
    rng = np.random.default_rng(1)
    arms, scores = rng.integers(3, size=40), rng.random(40)
    marked, plain = FinitePopulationIntervals(3, 60, 0.1), FinitePopulationIntervals(3, 60, 0.1)
    marked.update(arms, scores, np.ones(40, dtype=bool))
    plain.update(arms, scores)
    assert np.array_equal(marked.lower, plain.lower)
    assert np.array_equal(marked.upper, plain.upper)


def test_choosing_most_of_an_arm_leaves_the_draws_to_speak_for_the_rest():
    # 80 chosen ones, then 10 drawn zeros of the 20 left: the mean lies just above 0.8.
    scores = np.concatenate((np.ones(80), np.zeros(10)))
    is_draw = np.arange(90) >= 80
    intervals = FinitePopulationIntervals(1, 100, 0.1)
    intervals.update(np.zeros(90, dtype=int), scores, is_draw)
    assert intervals.lower[0] == pytest.approx(0.8)
    assert 0.8 < intervals.upper[0] < 0.88


def test_in_an_estimate_the_draws_speak_for_what_is_not_told():
    # Told of 20: 10 chosen ones, then draws with the mean 0.25. So (10 + 1 + 6 * 0.25) / 20.
    scores = np.concatenate((np.ones(10), [0.0, 1.0, 0.0, 0.0]))
    intervals = FinitePopulationIntervals(2, 20, 0.1)
    intervals.update(np.zeros(14, dtype=int), scores, np.arange(14) >= 10)
    assert intervals.estimates[0] == pytest.approx(0.625)
    intervals.update(np.ones(4, dtype=int), np.array([1.0, 0.5, np.nan, 1.0]), np.zeros(4, dtype=bool))
    assert intervals.estimates[1] == pytest.approx(2.5 / 3)  # nothing was drawn: what is known

"""Exact tests of the prediction-powered intervals: over all orderings, as properties, against plain ones."""

from functools import cache
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.algorithms.bounds.confidence_sequences import FinitePopulationIntervals
from winnow.algorithms.bounds.prediction_powered import (
    PoweredWealth,
    PredictedDraws,
    PredictionPoweredIntervals,
)

SCORES = np.array([1.0, 0.0, 0.6, 1.0, 0.0, 0.2])
ORDERS = np.array(list(permutations(range(6))))
PREDICTIONS = {
    "exact": SCORES,
    "anti-correlated": 1.0 - SCORES,
    "constant": np.full(6, 0.3),
    "one deviating": np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0]),
}
ALIKE = ((0, 3), (1, 4))
"""Examples with the same scores and predictions above: which of them comes first makes no difference."""
UNLIKE_ORDERS = ORDERS[
    [all(order.index(first) < order.index(second) for first, second in ALIKE) for order in ORDERS.tolist()]
]
every_prediction = pytest.mark.parametrize("predictions", PREDICTIONS.values(), ids=PREDICTIONS)


def draws_of(predictions, order, start, stop):
    """What is announced before the draws from `start` to `stop` of a path."""
    rest = predictions[order[start:]]
    means = np.array([predictions[order[t:]].mean() for t in range(start, stop)])
    return PredictedDraws(predictions[order[start:stop]], means, rest.min(), rest.max())


def capital_path(order, scores, predict, mean, sizes=2, flaw=None):
    """Capital against a mean after each batch; `predict` sees the scores told so far, by example."""
    wealth = PoweredWealth(1, len(scores), 0.2, np.array([mean]))
    capital = []
    for start in range(0, len(scores), sizes):
        stop = min(start + sizes, len(scores))
        seen = order[: stop if flaw == "predictions from the batch" else start]
        told = np.full(len(scores), np.nan)
        told[seen] = scores[seen]
        drawn = draws_of(predict(told), order, start, stop)
        if flaw == "uncentred":
            drawn = PredictedDraws(drawn.values, np.zeros(stop - start), drawn.least, drawn.most)
        wealth.announced = drawn
        wealth.bet(0, scores[order[start:stop]], slice(None))
        capital.append(wealth.capital(0)[0])
    return capital


def capitals(orders, predict, **kwargs):
    """Shape (orders, batches)."""
    return np.array([capital_path(order, SCORES, predict, SCORES.mean(), **kwargs) for order in orders])


@cache
def capitals_of(name, sizes):
    """With the same predictions throughout, shape (180, batches): all orders that differ, equally likely."""
    return capitals(UNLIKE_ORDERS, lambda told: PREDICTIONS[name], sizes=sizes)


@pytest.mark.parametrize("name", PREDICTIONS)
@pytest.mark.parametrize("sizes", [1, 2])
def test_expected_capital_against_the_true_mean_is_exactly_one_after_every_batch(name, sizes):
    assert len(UNLIKE_ORDERS) == 720 // 4
    capital = capitals_of(name, sizes)
    np.testing.assert_allclose(capital.mean(axis=0), 1.0, rtol=1e-9)
    assert capital.min() > 0.0


def refitted(told):
    """Predictions that change with every score told."""
    return np.where(np.isnan(told), 0.5 + 0.5 * np.sin(np.arange(6) + np.nansum(told)), told)


def test_expected_capital_is_one_when_predictions_are_refitted_to_what_was_told():
    capital = capitals(ORDERS, refitted)
    np.testing.assert_allclose(capital.mean(axis=0), 1.0, rtol=1e-9)
    assert capital.min() > 0.0


GRADED = np.array([0.7, 0.3, 0.5, 0.6, 0.4, 0.2])
MILD = np.array([0.5, 0.4, 0.5, 0.8, 0.2, 0.3])


def estimates_over_all_orderings(n_draws, centred=True):
    """Estimates after so many draws, two at a time, in all orders of them; none is clipped."""
    found = []
    for first in permutations(range(6), n_draws):
        order = np.array([*first, *(set(range(6)) - set(first))])
        intervals = PredictionPoweredIntervals(1, 6, 1e-6)
        for start in range(0, n_draws, 2):
            drawn = draws_of(MILD, order, start, start + 2)
            means = drawn.means if centred else np.zeros(2)
            intervals.announce(0, PredictedDraws(drawn.values, means, drawn.least, drawn.most))
            intervals.update(np.zeros(2, dtype=int), GRADED[order[start : start + 2]])
        found.append(intervals.estimates[0])
        known = GRADED[order[:n_draws]].sum() / 6
        assert known < found[-1] < known + (6 - n_draws) / 6 or not centred
    return np.array(found)


@pytest.mark.parametrize("n_draws", [2, 4])
def test_over_all_orderings_the_expected_estimate_is_exactly_the_mean(n_draws):
    estimates = estimates_over_all_orderings(n_draws)
    assert estimates.mean() == pytest.approx(GRADED.mean(), rel=1e-12)
    plain = GRADED.std() * np.sqrt((6 - n_draws) / (5 * n_draws))  # of means of draws without replacement
    assert estimates.std() < 0.95 * plain  # the predictions, which are good, are in them


def test_the_check_of_expected_estimates_catches_controls_that_are_not_centred():
    assert abs(estimates_over_all_orderings(2, centred=False).mean() - GRADED.mean()) > 0.05


@pytest.mark.parametrize("flaw", ["uncentred", "predictions from the batch"])
def test_the_check_of_expected_capital_catches(flaw):
    capital = capitals(ORDERS, refitted, flaw=flaw)
    assert abs(capital.mean(axis=0) - 1.0).max() > 0.01


def test_without_the_range_of_the_controls_capital_can_turn_negative():
    order = np.array([5, 1, 4, 2, 0, 3])
    scores, predictions = np.zeros(6), np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    drawn = draws_of(predictions, order, 0, 1)
    for most, is_positive in ((drawn.most, True), (-np.inf, False)):
        wealth = PoweredWealth(1, 6, 1e-6, np.array([0.02]))
        wealth.announced = PredictedDraws(drawn.values, drawn.means, drawn.least, most)
        wealth.bet(0, scores[:1], slice(None))
        assert (wealth._powered.capital(0)[0] > 0.0) == is_positive


@pytest.mark.parametrize("name", PREDICTIONS)
@pytest.mark.parametrize("level", [0.05, 0.3])
def test_over_all_orderings_the_true_mean_is_refuted_at_most_as_often_as_allowed(name, level):
    capital = capitals_of(name, 2)
    assert (capital.max(axis=1) >= 1.0 / level).mean() <= level


@given(
    scores=st.lists(st.sampled_from([0.0, 1.0]) | st.floats(0.0, 1.0), min_size=2, max_size=30).map(np.array),
    seed=st.integers(0, 99),
)
def test_capital_never_increases_in_the_mean_it_is_against(scores, seed):
    rng = np.random.default_rng(seed)
    predictions, order = rng.random(len(scores)) ** rng.integers(1, 5), rng.permutation(len(scores))
    wealth = PoweredWealth(1, len(scores), 0.01, np.linspace(0.0, 1.0, 101))
    for start in range(0, len(scores) - 1, 4):
        stop = min(start + 4, len(scores) - 1)
        wealth.announced = draws_of(predictions, order, start, stop)
        wealth.bet(0, scores[order[start:stop]], slice(None))
        capital = wealth.capital(0)
        assert (capital >= 0.0).all()
        assert (np.diff(capital) <= 1e-9 * capital[:-1]).all()


def ends(intervals_type, scores, predictions=None, order=None, alpha=0.05, drawn=None, sizes=20):
    """Ends after each batch, shape (batches, 2)."""
    order = np.arange(len(scores)) if order is None else order
    intervals = intervals_type(1, len(scores), alpha)
    found = []
    for start in range(0, drawn or len(scores), sizes):
        stop = min(start + sizes, len(scores))
        if predictions is not None:
            intervals.announce(0, draws_of(predictions, order, start, stop))
        intervals.update(np.zeros(stop - start, dtype=int), scores[order[start:stop]])
        found.append((intervals.lower[0], intervals.upper[0]))
    return np.array(found)


def widths(quality, seed, n=1_000, drawn=300):
    """Widths of the prediction-powered and of the plain interval after 300 draws, for predictions that are
    the share `quality` of the score and else noise.
    """
    rng = np.random.default_rng(seed)
    scores = (rng.random(n) < 0.6).astype(float)
    predictions = abs(quality) * (scores if quality >= 0 else 1 - scores) + (1 - abs(quality)) * rng.random(n)
    order = rng.permutation(n)
    powered = ends(PredictionPoweredIntervals, scores, predictions, order, drawn=drawn)[-1]
    plain = ends(FinitePopulationIntervals, scores, None, order, drawn=drawn)[-1]
    return np.diff(powered)[0], np.diff(plain)[0]


def test_good_predictions_make_intervals_clearly_narrower():
    for seed in range(3):
        powered, plain = widths(0.7, seed)
        assert powered < 0.6 * plain


@pytest.mark.parametrize("quality", [0.0, -0.7], ids=["noise", "anti-correlated"])
def test_useless_predictions_widen_intervals_by_little(quality):
    for seed in range(3):
        powered, plain = widths(quality, seed)
        assert powered < 1.15 * plain


def test_the_upper_end_is_the_lower_end_of_one_minus_scores_and_predictions():
    rng = np.random.default_rng(4)
    scores, predictions = (rng.random(200) < 0.7).astype(float), rng.random(200) ** 3
    found, mirrored = (
        ends(PredictionPoweredIntervals, *each, drawn=100)
        for each in ((scores, predictions), (1.0 - scores, 1.0 - predictions))
    )
    np.testing.assert_allclose(found[:, ::-1], 1.0 - mirrored, atol=1e-9)
    drawn = PredictedDraws(np.array([0.25]), np.array([0.5]), 0.125, 0.75).mirrored()
    assert (drawn.values, drawn.means, drawn.least, drawn.most) == (0.75, 0.5, 0.25, 0.875)


def test_the_weight_becomes_the_share_of_a_prediction_that_is_true():
    rng = np.random.default_rng(0)
    predictions, wealth = rng.random(400).round(), PoweredWealth(1, 400, 0.01, np.array([0.5]))
    order = np.arange(400)
    assert wealth.weight(0) == 0.5
    for start in range(0, 300, 10):
        wealth.announced = draws_of(predictions, order, start, start + 10)
        wealth.bet(0, 0.5 + 0.3 * (predictions[order[start : start + 10]] - 0.5), slice(None))
    assert wealth.weight(0) == pytest.approx(0.3, abs=0.01)


def test_without_announcements_the_intervals_are_the_plain_ones():
    scores = np.random.default_rng(0).random(200)
    np.testing.assert_array_equal(
        ends(PredictionPoweredIntervals, scores), ends(FinitePopulationIntervals, scores)
    )


@every_prediction
def test_the_width_is_exactly_zero_once_every_example_is_scored(predictions):
    last = ends(PredictionPoweredIntervals, SCORES, predictions, sizes=4)[-1]
    assert last[0] == last[1] == pytest.approx(SCORES.mean(), abs=1e-12)


def test_an_unscored_pair_counts_as_zero_below_and_as_one_above():
    rng = np.random.default_rng(3)
    scores, predictions = (rng.random(100) < 0.6).astype(float), rng.random(100)
    scores[rng.random(100) < 0.1] = np.nan
    found, zeros, ones = (
        ends(PredictionPoweredIntervals, each, predictions)
        for each in (scores, np.nan_to_num(scores, nan=0.0), np.nan_to_num(scores, nan=1.0))
    )
    assert found[-1, 1] - found[-1, 0] == pytest.approx(np.isnan(scores).mean())
    assert found[-1, 0] == zeros[-1, 0]
    assert found[-1, 1] == ones[-1, 1]


def test_reading_the_ends_late_or_after_every_update_gives_the_same_bits():
    rng = np.random.default_rng(2)
    often, late = (PredictionPoweredIntervals(2, 60, 0.2) for _ in range(2))
    scores, predictions, order = rng.random((2, 60)), rng.random((2, 60)), rng.permutation(60)
    for start in range(0, 60, 5):
        for arm in (0, 1):
            for intervals in (often, late):
                intervals.announce(arm, draws_of(predictions[arm], order, start, start + 5))
        arms, batch = np.repeat([0, 1], 5), scores[:, order[start : start + 5]].ravel()
        for intervals in (often, late):
            intervals.update(arms, batch)
        assert often.lower.shape == (2,)
    assert np.array_equal(often.lower, late.lower)
    assert np.array_equal(often.upper, late.upper)

"""Exact tests of the betting intervals: against the formula, over all orderings, and as properties."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from literal_betting import literal_capital
from property_settings import tries

from winnow.algorithms.bounds import wealth as module
from winnow.algorithms.bounds.confidence_sequences import EndLevels, FinitePopulationIntervals
from winnow.algorithms.bounds.wealth import Wealth
from winnow.algorithms.errors import InvalidParameter

SMALL_POPULATIONS = {
    "binary": [0, 0, 0, 1, 1, 1],
    "nearly constant": [0.5, 0.5, 0.52, 0.5, 0.49, 0.5],
    "one deviating example": [1, 1, 1, 1, 1, 0],
    "U-shaped": [0, 0.05, 0.9, 1, 0, 1],
}
small_population = pytest.mark.parametrize("scores", SMALL_POPULATIONS.values(), ids=SMALL_POPULATIONS)


def orderings(scores):
    return np.array(list(permutations(scores)), dtype=float)  # (720, 6)


def capital_path(paths, mean, level):
    """Capital against the mean after every draw, one arm per path, shape (P, T)."""
    n_paths, n_draws = paths.shape
    wealth, arms = Wealth(n_paths, n_draws, level, np.array([mean])), np.arange(n_paths)
    capital = np.empty(paths.shape)
    for t in range(n_draws):
        wealth.bet(arms, paths[:, t : t + 1], slice(None))
        capital[:, t] = wealth.capital(arms)[:, 0]
    return capital


def intervals_of(scores, n_examples, alpha=0.1, sizes=1):
    """Ends after every batch of one arm, shapes (T,) and (T,)."""
    intervals = FinitePopulationIntervals(1, n_examples, alpha)
    ends = []
    for start in range(0, len(scores), sizes):
        batch = scores[start : start + sizes]
        intervals.update(np.zeros(len(batch), dtype=int), batch)
        ends.append((intervals.lower[0], intervals.upper[0]))
    return np.array(ends).T


@small_population
def test_capital_equals_the_formula_written_out(scores):
    paths, mean = orderings(scores)[::23], np.mean(scores)
    for m in (0.3 * mean, mean, 0.5 + 0.5 * mean):
        expected = literal_capital(paths, m, 6, level=0.2)
        np.testing.assert_allclose(capital_path(paths, m, level=0.2), expected, rtol=1e-9)


@small_population
def test_expected_capital_against_the_true_mean_is_exactly_one_after_every_draw(scores):
    capital = capital_path(orderings(scores), np.mean(scores), level=0.2)
    np.testing.assert_allclose(capital.mean(axis=0), 1.0, rtol=1e-9)
    assert capital.min() > 0.0


@pytest.mark.parametrize("flaw", ["with replacement", "bet on the current score"])
@pytest.mark.parametrize("population", ["binary", "one deviating example", "U-shaped"])
def test_the_check_of_expected_capital_catches(flaw, population):
    paths = orderings(SMALL_POPULATIONS[population])
    capital = literal_capital(paths, paths[0].mean(), 6, level=0.2, flaw=flaw)
    assert abs(capital.mean(axis=0) - 1.0).max() > 0.05


def test_the_check_of_positive_capital_catches_a_bet_without_a_cap():
    paths = orderings(SMALL_POPULATIONS["one deviating example"])
    assert literal_capital(paths, paths[0].mean(), 6, level=0.2, flaw="no cap").min() < 0.0


@small_population
@pytest.mark.parametrize("level", [0.05, 0.3, 0.6])
def test_over_all_orderings_the_true_mean_is_refuted_at_most_as_often_as_allowed(scores, level):
    capital = capital_path(orderings(scores), np.mean(scores), level)
    assert (capital.max(axis=1) >= 1.0 / level).mean() <= level


def test_the_ends_are_the_formula_rounded_outward_with_half_of_alpha_over_arms_each():
    n_arms, n_examples, alpha, n_draws = 3, 300, 0.3, 80
    rng = np.random.default_rng(5)
    scores = rng.permutation(np.repeat([0.0, 0.25, 1.0], [100, 50, 150]))[:n_draws]
    intervals = FinitePopulationIntervals(n_arms, n_examples, alpha)
    fine = np.linspace(0.0, 1.0, 2001)
    certain, refuted = [], []
    for side in (scores, 1.0 - scores):
        capital = literal_capital(np.tile(side, (2001, 1)), fine, n_examples, level=alpha / (2 * n_arms))
        is_refuted = np.maximum.accumulate(capital >= 2 * n_arms / alpha, axis=1)
        refuted.append((is_refuted * fine[:, np.newaxis]).max(axis=0))
        certain.append(side.cumsum() / n_examples)
    low, high = np.maximum(certain[0], refuted[0]), 1.0 - np.maximum(certain[1], refuted[1])
    cell = 0.5 * np.pi / 1024  # of the grid, where it is widest
    for t in range(n_draws):
        intervals.update(np.array([1]), scores[t : t + 1])
        assert low[t] - cell - 1e-9 <= intervals.lower[1] <= low[t] + 1 / 2000
        assert high[t] - 1 / 2000 <= intervals.upper[1] <= high[t] + cell + 1e-9
    assert high[-1] - low[-1] < 0.35
    assert (intervals.lower[[0, 2]] == 0.0).all()
    assert (intervals.upper[[0, 2]] == 1.0).all()


def test_single_ends_are_those_of_an_arm_alone_at_their_levels_and_the_intervals_hold_all_arms():
    rng = np.random.default_rng(9)
    single = FinitePopulationIntervals(5, 300, 0.1, single=EndLevels(lower=0.02, upper=0.05))
    at_lower, at_upper = (FinitePopulationIntervals(1, 300, 2 * level) for level in (0.02, 0.05))
    scores = rng.permutation(np.repeat([0.0, 0.5, 1.0], 100))[:200]
    for start in range(0, 200, 8):
        batch = scores[start : start + 8]
        single.update(np.full(len(batch), 3), batch)
        for alone in (at_lower, at_upper):
            alone.update(np.zeros(len(batch), dtype=int), batch)
        assert single.single_lower[3] == at_lower.lower[0]
        assert single.single_upper[3] == at_upper.upper[0]
        assert single.lower[3] <= single.single_lower[3] <= single.single_upper[3] <= single.upper[3]
    assert single.single_upper[3] < single.upper[3]
    plain = FinitePopulationIntervals(5, 300, 0.1)
    plain.update(np.full(200, 3), scores)
    assert plain.single_lower[3] == plain.lower[3]
    assert plain.single_upper[3] == plain.upper[3]


@tries(40)
@given(seed=st.integers(0, 10_000), size=st.integers(1, 30))
def test_ends_never_cross_whatever_comes_in_whatever_order(seed, size):
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.random(120) < rng.random())[:: rng.choice([-1, 1])].astype(float)
    intervals = FinitePopulationIntervals(20, 120, 0.1, single=EndLevels(lower=0.3, upper=0.4))
    lower, upper = [0.0], [1.0]
    for start in range(0, 120, size):
        batch = scores[start : start + size]
        intervals.update(np.zeros(len(batch), dtype=int), batch)
        lower.append(intervals.single_lower[0])
        upper.append(intervals.single_upper[0])
        assert lower[-1] <= upper[-1]
        assert intervals.lower[0] <= intervals.upper[0]
    assert lower[-1] == upper[-1] == pytest.approx(scores.mean(), abs=1e-12)


def test_reading_the_ends_late_or_after_every_update_gives_the_same_bits():
    rng = np.random.default_rng(2)
    often, late = (FinitePopulationIntervals(4, 50, 0.2) for _ in range(2))
    for _ in range(20):
        arms, scores = rng.integers(4, size=6), rng.random(6)
        for intervals in (often, late):
            intervals.update(arms, scores)
        assert often.lower.shape == (4,)
    assert np.array_equal(often.lower, late.lower)
    assert np.array_equal(often.upper, late.upper)


def test_arms_told_together_have_the_bits_of_arms_told_one_by_one_whoever_shares_their_scores():
    rng = np.random.default_rng(8)
    n_arms, single = 50, EndLevels(lower=0.02, upper=0.05)
    together, alone = (FinitePopulationIntervals(n_arms, 400, 0.2, single=single) for _ in range(2))
    scores = rng.choice([0.0, 1.0, np.nan], p=[0.3, 0.65, 0.05], size=(n_arms, 400))
    scores[40:] = rng.random((10, 400))
    scores[20:40] = scores[:20]  # until the last round tells them more
    told = 0
    for size in (1, 1, 2, 3, 30, 90):
        asked = np.full(n_arms, told + size)
        asked[rng.random(n_arms) < 0.2] = told  # these are told nothing in this round
        asked[20:40] = asked[:20] if size < 90 else told + 5
        arms, places = np.nonzero((np.arange(400) >= told) & (np.arange(400) < asked[:, np.newaxis]))
        order = rng.permutation(n_arms)[arms].argsort(kind="stable")
        together.update(arms[order], scores[arms, places][order])
        for arm in range(n_arms):
            if (arms == arm).any():
                alone.update(np.full((arms == arm).sum(), arm), scores[arm, places[arms == arm]])
        for name in ("lower", "upper", "single_lower", "single_upper", "estimates"):
            assert getattr(together, name).tobytes() == getattr(alone, name).tobytes(), (name, size)
        told += size
    assert together.lower.max() > 0.5


def test_capital_has_the_same_bits_however_many_draws_are_worked_out_at_once(monkeypatch):
    scores, found = np.random.default_rng(3).random((3, 200)), []
    for most in (1, 700, 10**9):
        monkeypatch.setattr(module, "MOST_FACTORS", most)
        wealth = Wealth(3, 300, 0.01, np.linspace(0.0, 1.0, 21))
        wealth.bet(np.arange(3), scores, slice(None))
        found.append(wealth.capital(np.arange(3)).tobytes())
    assert found[0] == found[1] == found[2]


any_score = st.sampled_from([0.0, 1.0]) | st.floats(0.0, 1.0)
any_scores = st.lists(any_score, min_size=1, max_size=40).map(np.array)


@given(scores=any_scores, unseen=st.integers(0, 20), sizes=st.integers(1, 9))
def test_intervals_are_ordered_and_only_certainty_undoes_what_was_refuted(scores, unseen, sizes):
    n_examples = len(scores) + unseen
    lower, upper = intervals_of(scores, n_examples, sizes=sizes)
    drawn = np.minimum(np.arange(1, len(lower) + 1) * sizes, len(scores))
    sums = scores.cumsum()[drawn - 1]
    least, most = sums / n_examples, (sums + n_examples - drawn) / n_examples
    assert (lower <= upper).all()
    assert (least <= lower + 1e-12).all()
    assert (upper <= most + 1e-12).all()
    assert (lower[1:] >= np.minimum(lower[:-1], most[1:]) - 1e-12).all()
    assert (upper[1:] <= np.maximum(upper[:-1], least[1:]) + 1e-12).all()


@given(scores=any_scores)
def test_the_width_is_exactly_zero_once_every_example_is_scored(scores):
    lower, upper = intervals_of(scores, len(scores), sizes=7)
    assert lower[-1] == upper[-1] == pytest.approx(scores.mean(), abs=1e-12)


def test_an_estimate_is_the_plain_mean_of_the_scores_bit_for_bit_inside_its_interval():
    rng = np.random.default_rng(6)
    intervals, scores, told = FinitePopulationIntervals(3, 90, 0.1), rng.random((2, 90)), [[], []]
    scores[rng.random((2, 90)) < 0.1] = np.nan
    for start in range(0, 90, 9):
        for arm in range(2):
            batch = scores[arm, start : start + 9]
            intervals.update(np.full(9, arm), batch)
            told[arm].append(np.nan_to_num(batch).cumsum()[-1])
            estimate, n_scored = intervals.estimates[arm], (~np.isnan(scores[arm, : start + 9])).sum()
            assert estimate == np.cumsum(told[arm])[-1] / n_scored
            assert intervals.lower[arm] <= estimate <= intervals.upper[arm]
    assert np.isnan(intervals.estimates[2])


def test_an_estimate_outside_its_interval_is_brought_to_its_end():
    # An order that no draw would give: the interval is wrong, and the estimate stays with it.
    intervals = FinitePopulationIntervals(1, 2_000, 0.5)
    for worth in (0.0, 1.0):
        intervals.update(np.zeros(900, dtype=int), np.full(900, worth))
    assert intervals.upper[0] < 0.5
    assert intervals.estimates[0] == intervals.upper[0]


def test_once_all_is_told_only_what_is_unscored_is_left_open_whatever_was_refuted():
    # Bets on an order that no draw would give refute the truth; then it becomes known.
    scores = np.repeat([0.0, 1.0, np.nan], [900, 900, 200])
    lower, upper = intervals_of(scores, 2_000, alpha=0.5, sizes=100)
    assert upper[8] < 0.5
    assert (lower[-1], upper[-1]) == (0.45, 0.55)


@pytest.mark.parametrize("seed", range(2))
def test_an_unscored_pair_counts_as_zero_below_and_as_one_above(seed):
    rng = np.random.default_rng(seed)
    scores = np.where(rng.random(200) < 0.1, np.nan, rng.random(200) < 0.6)
    lower, upper = intervals_of(scores, 200, alpha=0.001)
    as_zeros = intervals_of(np.nan_to_num(scores, nan=0.0), 200, alpha=0.001)
    as_ones = intervals_of(np.nan_to_num(scores, nan=1.0), 200, alpha=0.001)
    assert np.array_equal(lower, as_zeros[0])
    assert np.array_equal(upper, as_ones[1])
    assert upper[-1] - lower[-1] == pytest.approx(np.isnan(scores).mean())


@given(scores=any_scores, n_examples=st.integers(40, 90))
def test_capital_never_increases_in_the_mean_it_is_against(scores, n_examples):
    wealth = Wealth(1, n_examples, 0.01, np.linspace(0.0, 1.0, 101))
    wealth.bet(0, scores, slice(None))
    capital = wealth.capital(0)
    assert (np.diff(capital) <= 1e-9 * capital[:-1]).all()


def test_lost_capital_stays_lost_when_a_batch_would_multiply_it_beyond_all_numbers():
    wealth = Wealth(1, 10_000, 0.01, np.array([0.01, 0.1, 0.5]))
    wealth.bet(0, np.zeros(3_000), slice(None))
    assert wealth.capital(0)[-1] == 0.0
    wealth.bet(0, np.ones(3_000), slice(None))
    assert wealth.capital(0)[-1] == 0.0


def test_the_most_surprising_order_neither_overflows_nor_loses_the_interval():
    scores = np.repeat([0.0, 1.0, 0.0], [3_000, 4_000, 3_000])
    lower, upper = intervals_of(scores, 10_000, sizes=1_000)
    assert np.isfinite(lower).all()
    assert np.isfinite(upper).all()
    assert lower[-1] == upper[-1] == 0.4


def test_an_alpha_that_is_no_probability_is_refused():
    with pytest.raises(InvalidParameter, match=r"alpha must be in \(0, 1\), got 0.0"):
        FinitePopulationIntervals(2, 10, 0.0)

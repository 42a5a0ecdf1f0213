import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit

from winnow.algorithms.best_duel import bradley_terry as module
from winnow.algorithms.best_duel.bradley_terry import bradley_terry_strengths


def duels(strengths, count, seed=0):
    rng = np.random.default_rng(seed)
    size = len(strengths)
    counts = np.full((size, size), count)
    np.fill_diagonal(counts, 0)
    wins = np.triu(rng.binomial(counts, expit(np.subtract.outer(strengths, strengths))), 1).astype(float)
    return wins + np.tril(counts - wins.T, -1), counts


def test_two_arms_have_the_log_odds_of_their_duels(monkeypatch):
    monkeypatch.setattr(module, "RIDGE", 1e-12)
    found = bradley_terry_strengths(np.array([[0, 30.0], [10.0, 0]]), np.array([[0, 40], [40, 0]]))
    assert found.values == pytest.approx([np.log(3) / 2, -np.log(3) / 2])
    # The log-odds of 40 coins with p = 3/4 have the variance 1 / (40 p (1 - p)); a strength is half of them.
    half = 1.959964 / 2 / np.sqrt(40 * 3 / 16)
    assert found.upper - found.values == pytest.approx([half, half], rel=1e-6)
    assert found.values - found.lower == pytest.approx([half, half], rel=1e-6)


@given(st.integers(0, 2**32 - 1))
def test_relabelled_arms_keep_their_strengths_and_ties_are_half_wins(seed):
    wins, counts = duels(np.array([0.5, 0.0, -0.2, -0.3]), 6, seed)
    order = np.random.default_rng(seed).permutation(4)
    found = bradley_terry_strengths(wins, counts)
    turned = bradley_terry_strengths(wins[np.ix_(order, order)], counts)
    for mine, theirs in zip(found, turned, strict=True):
        np.testing.assert_allclose(mine[order], theirs, atol=1e-8)
    assert found.values.sum() == pytest.approx(0.0, abs=1e-9)
    np.testing.assert_allclose(bradley_terry_strengths(counts / 2, counts).values, 0.0, atol=1e-9)


def test_an_arm_that_never_lost_is_strong_and_one_that_never_met_anyone_unknown():
    wins, counts = np.zeros((3, 3)), np.zeros((3, 3), dtype=int)
    wins[0, 1] = counts[0, 1] = counts[1, 0] = 5
    found = bradley_terry_strengths(wins, counts)
    assert 1.0 < found.values[0] < 10.0
    assert np.isnan([ends[2] for ends in found]).all()
    assert np.isnan(bradley_terry_strengths(np.zeros((2, 2)), np.zeros((2, 2), dtype=int)).values).all()


@pytest.mark.statistical
def test_the_intervals_hold_the_strengths_about_as_often_as_they_say():
    # 600 intervals, of which each 4 go together: the share inside has a deviation of at most 0.018 around
    # 0.95 if they were wholly dependent; below 0.9 about once in 300 seeds. Half as wide, they hold 0.67.
    truth = np.array([0.6, 0.1, -0.2, -0.5])
    inside = halved = 0
    for seed in range(150):
        values, lower, upper = bradley_terry_strengths(*duels(truth, 40, seed))
        inside += ((lower <= truth) & (truth <= upper)).sum()
        halved += (np.abs(truth - values) <= (upper - lower) / 4).sum()
    assert inside / 600 > 0.9
    assert halved / 600 < 0.9

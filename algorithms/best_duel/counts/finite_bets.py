"""Bets on the duels of a pair that meets every example at most once, drawn without replacement.

n examples, each with one outcome x in [0, 1] for an arm, which the hypothesis says have a mean of at most m;
of t duels told so far the arm gained S.
"""

import numpy as np
from scipy.special import betainc, betaincinv

from winnow.algorithms.best_duel.counts.half_mixture import beta_parameters
from winnow.algorithms.state.arrays import FloatArray, IntArray

NODES = 8  # bets for each Beta distribution of the half mixture
MOST_STAKED = 0.9  # share of the wealth that one duel may cost
ROUNDING = 1e-9  # sums of outcomes are believed to be right up to this


class FiniteBets:
    """The wealth of bets that an arm's mean over all n examples is above m, for every ordered pair of arms.

    A duel multiplies it by 1 + c (x / m_t - 1), m_t = (n m - S) / (n - t): that is 1 + lambda (x - m_t) with
    lambda = c / m_t. Under the hypothesis m_t bounds the mean of the next outcome, a uniform draw from what
    the pair has not met, so the wealth is a non-negative supermartingale that starts at 1, however pairs are
    chosen from earlier outcomes. It is averaged over constant c of which the largest is 0.9. They are the
    bets of the half mixture, at quantiles of its weights: with many examples left, the two are about equal.

    Once S is above n m the arm's mean is above m for certain, and the wealth is infinite. Where all that is
    left would not lift S above n m it is not, and the wealth is given away: it counts as 0.

    An unscored duel counts as x = 0 on both sides, its worst case on either, as wealth does not decrease
    when an outcome is raised: a higher x gains more at once and lowers every later m_t.

    Source: Waudby-Smith and Ramdas (2020), "Confidence sequences for sampling without replacement", NeurIPS.
    """

    def __init__(self, n_arms: int, n_examples: int, least: float) -> None:
        self._n_examples = n_examples
        self._goal = n_examples * least
        self._stakes = _stakes(least)  # (J,)
        self._told = np.zeros((n_arms, n_arms), dtype=np.int64)  # (K, K)
        self._gains = np.zeros((n_arms, n_arms))  # (K, K) S of the column against the row
        self._log_wealth = np.zeros((n_arms, n_arms, len(self._stakes)))  # (K, K, J)

    def bet(self, first: int, second: int, outcome: float) -> None:
        """Take over the next duel of a pair: its outcome for the first arm, NaN where unscored."""
        is_scored = outcome == outcome  # not NaN
        self._bet(second, first, outcome if is_scored else 0.0)
        self._bet(first, second, 1.0 - outcome if is_scored else 0.0)

    def log_wealth(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """The logarithm of the wealth for the column's mean against the row, shape (M,), of M pairs."""
        parts = self._log_wealth[rows, columns]  # (M, J)
        highest = parts.max(axis=1)
        average = highest + np.log(np.exp(parts - highest[:, np.newaxis]).mean(axis=1))
        gains, left = self._gains[rows, columns], self._n_examples - self._told[rows, columns]
        is_hopeless = gains + left <= self._goal + ROUNDING
        wealth: FloatArray = np.where(is_hopeless, -np.inf, average)
        return np.where(gains > self._goal + ROUNDING, np.inf, wealth)

    def _bet(self, row: int, column: int, outcome: float) -> None:
        mean = (self._goal - self._gains[row, column]) / (self._n_examples - self._told[row, column])
        if mean > ROUNDING:  # else nothing is left to lose on: any gain makes it certain
            self._log_wealth[row, column] += np.log1p(self._stakes * (outcome / mean - 1.0))
        self._told[row, column] += 1
        self._gains[row, column] += outcome


def _stakes(least: float) -> FloatArray:
    """The c of the bets: (q - m) / (1 - m) for quantiles q of the half mixture's weights, shape (J,)."""
    places = (np.arange(NODES) + 0.5) / NODES
    quantiles = [
        betaincinv(up, down, below + (1.0 - below) * places)
        for up, down in beta_parameters(least)
        for below in [betainc(up, down, least)]
    ]
    return np.minimum((np.concatenate(quantiles) - least) / (1.0 - least), MOST_STAKED)

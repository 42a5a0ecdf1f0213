"""Bets on the duels of a pair whose examples are drawn without replacement.

Each of n examples has one outcome x in [0, 1] for an arm. Under the hypothesis their mean is at most m. In
the t duels observed so far the arm gained S.
"""

import numpy as np
from scipy.special import betainc, betaincinv

from winnow.algorithms.bounds.half_mixture import beta_parameters
from winnow.algorithms.state.arrays import FloatArray, IntArray

NODES = 8  # bets per Beta distribution of the half mixture
MOST_STAKED = 0.9  # largest share of the wealth that one duel can cost
ROUNDING = 1e-9  # tolerance for sums of outcomes


class FiniteBets:
    """Wealth of bets that an arm's mean over all n examples exceeds m, per ordered pair of arms.

    A duel multiplies it by 1 + c (x / m_t - 1), m_t = (n m - S) / (n - t): that is 1 + lambda (x - m_t) with
    lambda = c / m_t. Under the hypothesis m_t bounds the mean of the next outcome, a uniform draw from the
    examples that the pair has not used, so the wealth is a non-negative supermartingale that starts at 1under
    any choice of pairs by earlier outcomes. It is averaged over constant values of c, the largest of them
    0.9. They are the bets of the half mixture at quantiles of its weights: with many examples left, the two
    wealths are about equal.

    Once S is above n m, the arm's mean certainly exceeds m, and the wealth is infinite. If the remaining
    examples cannot lift S above n m, the mean certainly does not exceed m, and the wealth counts as 0.

    An unscored duel counts as x = 0 for both arms, the worst case for each: a higher x gains more at once and
    lowers every later m_t, so wealth does not decrease in x.

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
        """Absorb the next duel of a pair: the outcome for the first arm, NaN if unscored."""
        is_scored = outcome == outcome  # not NaN
        self._bet(second, first, outcome if is_scored else 0.0)
        self._bet(first, second, 1.0 - outcome if is_scored else 0.0)

    def log_wealth(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Log wealth for the column's mean against the row, shape (M,), for M pairs."""
        parts = self._log_wealth[rows, columns]  # (M, J)
        highest = parts.max(axis=1)
        average = highest + np.log(np.exp(parts - highest[:, np.newaxis]).mean(axis=1))
        gains, left = self._gains[rows, columns], self._n_examples - self._told[rows, columns]
        is_hopeless = gains + left <= self._goal + ROUNDING
        wealth: FloatArray = np.where(is_hopeless, -np.inf, average)
        return np.where(gains > self._goal + ROUNDING, np.inf, wealth)

    def _bet(self, row: int, column: int, outcome: float) -> None:
        mean = (self._goal - self._gains[row, column]) / (self._n_examples - self._told[row, column])
        if mean > ROUNDING:  # else nothing is left to lose: any gain makes it certain
            self._log_wealth[row, column] += np.log1p(self._stakes * (outcome / mean - 1.0))
        self._told[row, column] += 1
        self._gains[row, column] += outcome


def _stakes(least: float) -> FloatArray:
    """Bet sizes c = (q - m) / (1 - m) for quantiles q of the half mixture's weights, shape (J,)."""
    places = (np.arange(NODES) + 0.5) / NODES
    quantiles = [
        betaincinv(up, down, below + (1.0 - below) * places)
        for up, down in beta_parameters(least)
        for below in [betainc(up, down, least)]
    ]
    return np.minimum((np.concatenate(quantiles) - least) / (1.0 - least), MOST_STAKED)

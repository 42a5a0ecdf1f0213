"""Wealth of arms that bet, on the common examples of a race, that they are not above another arm by epsilon.

Letters: a the other arm; D = x_a - x_i on a common example, an unscored one counting 0 for a and 1 for i;
r = -(N epsilon + sum of D so far) / (N - t), the most that the mean of D over the examples not told can be if
arm i is above arm a by epsilon. Where examples have weights, sums of D are weighted by them, and
N - t is the weight of what was not told.
"""

import numpy as np

from winnow.algorithms.champion.race import BETS, Columns, Race, log_growth
from winnow.algorithms.champion.wealth import HIGHEST_LOG
from winnow.algorithms.state.arrays import FloatArray

SHARE_OF_FIXED = 0.5  # of the stake; the rest is bet adaptively
LEAST_LEAD = 1.0  # of epsilon: what a lead and epsilon are taken for where less was seen


class WithinEpsilon:
    """The wealths of all arms with regard to one of them, worked out from what a race was told.

    With regard to an arm a, the wealth of an arm whose mean is above a's by epsilon or more is a non-negative
    supermartingale from 1. Which arm a is may be chosen in sight of everything, where each arm bets 1/(K - 1)
    of a stake with regard to each other one: what it has with regard to one of them is a part of all it has.

    Args:
        race: What it was told is bet on.
        n_examples: N.
        epsilon: Above 0.
    """

    def __init__(self, race: Race, n_examples: int, epsilon: float) -> None:
        self._race, self._n_examples, self._epsilon = race, n_examples, epsilon
        self._begin(-1)

    def wealths(self, arm: int) -> FloatArray:
        """Of all K arms with regard to `arm`; 1 for those that were told nothing together with it."""
        if arm != self._arm or len(self._race.columns) != len(self._sums):
            self._begin(arm)
        for columns in self._race.told[self._n_played :]:
            self._n_played += 1
            if (columns.arms == arm).any():
                self._play(columns)
        of_bets = np.exp(np.minimum(self._logs, HIGHEST_LOG))
        fixed = of_bets[:, :-1].mean(axis=1)
        return np.asarray(SHARE_OF_FIXED * fixed + (1.0 - SHARE_OF_FIXED) * of_bets[:, -1])

    def _begin(self, arm: int) -> None:
        """Bet anew on all that was told."""
        n_arms = len(self._race.columns)
        self._arm = arm
        self._n_played, self._n_columns, self._weight = 0, 0, 0.0  # batches; examples and their weight
        self._logs = np.zeros((n_arms, len(BETS) + 1))  # (K, 5), the adaptive one last
        self._sums = np.zeros(n_arms)  # (K,) of D times the weights
        self._leads = np.zeros(n_arms)  # (K,) of D + epsilon
        self._squares = np.zeros(n_arms)  # (K,) of (D + epsilon)^2

    def _play(self, columns: Columns) -> None:
        arms, scores, weights = columns
        own = np.nan_to_num(scores[arms == self._arm], nan=0.0)  # (1, B)
        lead = own - np.nan_to_num(scores, nan=1.0)  # (A, B) D
        worth = weights * lead
        before = self._sums[arms][:, np.newaxis] + worth.cumsum(axis=1) - worth
        left = self._n_examples - self._weight - (weights.cumsum() - weights)  # (B,)
        left = np.maximum(left, weights)  # rounding may take more off than there is
        level = -(self._n_examples * self._epsilon + before) / left  # r
        self._logs[arms] += log_growth(lead, level, self._n_examples / left, self._adaptive_bets()[arms])
        self._n_columns += len(weights)
        self._weight += float(weights.sum())
        self._sums[arms] += worth.sum(axis=1)
        self._leads[arms] += (lead + self._epsilon).sum(axis=1)
        self._squares[arms] += ((lead + self._epsilon) ** 2).sum(axis=1)

    def _adaptive_bets(self) -> FloatArray:
        """What the leads so far call for, shape (K,)."""
        t = self._n_columns
        moment = (self._squares + 0.1) / (t + 1)
        return np.asarray(np.maximum(self._leads / max(t, 1), LEAST_LEAD * self._epsilon) / moment)

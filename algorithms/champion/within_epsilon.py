"""Wealth of arms that bet, on the common examples of a race, that they are not above another arm by epsilon.

Letters: a the other arm; D = x_a - x_i on a common example, an unscored one counting 0 for a and 1 for i;
r = -(N epsilon + sum of D so far) / (N - t), the most that the mean of D over the examples not told can be if
arm i is above arm a by epsilon. Where examples have weights, sums of D are weighted by them, and N - t is the
weight of what was not told. A is the number of arms that the race began with.
"""

import numpy as np

from winnow.algorithms.champion.race import BETS, Columns, Race, log_growth
from winnow.algorithms.champion.wealth import HIGHEST_LOG
from winnow.algorithms.state.arrays import FloatArray, IntArray

SHARE_OF_FIXED = 0.5  # of the stake; the rest is bet adaptively
LEAST_LEAD = 1.0  # of epsilon: what a lead and epsilon are taken for where less was seen


class WithinEpsilon:
    """The wealth of each arm with regard to one other arm, its stake having been divided among all others.

    With regard to an arm a, the wealth of an arm whose mean is above a's by epsilon or more is a non-negative
    supermartingale. It begins at 1/(A - 1), so that those with regard to all other arms begin at 1 together:
    which arm a is may be chosen in sight of everything.

    Args:
        race: The race; what it was told is bet on.
        n_examples: N.
        epsilon: Above 0.
    """

    def __init__(self, race: Race, n_examples: int, epsilon: float) -> None:
        self._race, self._n_examples, self._epsilon = race, n_examples, epsilon
        self._by_arm: dict[int, _Bets] = {}

    def wealths(self, arms: IntArray, other: int) -> FloatArray:
        """Wealths of some arms with regard to another, shape (A,); 0 where no example was told of both."""
        told = self._race.told
        if not told or other not in told[0].arms:  # arms that came later bet nothing, and none on them
            return np.zeros(len(arms))
        bets = self._by_arm.setdefault(other, _Bets(other, told[0].arms, self._n_examples, self._epsilon))
        bets.play(told)
        found = bets.wealths / (len(bets.arms) - 1)
        place = np.searchsorted(bets.arms, arms).clip(max=len(found) - 1)
        return np.where((bets.arms[place] == arms) & (arms != other), found[place], 0.0)


class _Bets:
    """The bets of all arms that a race began with, with regard to one of them."""

    def __init__(self, other: int, arms: IntArray, n_examples: int, epsilon: float) -> None:
        self.arms = arms
        """Shape (A,), ascending."""
        self._other, self._n_examples, self._epsilon = other, n_examples, epsilon
        self._n_batches, self._n_columns, self._weight = 0, 0, 0.0  # played; its examples and their weight
        self._logs = np.zeros((len(arms), len(BETS) + 1))  # (A, 5), the adaptive one last
        self._worth = np.zeros(len(arms))  # (A,) sums of D times the weights
        self._leads = np.zeros(len(arms))  # (A,) sums of D + epsilon
        self._squares = np.zeros(len(arms))  # (A,) sums of (D + epsilon)^2

    @property
    def wealths(self) -> FloatArray:
        """The wealths from a stake of 1, shape (A,)."""
        of_bets = np.exp(np.minimum(self._logs, HIGHEST_LOG))
        fixed = of_bets[:, :-1].mean(axis=1)
        return np.asarray(SHARE_OF_FIXED * fixed + (1.0 - SHARE_OF_FIXED) * of_bets[:, -1])

    def play(self, told: list[Columns]) -> None:
        """Bet on the columns not bet on yet, as long as the other arm was in the race."""
        for columns in told[self._n_batches :]:
            self._n_batches += 1
            if (columns.arms == self._other).any():
                self._bet(*columns)

    def _bet(self, arms: IntArray, scores: FloatArray, weights: FloatArray) -> None:
        mine = np.searchsorted(self.arms, arms)
        own = np.nan_to_num(scores[arms == self._other], nan=0.0)  # (1, B)
        lead = own - np.nan_to_num(scores, nan=1.0)  # (A', B) D of the arms still in the race
        worth = weights * lead
        before = self._worth[mine][:, np.newaxis] + worth.cumsum(axis=1) - worth
        left = self._n_examples - self._weight - (weights.cumsum() - weights)  # (B,)
        left = np.maximum(left, weights)  # rounding may take more off than there is
        level = -(self._n_examples * self._epsilon + before) / left  # r
        self._logs[mine] += log_growth(lead, level, self._n_examples / left, self._adaptive[mine])
        self._n_columns += len(weights)
        self._weight += float(weights.sum())
        self._worth[mine] += worth.sum(axis=1)
        self._leads[mine] += (lead + self._epsilon).sum(axis=1)
        self._squares[mine] += ((lead + self._epsilon) ** 2).sum(axis=1)

    @property
    def _adaptive(self) -> FloatArray:
        """The bets that the leads so far call for, shape (A,)."""
        moment = (self._squares + 0.1) / (self._n_columns + 1)
        lead = self._leads / max(self._n_columns, 1)
        return np.asarray(np.maximum(lead, LEAST_LEAD * self._epsilon) / moment)

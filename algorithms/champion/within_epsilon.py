"""Wealth of bets in a race that an arm does not exceed another arm by epsilon.

Letters: a is the other arm. D = x_a - x_i on a common example, where an unscored score counts as 0 for a and
as 1 for i. r = -(N epsilon + sum of D so far) / (N - t) is the largest possible mean of D over the unobserved
examples if arm i exceeds arm a by epsilon. If examples have weights, sums of D are weighted, and N - t is the
weight of the unobserved examples. A is the number of arms at the start of the race.
"""

import numpy as np

from winnow.algorithms.champion.race import BETS, Columns, Race, log_growth
from winnow.algorithms.champion.wealth import HIGHEST_LOG
from winnow.algorithms.state.arrays import FloatArray, IntArray

SHARE_OF_FIXED = 0.5  # share of the stake on fixed bets; the rest is bet adaptively
LEAST_LEAD = 1.0  # in units of epsilon: smallest sum of lead and epsilon that adaptive bets assume


class WithinEpsilon:
    """Wealth of each arm in bets against one other arm.

    Its stake is divided among all others. If an arm's mean exceeds that of arm a by epsilon or more, its
    wealth in bets against a is a non-negative supermartingale. This wealth starts at 1/(A - 1), so an arm's
    wealths against all other arms together start at 1: the arm a can be chosen by any observations.

    Args:
        race: The race whose observations are bet on.
        n_examples: N.
        epsilon: Above 0.
    """

    def __init__(self, race: Race, n_examples: int, epsilon: float) -> None:
        self._race, self._n_examples, self._epsilon = race, n_examples, epsilon
        self._by_arm: dict[int, _Bets] = {}

    def revise(self) -> None:
        """Compute all wealths anew, because missing scores of the race were replaced."""
        self._by_arm.clear()

    def wealths(self, arms: IntArray, other: int) -> FloatArray:
        """Wealths of some arms in bets against another arm, shape (A,).

        0 if the two arms have no common example from the race.
        """
        told = self._race.told
        # arms added after the start of the race make no bets, and no bets are made against them
        if not told or other not in told[0].arms:
            return np.zeros(len(arms))
        bets = self._by_arm.setdefault(other, _Bets(other, told[0].arms, self._n_examples, self._epsilon))
        bets.play(told)
        found = bets.wealths / (len(bets.arms) - 1)
        place = np.searchsorted(bets.arms, arms).clip(max=len(found) - 1)
        return np.where((bets.arms[place] == arms) & (arms != other), found[place], 0.0)


class _Bets:
    """Bets of all arms at the start of a race against one of them."""

    def __init__(self, other: int, arms: IntArray, n_examples: int, epsilon: float) -> None:
        self.arms = arms
        """Shape (A,), ascending."""
        self._other, self._n_examples, self._epsilon = other, n_examples, epsilon
        # number of batches bet on, their examples, and the weight of these
        self._n_batches, self._n_columns, self._weight = 0, 0, 0.0
        self._logs = np.zeros((len(arms), len(BETS) + 1))  # (A, 5), the adaptive one last
        self._worth = np.zeros(len(arms))  # (A,) sums of D times the weights
        self._leads = np.zeros(len(arms))  # (A,) sums of D + epsilon
        self._squares = np.zeros(len(arms))  # (A,) sums of (D + epsilon)^2

    @property
    def wealths(self) -> FloatArray:
        """Wealths from a stake of 1, shape (A,)."""
        of_bets = np.exp(np.minimum(self._logs, HIGHEST_LOG))
        fixed = of_bets[:, :-1].mean(axis=1)
        return np.asarray(SHARE_OF_FIXED * fixed + (1.0 - SHARE_OF_FIXED) * of_bets[:, -1])

    def play(self, told: list[Columns]) -> None:
        """Bet on the columns that were not bet on yet and that contain the other arm."""
        for columns in told[self._n_batches :]:
            self._n_batches += 1
            if (columns.arms == self._other).any():
                self._bet(columns)

    def _bet(self, columns: Columns) -> None:
        weights, mine = columns.weights, np.searchsorted(self.arms, columns.arms)
        lead = self._lead(columns, columns.latest)
        worth = weights * lead
        before = self._worth[mine][:, np.newaxis] + worth.cumsum(axis=1) - worth
        left = self._n_examples - self._weight - (weights.cumsum() - weights)  # (B,)
        left = np.maximum(left, weights)  # rounding must not make it smaller than the draw's own weight
        level = -(self._n_examples * self._epsilon + before) / left  # r
        self._logs[mine] += log_growth(lead, level, self._n_examples / left, self._adaptive[mine, np.newaxis])
        self._n_columns += len(weights)
        self._weight += float(weights.sum())
        self._worth[mine] += worth.sum(axis=1)
        at_first = lead if columns.revised is None else self._lead(columns, columns.scores)
        self._leads[mine] += (at_first + self._epsilon).sum(axis=1)
        self._squares[mine] += ((at_first + self._epsilon) ** 2).sum(axis=1)

    def _lead(self, columns: Columns, scores: FloatArray) -> FloatArray:
        """D of the arms still in the race, shape (A', B)."""
        own = np.nan_to_num(scores[columns.arms == self._other], nan=0.0)  # (1, B)
        return np.asarray(own - np.nan_to_num(scores, nan=1.0))

    @property
    def _adaptive(self) -> FloatArray:
        """Adaptive bets from the leads so far, shape (A,)."""
        moment = (self._squares + 0.1) / (self._n_columns + 1)
        lead = self._leads / max(self._n_columns, 1)
        return np.asarray(np.maximum(lead, LEAST_LEAD * self._epsilon) / moment)

"""Wealth of bets in a race that an arm does not exceed another arm by a margin, for any margin.

The letters are those of `within_epsilon`, with the margin x in the place of epsilon. The bets are stored with
the columns and do not depend on x, so that a wealth does not decrease in x.
"""

from typing import NamedTuple

import numpy as np

from winnow.algorithms.champion.race import BETS, FIRST_ADAPTIVE, LEAST_LEAD, Columns, log_growth
from winnow.algorithms.champion.wealth import HIGHEST_LOG
from winnow.algorithms.champion.within_epsilon import SHARE_OF_FIXED
from winnow.algorithms.state.arrays import FloatArray, IntArray


class PairBets(NamedTuple):
    """Bets of the A arms with which a race began, with regard to one of them, on T columns."""

    arms: IntArray
    """Shape (A,), ascending."""
    lead: FloatArray
    """Shape (A, T), D; NaN where the arm was not in the race any longer."""
    before: FloatArray
    """Shape (A, T), weighted sums of D before each column."""
    left: FloatArray
    """Shape (T,), weight of the examples unobserved before each column."""
    adaptive: FloatArray
    """Shape (A, T), adaptive bets."""
    n_examples: int
    """N."""

    @classmethod
    def of(cls, told: list[Columns], other: int, n_examples: int, epsilon: float) -> "PairBets":
        """The bets of a race with regard to one arm, on the columns that were told while it was in the race.

        Args:
            told: The columns, at least one batch; the arm is in the first.
            other: The arm a.
            n_examples: N.
            epsilon: A margin to fit the adaptive bets to; 0 to fit them to the leads alone.
        """
        arms = told[0].arms
        batches = [each for each in told if (each.arms == other).any()]
        sizes = [len(each.weights) for each in batches]
        weights = np.concatenate([each.weights for each in batches])  # (T,)
        lead = np.full((len(arms), len(weights)), np.nan)
        for columns, end, size in zip(batches, np.cumsum(sizes).tolist(), sizes, strict=True):
            own = np.nan_to_num(columns.scores[columns.arms == other], nan=0.0)  # (1, B)
            theirs = np.nan_to_num(columns.scores, nan=1.0)
            lead[np.searchsorted(arms, columns.arms), end - size : end] = own - theirs
        worth = weights * np.nan_to_num(lead)
        left = np.maximum(n_examples - (weights.cumsum() - weights), weights)
        adaptive = _adaptive(np.nan_to_num(lead), np.array(sizes), n_examples / left, epsilon)
        return cls(arms, lead, worth.cumsum(axis=1) - worth, left, adaptive, n_examples)

    def wealths(self, rows: IntArray, margin: float) -> FloatArray:
        """Wealths of the arms in some rows, from a stake of 1, shape (R,)."""
        lead, adaptive = self.lead[rows], self.adaptive[rows]
        level = -(self.n_examples * margin + self.before[rows]) / self.left
        lead = np.where(np.isnan(lead), level, lead)  # a factor of 1
        logs = log_growth(lead, level, self.n_examples / self.left, adaptive)
        of_bets = np.exp(np.minimum(logs, HIGHEST_LOG))
        fixed = of_bets[:, : len(BETS)].mean(axis=1)
        return np.asarray(SHARE_OF_FIXED * fixed + (1.0 - SHARE_OF_FIXED) * of_bets[:, -1])


def _adaptive(lead: FloatArray, sizes: IntArray, grown: FloatArray, epsilon: float) -> FloatArray:
    """Adaptive bets on each column, shape (A, T), from the leads in the batches before its own."""
    starts = sizes.cumsum() - sizes  # (S,) columns before each batch
    sums = np.pad((lead + epsilon).cumsum(axis=1), ((0, 0), (1, 0)))[:, starts]  # (A, S)
    squares = np.pad(((lead + epsilon) ** 2).cumsum(axis=1), ((0, 0), (1, 0)))[:, starts]
    moment, mean = (squares + 0.1) / (starts + 1), sums / np.maximum(starts, 1)
    if epsilon > 0.0:
        return np.repeat(np.maximum(mean, epsilon) / moment, sizes, axis=1)
    least = LEAST_LEAD * np.sqrt(moment / np.maximum(starts * grown[starts], 1.0))
    bets = np.where(starts > 0, np.maximum(mean, least) / moment, FIRST_ADAPTIVE)
    return np.asarray(np.repeat(bets, sizes, axis=1) * grown)

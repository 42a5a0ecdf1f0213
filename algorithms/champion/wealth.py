"""Wealth of bets that an arm's mean is below T.

Draws are without replacement and have a control. Letters: S is the sum of the arm's scores before the draw. m
= (N T - S) / left is the smallest possible mean of the arm's remaining examples if its mean is at least T. x
is the score, c its control, and a = `most`, so that c >= -a. A bet of lambda makes the factor 1 + lambda (m -
x + c), where lambda is at most 0.8 / (1 - m + a): no factor is below 0.2. If the mean is at least T, x - c
has a mean of at least m given the past, so a factor has a mean of at most 1. A factor does not decrease in T,
because the control and the adaptive bet are stored with the draw.
"""

import numpy as np

from winnow.algorithms.champion.draw_order import Played
from winnow.algorithms.state.arrays import FloatArray, IntArray, with_more

BETS = np.array([3.0, 1.0, 0.35, 0.12])
MOST_STAKED = 0.8
LEAST_ROOM = 1e-9
SHARE_OF_FIXED = 0.5
HIGHEST_LOG = 600.0
MOST_ADAPTIVE = 5.0
FIRST_ADAPTIVE = 0.3  # bet on an arm without observations
LEAST_GAP = 1.4  # in standard errors: smallest distance to T that adaptive bets assume


def adaptive_bets(gap: FloatArray, squares: FloatArray, counts: IntArray) -> FloatArray:
    """Adaptive bets from the earlier draws of each arm, shape (A,).

    Args:
        gap: Shape (A,), estimated distance of each mean below T.
        squares: Shape (A,), sums of squared deviations of the draws from their predictions.
        counts: Shape (A,), number of observed draws.
    """
    told = np.maximum(counts, 1)
    variance = (squares + 0.1) / (told + 1)
    gap = np.maximum(gap, LEAST_GAP * np.sqrt(variance / told))
    bets = np.minimum(gap / variance, MOST_ADAPTIVE)
    return np.where(counts > 0, bets, FIRST_ADAPTIVE)


def log_factors(played: Played, total: FloatArray, n_examples: FloatArray) -> FloatArray:
    """Log factors of draws, shape (5, B).

    Four fixed bets, then the adaptive bet.

    Args:
        played: B draws.
        total: Shape (B,), N T of each draw's row.
        n_examples: Shape (B,), N of that row.
    """
    level = (total - played.before) / played.left  # m
    most = MOST_STAKED / np.maximum(1.0 - level + played.most, LEAST_ROOM)
    bets = np.empty((len(BETS) + 1, len(level)))
    np.multiply.outer(BETS, n_examples / played.left, out=bets[:-1])
    bets[-1] = played.adaptive
    np.minimum(bets, most, out=bets)
    bets *= level - played.scores + played.control
    return np.log1p(bets, out=bets)


class Wealths:
    """Log wealths of K arms by bet, in three parts.

    The parts of an arm's draws are race, search and test. Draws of the race are on common examples. Draws of
    the search come after the race and before a row was filled; draws of the test come after that. Adaptive
    bets are made only in the test. Before it, their share of the stake is spread over the fixed bets.
    """

    def __init__(self, n_arms: int) -> None:
        self._fixed = np.zeros((3, n_arms, len(BETS)))
        self._adaptive = np.zeros(n_arms)

    def add_arms(self, count: int) -> None:
        """Append arms without bets."""
        self._fixed = np.concatenate([self._fixed, np.zeros((3, count, len(BETS)))], axis=1)
        self._adaptive = with_more(self._adaptive, count)

    def add(self, arms: IntArray, starts: IntArray, logs: FloatArray) -> None:
        """Add log factors of draws of the test.

        Args:
            arms: Shape (A,).
            starts: Shape (A,), index of each arm's first draw; an arm's draws are contiguous.
            logs: Shape (5, B), the log factors of the four fixed bets, then of the adaptive bet.
        """
        sums = np.add.reduceat(logs, starts, axis=1)
        self._fixed[2, arms] += sums[:-1].T
        self._adaptive[arms] += sums[-1]

    def put(self, arms: IntArray, parts: FloatArray, adaptive: FloatArray) -> None:
        """Replace the log factors of some arms.

        Args:
            arms: Shape (A,).
            parts: Shape (3, A, 4), sums for the fixed bets, by part.
            adaptive: Shape (A,), sums for the adaptive bet in the test.
        """
        self._fixed[:, arms] = parts
        self._adaptive[arms] = adaptive

    def since_start(self, arms: IntArray) -> FloatArray:
        """Wealth from all draws, shape (A,)."""
        return self._mix_bets(self._fixed[0, arms] + self._fixed[1, arms], arms)

    def since_race(self, arms: IntArray) -> FloatArray:
        """Wealth from the draws after the race, shape (A,)."""
        return self._mix_bets(self._fixed[1, arms], arms)

    def _mix_bets(self, untested: FloatArray, arms: IntArray) -> FloatArray:
        fixed = np.exp(np.minimum(untested + self._fixed[2, arms], HIGHEST_LOG)).mean(axis=1)
        entered = np.exp(np.minimum(untested, HIGHEST_LOG / 2)).mean(axis=1)
        adaptive = entered * np.exp(np.minimum(self._adaptive[arms], HIGHEST_LOG / 2))
        return np.asarray(SHARE_OF_FIXED * fixed + (1.0 - SHARE_OF_FIXED) * adaptive)

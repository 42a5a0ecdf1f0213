"""Bets that a bounded mean lies below a level, and the capital that they make: two published rules.

Letters as in Park et al.: q_i the i-th observation, in [., M], M its largest value; alpha the level; lambda_i
the bet on q_i, a function of q_1..q_{i-1} only; E_n = prod_{i <= n} (1 - lambda_i (q_i - alpha)) the capital.
With lambda_i in [0, 1 / (M - alpha)) the capital stays positive, and if every q_i has a mean of at least
alpha given the past, it is a supermartingale that starts at 1: by Ville's inequality it ever reaches 1 /
delta with probability at most delta. Capital is kept as its logarithm.

R rows are bet on at once, each on S observations per step that share nothing but the step; B steps at once.
"""

import math
from itertools import pairwise
from typing import Protocol

import numpy as np

from algorithms.arrays import FloatArray, IntArray

Rows = IntArray | slice

PORTFOLIO_ERROR = 1e-6
"""Most that a portfolio's capital is off, as a share of it, with as many nodes as `nodes_for` says."""
MOST_STAKED = 0.75  # c: the share of the capital that one observation may cost with the WSR rule
BLOCK = 16  # steps between two logarithms: as many factors, none below 1e-6, cannot underflow
WORKING_SET = 2**18  # numbers in a block of steps and rows: more of them would leave the cache


class Capital(Protocol):
    """The capital of a betting rule, in R rows of S strategies."""

    def bet(self, rows: Rows, observations: FloatArray) -> FloatArray:
        """Bet on the next observations of some rows, in their order.

        Args:
            rows: Which rows; R' of them, none twice.
            observations: Shape (R', B, S).

        Returns:
            Shape (R', B, S), the logarithm of the capital after each step.
        """
        ...


def nodes_for(horizon: int) -> int:
    """J, the nodes of a universal portfolio that is as good as an exact one for n = `horizon` observations.

    With x = (q - alpha) / (M - alpha) <= 1 and b = lambda (M - alpha), a factor 1 - b x is (1 - b) + (1 - x)
    b, so E_n is a sum of terms b^m (1 - b)^(n - m), none of them negative: the average over nodes is off by
    no larger share than for the worst of these. That one has m near n / 2, is sin(angle)^n, and is off by 2
    exp(-2 J^2 / n), the share of the frequencies that J nodes take for constants. From J > n / 2 on there are
    none.

    Args:
        horizon: n, at least 1.
    """
    enough = math.sqrt(horizon * math.log(2.0 / PORTFOLIO_ERROR) / 2.0)
    return min(math.ceil(enough) + 1, horizon // 2 + 1)


class UniversalPortfolio:
    """The capital of the bets of a universal portfolio with the prior Beta(1/2, 1/2) on lambda (M - alpha).

    A bet is the mean of lambda under the prior times the capital that betting lambda all the time has made.
    So the capital is the average of those capitals over the prior, and the bets need not be computed. As the
    prior is the weight of Gauss-Chebyshev quadrature, it is the plain average over J nodes: how good, says
    `nodes_for`. Whatever the number of observations, the nodes are themselves a prior, so that the capital
    is that of an exact portfolio which bets on J values of lambda, and as valid.

    Args:
        n_rows: R.
        most: M, shape (S,).
        alpha: The level, below every M.
        nodes: J, at least 1.

    Source: Cover (1991), "Universal Portfolios", Mathematical Finance 1(1); Park et al. (2025), "Adaptive
    Prediction-Powered AutoEval with Reliability and Efficiency Guarantees", equation (19).
    """

    def __init__(self, n_rows: int, most: FloatArray, alpha: float, nodes: int) -> None:
        angles = (np.arange(nodes) + 0.5) * np.pi / nodes
        self._nodes = (1.0 - np.cos(angles)) / 2.0  # (J,)
        self._alpha = alpha
        self._widths = most - alpha  # (S,)
        self._logs = np.zeros((n_rows, most.size, nodes))  # (R, S, J)

    def bet(self, rows: Rows, observations: FloatArray) -> FloatArray:
        """Bet on the next observations of some rows; see `Capital.bet`."""
        stakes = (observations - self._alpha) / self._widths  # (R', B, S), at most 1
        path = np.empty_like(stakes)
        indices = np.arange(len(self._logs))[rows]
        at_once = max(1, WORKING_SET // (BLOCK * self._logs[0].size))
        for start in range(0, len(indices), at_once):
            some = slice(start, start + at_once)
            path[some] = self._bet_together(indices[some], stakes[some].swapaxes(0, 1)).swapaxes(0, 1)
        return path

    def _bet_together(self, rows: IntArray, stakes: FloatArray) -> FloatArray:
        """The logarithm of the capital of rows that fit in the cache; stakes and result of (B, R', S)."""
        logs = self._logs[rows]  # (R', S, J)
        path = np.empty_like(stakes)
        room = np.empty((min(BLOCK, len(stakes)), *logs.shape))
        for start in range(0, len(stakes), BLOCK):
            block = slice(start, start + BLOCK)
            gains = room[: len(stakes[block])]  # (b, R', S, J)
            np.multiply(stakes[block, ..., np.newaxis], -self._nodes, out=gains)
            gains += 1.0
            for before, now in pairwise(gains):
                now *= before
            highest = logs.max(axis=-1)  # (R', S)
            shares = np.exp(logs - highest[..., np.newaxis]) / logs.shape[-1]
            path[block] = np.log(np.einsum("rsj,brsj->brs", shares, gains)) + highest
            logs += np.log(gains[-1])
        self._logs[rows] = logs
        return path


class WsrBets:
    """The bets of Waudby-Smith and Ramdas, best for a number of observations that is known beforehand.

    lambda_i = min(cap, sqrt(2 log(1 / level) / (n v_{i-1}))), where v_{i-1} is the variance of the
    observations before i, with 1/4 in place of one more. They are valid at any time, and gain most near n.

    Args:
        n_rows: R.
        caps: Shape (S,), the largest bets.
        level: The error probability at which the capital is used, in (0, 1).
        horizon: n, at least 1.

    Source: Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B
    86(1); Park et al. (2025), equations (20) and (21).
    """

    def __init__(self, n_rows: int, caps: FloatArray, level: float, horizon: int) -> None:
        self._caps = caps
        self._scale = -2.0 * np.log(level) / horizon
        self._counts = np.zeros(n_rows, dtype=np.int64)  # (R,) i - 1
        self._sums = np.zeros((n_rows, caps.size))  # (R, S)
        self._squares = np.zeros((n_rows, caps.size))  # (R, S) squared deviations from the running means

    def next(self, rows: Rows, observations: FloatArray) -> FloatArray:
        """The bets on the next observations of some rows, each by those before it; (R', B, S) both."""
        told = self._counts[rows][:, np.newaxis] + np.arange(observations.shape[1])  # (R', B) i - 1
        told = told[:, :, np.newaxis]
        means = (0.5 + self._sums[rows][:, np.newaxis] + observations.cumsum(axis=1)) / (told + 2)
        added = (observations - means) ** 2
        squares = self._squares[rows][:, np.newaxis] + added.cumsum(axis=1)
        variances = (0.25 + squares - added) / (told + 1)
        self._counts[rows] += observations.shape[1]
        self._sums[rows] += observations.sum(axis=1)
        self._squares[rows] = squares[:, -1]
        bets: FloatArray = np.minimum(self._caps, np.sqrt(self._scale / variances))
        return bets


class WsrCapital:
    """The capital of `WsrBets` of at most c / (M - alpha), c = 3/4.

    Args:
        n_rows: R.
        most: M, shape (S,).
        alpha: The level, below every M.
        level: The error probability at which the capital is used, in (0, 1).
        horizon: The number of observations for which the bets are best.
    """

    def __init__(self, n_rows: int, most: FloatArray, alpha: float, level: float, horizon: int) -> None:
        self._alpha = alpha
        self._bets = WsrBets(n_rows, MOST_STAKED / (most - alpha), level, horizon)
        self._logs = np.zeros((n_rows, most.size))  # (R, S)

    def bet(self, rows: Rows, observations: FloatArray) -> FloatArray:
        """Bet on the next observations of some rows; see `Capital.bet`."""
        gains = np.log1p(-self._bets.next(rows, observations) * (observations - self._alpha))
        path: FloatArray = self._logs[rows][:, np.newaxis] + gains.cumsum(axis=1)
        self._logs[rows] = path[:, -1]
        return path

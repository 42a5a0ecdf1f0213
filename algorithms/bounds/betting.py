"""Four betting rules against "the mean is at least a level", and their capital.

The mean is that of bounded observations. Letters as in Park et al.: q_i is the i-th observation, at most M;
alpha the level; lambda_i the bet on q_i, a function of q_1..q_{i-1} only; E_n = prod_{i <= n} (1 - lambda_i
(q_i - alpha)) the capital. With lambda_i in [0, 1 / (M - alpha)) the capital stays positive. If every q_i has
a mean of at least alpha given the past, the capital is a supermartingale that starts at 1: by Ville's
inequality it ever reaches 1 / delta with probability at most delta. Capital is stored as its logarithm.

R rows are processed at once, each with S observations per step and B steps. Only the average of a row's S
capitals is used. It is a supermartingale too, even if the bets depend on one another.
"""

import math
from itertools import pairwise
from typing import Protocol

import numpy as np
from scipy.special import expit

from winnow.algorithms.state.arrays import FloatArray, IntArray

Rows = IntArray | slice

PORTFOLIO_ERROR = 1e-6
"""Largest relative error of a portfolio's capital.
It holds for the number of nodes that `nodes_for` returns."""
MOST_STAKED = 0.75  # c: largest share of the capital that one observation can cost with the WSR rule
MOST_STAKED_STAR = 0.9  # the same with the STaR rule
STAR_SHARE = 0.7  # share of a mixture's initial capital for the STaR rule; the portfolio gets the rest
BLOCK = 16  # steps between two logarithms: 16 factors, none below 1e-6, cannot underflow
WORKING_SET = 2**18  # numbers in a block of steps and rows; a larger block would exceed the cache


class WealthProcess(Protocol):
    """Capital of a betting rule, in R rows of S strategies."""

    def bet(self, rows: Rows, observations: FloatArray, bets: FloatArray | None = None) -> FloatArray:
        """Bet on the next observations of some rows, in their order.

        Args:
            rows: The R' rows to bet on, each at most once.
            observations: Shape (R', B, S).
            bets: Shape (R', B, S), receives the bets lambda; None if they are not needed.

        Returns:
            Shape (R', B, S), the logarithm of the capital after each step.
        """
        ...


def log_average(logs: FloatArray) -> FloatArray:
    """Log of the average, over the last axis, of numbers given by their logarithms."""
    highest = logs.max(axis=-1, keepdims=True)
    average: FloatArray = np.log(np.exp(logs - highest).mean(axis=-1)) + highest[..., 0]
    return average


def nodes_for(horizon: int) -> int:
    """Number of nodes J that makes a portfolio accurate for `horizon` observations.

    Accurate means a relative error of at most `PORTFOLIO_ERROR`. Let x = (q - alpha) / (M - alpha) <= 1, b =
    lambda (M - alpha) and n = `horizon`. A factor 1 - b x is (1 - b) + (1 - x) b, so E_n is a sum of terms
    b^m (1 - b)^(n - m), none of them negative. The relative error of the average over nodes is at most that
    of the worst of these terms. The worst term has m near n / 2 and is sin(angle)^n. Its error is 2 exp(-2
    J^2 / n), the share of the frequencies that J nodes cannot distinguish from constants. If J > n / 2, there
    are no such frequencies.

    Args:
        horizon: n, at least 1.
    """
    enough = math.sqrt(horizon * math.log(2.0 / PORTFOLIO_ERROR) / 2.0)
    return min(math.ceil(enough) + 1, horizon // 2 + 1)


class UniversalPortfolio:
    """Capital of a universal portfolio.

    The prior of lambda (M - alpha) is Beta(1/2, 1/2). A bet is the mean of lambda, weighted by the prior
    times the capital that a constant bet of lambda would have made. So the capital is the average of those
    capitals over the prior, and the bets need not be computed. The prior is the weight of Gauss-Chebyshev
    quadrature, so this is the plain average over J nodes; `nodes_for` gives the accuracy. The nodes are
    themselves a prior: for any number of observations, the capital is that of an exact portfolio over J
    values of lambda, and equally valid.

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

    def bet(self, rows: Rows, observations: FloatArray, bets: FloatArray | None = None) -> FloatArray:
        """Implement `WealthProcess.bet`."""
        stakes = (observations - self._alpha) / self._widths  # (R', B, S), at most 1
        path = np.empty_like(stakes)
        indices = np.arange(len(self._logs))[rows]
        at_once = max(1, WORKING_SET // (BLOCK * self._logs[0].size))
        for start in range(0, len(indices), at_once):
            some = slice(start, start + at_once)
            made = None if bets is None else bets[some].swapaxes(0, 1)
            path[some] = self._bet_together(indices[some], stakes[some].swapaxes(0, 1), made).swapaxes(0, 1)
        return path

    def _bet_together(self, rows: IntArray, stakes: FloatArray, bets: FloatArray | None) -> FloatArray:
        """Log capital of rows that fit in the cache.

        Stakes, bets and result have shape (B, R', S).
        """
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
            if bets is not None:
                bets[block] = self._bets(shares, gains)
            logs += np.log(gains[-1])
        self._logs[rows] = logs
        return path

    def _bets(self, shares: FloatArray, gains: FloatArray) -> FloatArray:
        """Bets at each step of a block, shape (b, R', S).

        Means of lambda, weighted by the capitals before the step.
        """
        before = np.concatenate([np.ones_like(gains[:1]), gains[:-1]])  # (b, R', S, J)
        staked = np.einsum("rsj,brsj->brs", shares * self._nodes, before)
        bets: FloatArray = staked / np.einsum("rsj,brsj->brs", shares, before) / self._widths
        return bets


class RunningVariances:
    """Running variances v_{i-1} of the observations before i.

    Smoothed by a squared deviation of 1/4.

    Args:
        n_rows: R.
        n_columns: S.

    Source: Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B
    86(1); Park et al. (2025), equation (21).
    """

    def __init__(self, n_rows: int, n_columns: int) -> None:
        self.counts = np.zeros(n_rows, dtype=np.int64)  # (R,) i - 1
        self._sums = np.zeros((n_rows, n_columns))  # (R, S)
        self._squares = np.zeros((n_rows, n_columns))  # (R, S) squared deviations from the running means

    def before(self, rows: Rows, observations: FloatArray) -> FloatArray:
        """Variance before each observation; then add the observations.

        Shape (R', B, S) both.
        """
        told = self.counts[rows][:, np.newaxis] + np.arange(observations.shape[1])  # (R', B) i - 1
        told = told[:, :, np.newaxis]
        means = (0.5 + self._sums[rows][:, np.newaxis] + observations.cumsum(axis=1)) / (told + 2)
        added = (observations - means) ** 2
        squares = self._squares[rows][:, np.newaxis] + added.cumsum(axis=1)
        variances: FloatArray = (0.25 + squares - added) / (told + 1)
        self.counts[rows] += observations.shape[1]
        self._sums[rows] += observations.sum(axis=1)
        self._squares[rows] = squares[:, -1]
        return variances


class WsrWealth:
    """Capital of the bets of Waudby-Smith and Ramdas.

    They are tuned for a known number of observations. lambda_i = min(c / (M - alpha), sqrt(2 log(1 / level) /
    (n v_{i-1}))), c = 3/4, v by `RunningVariances`. The bets are valid at any time and gain most near n
    observations.

    Args:
        n_rows: R.
        most: M, shape (S,).
        alpha: The level, below every M.
        level: The error probability at which the capital is used, in (0, 1).
        horizon: n, at least 1.

    Source: Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B
    86(1); Park et al. (2025), equations (20) and (21).
    """

    def __init__(self, n_rows: int, most: FloatArray, alpha: float, level: float, horizon: int) -> None:
        self._alpha = alpha
        self._caps = MOST_STAKED / (most - alpha)
        self._scale = -2.0 * np.log(level) / horizon
        self._variances = RunningVariances(n_rows, most.size)
        self._logs = np.zeros((n_rows, most.size))  # (R, S)

    def bet(self, rows: Rows, observations: FloatArray, bets: FloatArray | None = None) -> FloatArray:
        """Implement `WealthProcess.bet`."""
        variances = self._variances.before(rows, observations)
        made = np.minimum(self._caps, np.sqrt(self._scale / variances))
        if bets is not None:
            bets[:] = made
        gains = np.log1p(-made * (observations - self._alpha))
        path: FloatArray = self._logs[rows][:, np.newaxis] + gains.cumsum(axis=1)
        self._logs[rows] = path[:, -1]
        return path


class StarWealth:
    """Capital of bets sized by the evidence needed per remaining observation.

    The rule is called "STaR". lambda_i = min(c / (M - alpha), sqrt(2 max(0, log(1 / level) - log E_{i-1}) /
    ((n - i + 1) v_{i-1}))), where c = 9/10, E is the average of the row's S capitals, n is the final number
    of observations, and v is from `RunningVariances`. The first bet is that of `WsrWealth` except for c.
    After that, a row ahead of schedule bets less than `WsrWealth`, and a row behind schedule bets more. A row
    whose E has reached 1 / level bets nothing. E and v are those before observation i, so the bets are
    predictable, which is all that validity requires: the S capitals of a row share E, and each is a
    supermartingale given all past observations.

    After n observations, each further one is bet on as if it were the last.

    Args:
        n_rows: R.
        most: M, shape (S,).
        alpha: The level, below every M.
        level: The error probability at which the average is used, in (0, 1).
        horizon: n, at least 1.

    Source: Voráček & Orabona (2025), "STaR-Bets: Sequential Target-Recalculating Bets for Tighter Confidence
    Intervals", arXiv:2505.22422, for the idea; the cap and v are chosen here.
    """

    def __init__(self, n_rows: int, most: FloatArray, alpha: float, level: float, horizon: int) -> None:
        self._alpha = alpha
        self._caps = MOST_STAKED_STAR / (most - alpha)
        self._bar = -np.log(level)
        self._horizon = horizon
        self._variances = RunningVariances(n_rows, most.size)
        self._logs = np.zeros((n_rows, most.size))  # (R, S)

    def bet(self, rows: Rows, observations: FloatArray, bets: FloatArray | None = None) -> FloatArray:
        """Implement `WealthProcess.bet`."""
        left = self._horizon - self._variances.counts[rows]  # (R',) n - i + 1 at the first step
        variances = self._variances.before(rows, observations)
        excess = observations - self._alpha
        logs, path = self._logs[rows], np.empty_like(excess)
        for step in range(excess.shape[1]):
            needed = np.maximum(self._bar - log_average(logs), 0.0)  # (R',)
            pace = (2.0 * needed / np.maximum(left - step, 1))[:, np.newaxis]
            made = np.minimum(self._caps, np.sqrt(pace / variances[:, step]))  # (R', S)
            logs = logs + np.log1p(-made * excess[:, step])
            path[:, step] = logs
            if bets is not None:
                bets[:, step] = made
        self._logs[rows] = logs
        return path


class MixedWealth:
    """Capital split once at the start.

    7/10 for the bets of `StarWealth`, 3/10 for a `UniversalPortfolio`. E = 0.7 E_star + 0.3 E_up in each of
    the S strategies. Both parts are supermartingales from 1 that use past observations only, so their average
    with fixed shares is a supermartingale too, and valid at any time. It reaches 1 / level at the latest when
    0.7 E_star does. So the level of the first part is 0.7 level: this part stops betting at exactly that
    point, not before. For risks near the level, the mixture certifies almost as much as "star" alone; for low
    risks, with as few observations as the portfolio alone.

    A single bet lambda_i gives the same capital: the average of both parts' bets, weighted by the capital of
    each part before observation i. It is predictable and below 1 / (M - alpha), as both bets are.

    Args:
        n_rows: R.
        most: M, shape (S,).
        alpha: The level, below every M.
        level: The error probability at which the average is used, in (0, 1).
        horizon: n, at least 1; see `StarWealth`.
        nodes: J, at least 1; see `UniversalPortfolio`.
    """

    def __init__(
        self, n_rows: int, most: FloatArray, alpha: float, level: float, horizon: int, nodes: int
    ) -> None:
        self._parts: tuple[WealthProcess, WealthProcess] = (
            StarWealth(n_rows, most, alpha, STAR_SHARE * level, horizon),
            UniversalPortfolio(n_rows, most, alpha, nodes),
        )
        self._shares = np.log([STAR_SHARE, 1.0 - STAR_SHARE])
        self._logs = np.tile(self._shares[:, np.newaxis, np.newaxis], (n_rows, most.size))  # (2, R, S)

    def bet(self, rows: Rows, observations: FloatArray, bets: FloatArray | None = None) -> FloatArray:
        """Implement `WealthProcess.bet`."""
        made = None if bets is None else np.empty((2, *observations.shape))
        paths = np.stack(
            [
                share + part.bet(rows, observations, None if made is None else made[number])
                for number, (share, part) in enumerate(zip(self._shares, self._parts, strict=True))
            ]
        )  # (2, R', B, S)
        if bets is not None and made is not None:
            before = np.concatenate([self._logs[:, rows][:, :, np.newaxis], paths[:, :, :-1]], axis=2)
            of_star = expit(before[0] - before[1])
            bets[:] = of_star * made[0] + (1.0 - of_star) * made[1]
        self._logs[:, rows] = paths[:, :, -1]
        path: FloatArray = np.logaddexp(paths[0], paths[1])
        return path

"""The Bradley-Terry model with features.

P(i is preferred to j) = sigmoid(theta . (x_i - x_j)). Letters as in Hu et al. (2026), section 4.1: z (P, r)
are the differences x_i - x_j of the pairs that duelled, W (P,) the outcomes in favour of i, N (P,) the
numbers of scored duels, l(theta) their log-likelihood, lambda the ridge. The duels of a pair matter only
through W and N, so a fit costs O(P r^2), whatever their number.

A tie is half a win for both: it adds (log sigmoid(theta . z) + log sigmoid(-theta . z)) / 2. That keeps the
gradient's mean at 0 whenever the mean outcome, ties counted as 1/2, is sigmoid(theta . z).
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import null_space
from scipy.stats import norm

from winnow.algorithms.low_rank.factor_model import sigmoid
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

SMALL_DECREMENT = 1e-10  # nats; the error after the last step is of the order of its square
MOST_STEPS = 100
MOST_CELLS = 1_000_000  # largest table of products that is computed at once


class Tally(NamedTuple):
    """Sums of the duels of P pairs of arms, one pair per row."""

    z: FloatArray
    """Differences of the features, first arm minus second, shape (P, r)."""
    wins: FloatArray
    """Outcomes in favour of the first arm, in [0, N], shape (P,); a tie counts 1/2."""
    counts: FloatArray
    """Numbers N of scored duels, or sums of the duels' weights; non-negative, shape (P,)."""
    unscored: IntArray
    """Numbers of unscored duels, non-negative, shape (P,)."""

    def rows(self, chosen: BoolArray) -> "Tally":
        """Select pairs by a mask of shape (P,)."""
        return Tally(self.z[chosen], self.wins[chosen], self.counts[chosen], self.unscored[chosen])


class Fit(NamedTuple):
    """A fitted theta with its Hessian."""

    theta: FloatArray
    """Shape (r,)."""
    hessian: FloatArray
    """Shape (r, r), H(theta), positive definite.
    H(theta) = sum N sigmoid'(theta.z) z z^T + lambda I."""


def log_likelihood(tally: Tally, theta: FloatArray) -> FloatArray:
    """Log-likelihood l(theta) of the scored duels, in nats.

    Args:
        tally: P pairs.
        theta: Shape (..., r).

    Returns:
        Shape (...,), at most 0.
    """
    log_odds = theta @ tally.z.T  # (..., P)
    found: FloatArray = log_odds @ tally.wins - softplus(log_odds) @ tally.counts
    return found


def softplus(x: FloatArray) -> FloatArray:
    """log(1 + exp(x)) without overflow; several times faster than `np.logaddexp`."""
    found: FloatArray = np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x)))
    return found


def information(weights: FloatArray, z: FloatArray) -> FloatArray:
    """Sums of w z z^T over pairs, shape (..., r, r), for weights w of shape (..., P)."""
    n_pairs, r = z.shape
    if weights.ndim == 1 or z.size * r > MOST_CELLS:
        found: FloatArray = (weights[..., np.newaxis, :] * z.T) @ z
        return found
    # One large product is several times faster than many small ones if the table fits in the cache.
    outer = (z[:, :, np.newaxis] * z[:, np.newaxis]).reshape(n_pairs, r * r)
    return (weights @ outer).reshape(*weights.shape[:-1], r, r)


def shorten(steps: FloatArray, z: FloatArray) -> FloatArray:
    """Shorten Newton steps so that each increases the log-likelihood.

    A step is scaled by log(1 + s) / s, where s is the largest |z . step|.

    Args:
        steps: Shape (..., r).
        z: Shape (P, r).

    Source: Sun and Tran-Dinh (2019), "Generalized self-concordant functions", nu = 2.
    """
    longest = np.abs(steps @ z.T).max(axis=-1, initial=1e-300)[..., np.newaxis]
    shortened: FloatArray = steps * (np.log1p(longest) / longest)
    return shortened


def fit_bradley_terry(
    z: FloatArray, wins: FloatArray, counts: FloatArray, *, ridge: float, start: FloatArray
) -> Fit:
    """Maximise l(theta) - ridge |theta|^2 / 2 by Newton's method.

    Args:
        z: Shape (P, r).
        wins: Shape (P,), in [0, N]; ties count 1/2.
        counts: Shape (P,), N, non-negative.
        ridge: lambda, positive.
        start: Shape (r,), the starting point; if it is the previous fit, one or two steps are enough.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    equation (3). Their projection onto a ball, equation (4), is omitted: no radius is known in practice, and
    no proof here needs one.
    """
    theta, identity = start, np.eye(z.shape[1])
    for _ in range(MOST_STEPS):
        means = sigmoid(z @ theta)  # (P,)
        gradient = (wins - counts * means) @ z - ridge * theta  # (r,)
        hessian = information(counts * means * (1.0 - means), z) + ridge * identity  # (r, r)
        step = np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)
        theta = theta + shorten(step, z)
        if gradient @ step <= SMALL_DECREMENT:
            break
    return Fit(theta, hessian)


RIDGE = 0.01  # negligible, but keeps the strength of an arm that never lost finite
LEVEL = 0.95


class Strengths(NamedTuple):
    """Log-odds of each arm against the average arm, with intervals, shape (K,) each."""

    values: FloatArray
    lower: FloatArray
    upper: FloatArray


def bradley_terry_strengths(wins: FloatArray, counts: IntArray) -> Strengths:
    """Fit strengths s with P(i is preferred to j) = sigmoid(s_i - s_j) and sum 0.

    The intervals are Wald intervals at 95%, pointwise. They describe one look at duels that were chosen
    independently of their outcomes; they give no guarantee under a campaign's adaptive choices.

    Args:
        wins: Shape (K, K), outcomes in favour of the row; a tie is 1/2 for both.
        counts: Shape (K, K), numbers of scored duels, symmetric.

    Returns:
        The strengths with intervals; NaN for arms without a scored duel.

    Source: Bradley & Terry (1952), "Rank analysis of incomplete block designs: I", Biometrika 39.
    """
    met = counts.sum(axis=1) > 0
    strengths = Strengths(*(np.full(len(met), np.nan) for _ in range(3)))
    n_met = int(met.sum())
    if n_met < 2:
        return strengths
    basis = null_space(np.ones((1, n_met)))  # (M, M - 1), basis of strengths that sum to 0
    wins, counts = wins[np.ix_(met, met)], counts[np.ix_(met, met)]
    first, second = np.nonzero(np.triu(counts, 1))
    z = basis[first] - basis[second]  # (P, M - 1)
    start = np.zeros(n_met - 1)
    duelled = counts[first, second].astype(np.float64)
    fit = fit_bradley_terry(z, wins[first, second], duelled, ridge=RIDGE, start=start)
    variances = ((basis @ np.linalg.inv(fit.hessian)) * basis).sum(axis=1)
    halves = norm.isf((1.0 - LEVEL) / 2.0) * np.sqrt(variances)
    values = basis @ fit.theta
    for ends, found in zip(strengths, (values, values - halves, values + halves), strict=True):
        ends[met] = found
    return strengths

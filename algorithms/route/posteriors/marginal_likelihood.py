"""Choose the rbf kernel and the noise by marginal likelihood on a grid.

The scores v_a of arm a, less their common mean, are modelled as normal with mean 0 and covariance s^2 (K_a +
alpha I): an independent Gaussian process per arm, with the kernel matrix K_a of its contexts, amplitude s and
noise of variance alpha s^2. Its posterior mean is that of kernel ridge regression with ridge alpha.

A few dozen scores are easily overfitted with almost no noise and a narrow kernel, and exploration would then
stop. So the logarithms of the bandwidth and of alpha have a normal prior, centred at 1 with the width in
`prior`. From some hundred scores on it has little influence.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.route.posteriors.kernels import Kernel
from winnow.algorithms.state.arrays import FloatArray, IntArray

BANDWIDTHS = (0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Bandwidths of the grid: from one at which only nearly equal contexts are similar to one at which all
are."""
ALPHAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
LEAST_NOISE = 0.05
"""Smallest noise, in units of scores: scores that have not varied yet can vary later."""
TINY = 1e-12
"""Replaces a variance of 0, if all scores are equal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothness:
    """Smoothness of scores over contexts, and their noise."""

    bandwidth: float
    """Bandwidth of the rbf kernel."""
    alpha: float
    """Variance of the noise relative to the learned function: the ridge of a regression."""
    noise: float
    """Estimated standard deviation of a score around its expectation, rounded to three digits, so that the
    last bits of a decomposition hardly ever matter."""


def most_probable(
    arms: IntArray,
    contexts: FloatArray,
    scores: FloatArray,
    bandwidths: Sequence[float] = BANDWIDTHS,
    alphas: Sequence[float] = ALPHAS,
) -> Smoothness:
    """Find the grid point with the highest likelihood times prior, s optimal; the first of equals.

    It takes O(sum_a n_a^3) time per bandwidth: one decomposition per arm serves every alpha.

    Args:
        arms: Shape (n,), at least 1.
        contexts: Shape (n, d), of length 1.
        scores: Shape (n,), without their mean.
        bandwidths: Bandwidths of the grid.
        alphas: Ridges of the grid.
    """
    ridges = np.array(alphas)  # (A,)
    best, chosen = -np.inf, None
    for bandwidth in bandwidths:
        variances, likelihoods = _profiled(arms, contexts, scores, bandwidth, ridges)
        densities = likelihoods + prior(bandwidth, ridges)
        place = int(densities.argmax())
        if densities[place] > best:
            noise = max(float(np.sqrt(variances[place] * ridges[place])), LEAST_NOISE)
            best = float(densities[place])
            chosen = Smoothness(bandwidth=bandwidth, alpha=alphas[place], noise=float(f"{noise:.3g}"))
    assert chosen is not None
    return chosen


def prior(bandwidth: float, alphas: FloatArray) -> FloatArray:
    """Log prior density of a bandwidth and each alpha, up to a constant, shape (A,).

    The logarithms to base 3 and to base 10, respectively, are normal with mean 0 and variance 1/2.
    """
    density: FloatArray = -((np.log(bandwidth) / np.log(3.0)) ** 2) - np.log10(alphas) ** 2
    return density


def _profiled(
    arms: IntArray, contexts: FloatArray, scores: FloatArray, bandwidth: float, ridges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Optimal s^2 and its log-likelihood, up to a constant, for each ridge; (A,) each."""
    kernel = Kernel(name="rbf", gamma=1.0, bandwidth=bandwidth)
    logs, squares = np.zeros(len(ridges)), np.zeros(len(ridges))
    for arm in np.unique(arms):
        mine = contexts[arms == arm]
        values, vectors = np.linalg.eigh(kernel.at(mine @ mine.T))
        shifted = np.maximum(values, 0.0) + ridges[:, np.newaxis]  # (A, n_a)
        logs += np.log(shifted).sum(axis=1)
        squares += ((vectors.T @ scores[arms == arm]) ** 2 / shifted).sum(axis=1)
    variances = np.maximum(squares / len(scores), TINY)
    return variances, -0.5 * (len(scores) * np.log(variances) + logs)

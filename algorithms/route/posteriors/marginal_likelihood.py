"""The choice of the rbf kernel and the noise that explain scores best: by marginal likelihood, on a grid.

The scores v_a of arm a, less their common mean, are taken as normal with mean 0 and covariance s^2 (K_a +
alpha I): an independent Gaussian process per arm, with the kernel matrix K_a of its contexts, amplitude s and
noise of variance alpha s^2. Its posterior mean is that of kernel ridge regression with ridge alpha.

A few dozen scores are easily explained by hardly any noise and a kernel that remembers each of them, after
which nothing would be explored; so the logarithms of the bandwidth and of alpha are normal beforehand, around
1 and as wide as `prior` says. From some hundred scores on it weighs little.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.route.posteriors.kernels import Kernel
from winnow.algorithms.state.arrays import FloatArray, IntArray

BANDWIDTHS = (0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 8.0)
"""Bandwidths of the grid: from the least, where only nearly equal contexts are alike, to where all are."""
ALPHAS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
LEAST_NOISE = 0.05
"""The least noise, in units of scores: scores that have not varied yet may."""
TINY = 1e-12
"""Stands in for a variance of 0, where all scores are the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Smoothness:
    """The smoothness of scores over contexts, and their noise."""

    bandwidth: float
    """The bandwidth of the rbf kernel."""
    alpha: float
    """Variance of the noise over that of what is learned: the ridge of a regression."""
    noise: float
    """Estimated deviation of a score from what is expected of it, to three digits, so that the last bits of a
    decomposition hardly ever matter."""


def most_probable(
    arms: IntArray,
    contexts: FloatArray,
    scores: FloatArray,
    bandwidths: Sequence[float] = BANDWIDTHS,
    alphas: Sequence[float] = ALPHAS,
) -> Smoothness:
    """The point of the grid with the highest likelihood times prior, s at its best; the first of equals.

    It takes O(sum_a n_a^3) time for each bandwidth: a decomposition per arm serves every alpha.

    Args:
        arms: Shape (n,), at least 1.
        contexts: Shape (n, d), of length 1.
        scores: Shape (n,), without their mean.
        bandwidths: The grid.
        alphas: The grid.
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
    """The logarithm of the prior density of a bandwidth and each alpha, up to a constant, shape (A,).

    Of the logarithms to base 3 and to base 10, which are normal with mean 0 and variance 1/2.
    """
    density: FloatArray = -((np.log(bandwidth) / np.log(3.0)) ** 2) - np.log10(alphas) ** 2
    return density


def _profiled(
    arms: IntArray, contexts: FloatArray, scores: FloatArray, bandwidth: float, ridges: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The best s^2 and the logarithm of the likelihood there, up to a constant, for each ridge; (A,) each."""
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

"""Simulated scores of 0 and 1 with given means, correlated between arms.

The ease of an example for an arm is a standard normal variable, correlated between arms. An arm solves its
easiest examples; its mean determines how many.
"""

import numpy as np
from scipy.stats import multivariate_normal, norm

from winnow.algorithms.state.arrays import FloatArray


def assumed_scores(
    means: FloatArray, n_examples: int, *, alike: float, rng: np.random.Generator
) -> FloatArray:
    """Draw 0/1 scores for each arm, with the given means to the nearest example.

    Args:
        means: Shape (K,), in [0, 1].
        n_examples: n.
        alike: Correlation of the normal variables of two arms, in [0, 1).
        rng: Draws which examples an arm solves.

    Returns:
        Shape (K, n).
    """
    common = rng.standard_normal(n_examples)
    own = rng.standard_normal((len(means), n_examples))
    ease = np.sqrt(alike) * common + np.sqrt(1.0 - alike) * own
    solved = np.rint(means * n_examples)
    scores: FloatArray = ((-ease).argsort(axis=1).argsort(axis=1) < solved[:, np.newaxis]).astype(np.float64)
    return scores


def disagreement(first: float, second: float, alike: float) -> float:
    """Expected share of examples that exactly one of two arms solves.

    The scores are those of `assumed_scores`.

    Args:
        first: Mean of one arm, in [0, 1].
        second: Mean of the other arm.
        alike: See `assumed_scores`.
    """
    if not (0.0 < first < 1.0 and 0.0 < second < 1.0):
        return abs(first - second)
    both = multivariate_normal(cov=[[1.0, alike], [alike, 1.0]]).cdf([norm.ppf(first), norm.ppf(second)])
    return float(first + second - 2.0 * both)

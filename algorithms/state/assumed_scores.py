"""Made-up scores of 0 and 1 with chosen means, of arms that fail on the same examples more or less often.

Each arm finds each example more or less easy, a standard normal variable that is correlated between arms, and
solves those that it finds easiest: as many as its mean says.
"""

import numpy as np
from scipy.stats import multivariate_normal, norm

from winnow.algorithms.state.arrays import FloatArray


def assumed_scores(
    means: FloatArray, n_examples: int, *, alike: float, rng: np.random.Generator
) -> FloatArray:
    """Scores of 0 and 1 whose means over the examples are as given, to the nearest example.

    Args:
        means: Shape (K,), in [0, 1].
        n_examples: n.
        alike: Correlation of the normal variables by which examples are ranked for two candidates, in [0, 1).
        rng: Draws which examples a candidate solves.

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
    """Share of examples that exactly one of two candidates with these means solves in `assumed_scores`."""
    if not (0.0 < first < 1.0 and 0.0 < second < 1.0):
        return abs(first - second)
    both = multivariate_normal(cov=[[1.0, alike], [alike, 1.0]]).cdf([norm.ppf(first), norm.ppf(second)])
    return float(first + second - 2.0 * both)

"""The Kullback-Leibler divergence of Bernoulli distributions, and the intervals that it gives."""

from typing import cast, overload

import numpy as np
from scipy.special import rel_entr, xlogy

from winnow.algorithms.state.arrays import FloatArray, IntArray

BISECTIONS = 40  # of an interval shorter than 1: to 1e-12


@overload
def bernoulli_kl(x: float, y: float) -> float: ...
@overload
def bernoulli_kl(x: FloatArray, y: FloatArray | float) -> FloatArray: ...
def bernoulli_kl(x: FloatArray | float, y: FloatArray | float) -> FloatArray | float:
    """d(x, y), of Bernoulli(x) from Bernoulli(y), in nats.

    Args:
        x: In [0, 1]; 0 log 0 is 0.
        y: In [0, 1], broadcast against x; where y is 0 or 1 and x is not, d is infinite.
    """
    return cast("FloatArray | float", rel_entr(x, y) + rel_entr(1.0 - x, 1.0 - y))


def kl_lower_bounds(means: FloatArray, counts: IntArray, levels: FloatArray | float) -> FloatArray:
    """The smallest y with counts * d(means, y) <= levels, to 1e-12 and never above it.

    Args:
        means: Shape (K, K), in [0, 1].
        counts: Shape (K, K), positive.
        levels: Shape (K, K) or one for all, non-negative.

    Returns:
        Shape (K, K), in [0, means]. The upper bounds are 1 - kl_lower_bounds(1 - means, counts, levels).
    """
    # counts * d(means, y) <= levels where means log y + (1 - means) log(1 - y) >= least.
    least = xlogy(means, means) + xlogy(1.0 - means, 1.0 - means) - levels / counts
    low, high = np.zeros_like(means), means.copy()
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        is_too_low = xlogy(means, middle) + (1.0 - means) * np.log1p(-middle) < least
        low, high = np.where(is_too_low, middle, low), np.where(is_too_low, high, middle)
    return low

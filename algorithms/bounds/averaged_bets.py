"""Bets on a random sample of fixed size, averaged over several orders.

The sample is of examples or of whole clusters. Letters: n values, O orders. With clusters, one draw is a
cluster of several examples. S is the sum of its scores, s the number of its examples, and M the largest such
number. The mean over all examples of the population is m = E[S] / E[s], so S - m s has mean 0, and (S - m s)
/ M is used in place of a score minus m.
"""

import math
from functools import lru_cache

import numpy as np

from winnow.algorithms.state.arrays import FloatArray, IntArray

N_ORDERS = 8
MOST_STAKED = 0.75  # largest share of the capital that one value can cost; below 1, so capital stays positive
HALVINGS = 40  # ends are exact to 1e-12, and rounded outward by that


def ratio_interval(sums: FloatArray, sizes: IntArray, alpha: float) -> tuple[float, float]:
    """Confidence interval for the mean score per example.

    At confidence 1 - alpha, alpha / 2 for each end.

    Args:
        sums: Shape (C,), sums of scores in [0, 1] over the examples of each cluster. Their order depends
            neither on scores nor on sizes.
        sizes: Shape (C,), number of examples of each cluster, at least 1. No cluster of the population is
            larger than the largest of these.
        alpha: In (0, 1).
    """
    largest = sizes.max()
    lower = _lower_end(sums / largest, sizes, alpha / 2.0)
    return lower, 1.0 - _lower_end((sizes - sums) / largest, sizes, alpha / 2.0)


def _lower_end(shares: FloatArray, sizes: IntArray, level: float) -> float:
    # `average_capital` expects sums of differences from -1 to 1, so shift the sums of scores from 0 to 1.
    values = shares - (sizes / sizes.max() - 1.0) / 2.0
    low, high = 0.0, 1.0
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        is_refuted = average_capital(values, middle, level, sizes) >= 1.0 / level
        low, high = (middle, high) if is_refuted else (low, middle)
    return low


def average_capital(values: FloatArray, mean: float, level: float, sizes: IntArray | None = None) -> float:
    """Capital of bets against "the mean is at most `mean`".

    The average over several orders of all values.

    Args:
        values: Shape (n,), in [0, 1]; with clusters, (1 + the sum of a cluster's differences / M) / 2.
        mean: In (0, 1).
        level: Error probability that the bets are optimised for.
        sizes: Shape (n,), number of examples of each cluster; None if each value is one example.

    Source: Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B
    86(1): the hedged capital for a fixed sample size; an average of e-values is an e-value.
    """
    orders = _orders(len(values))
    ordered = values[orders]  # (O, n)
    bets = np.sqrt(2.0 * math.log(1.0 / level) / (len(values) * variances_before(ordered)))
    gains = ordered - mean
    if sizes is not None:  # for a cluster of s examples, subtract only the share s / M of the mean difference
        gains += (mean - 0.5) * (1.0 - sizes / sizes.max())[orders]
    factors = 1.0 + np.minimum(bets, MOST_STAKED / mean) * gains
    with np.errstate(over="ignore"):
        return float(np.exp(np.log(factors).sum(axis=1)).mean())


@lru_cache(maxsize=4)
def _orders(n: int) -> IntArray:
    """Fixed pseudo-random orders of n values, shape (O, n)."""
    return np.stack([np.random.default_rng([n, number]).permutation(n) for number in range(N_ORDERS)])


def variances_before(values: FloatArray) -> FloatArray:
    """Variance of the values before each value, shape (O, n).

    Smoothed by one squared deviation of 1/4.
    """
    n = values.shape[1]
    none = np.zeros((len(values), 1))
    before = np.concatenate([none, values[:, :-1].cumsum(axis=1)], axis=1)
    means = (0.5 + before + values) / (np.arange(n) + 2)
    squares = (values - means) ** 2
    sums = np.concatenate([none, squares[:, :-1].cumsum(axis=1)], axis=1)
    return np.asarray((0.25 + sums) / (np.arange(n) + 1))

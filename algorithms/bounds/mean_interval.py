"""A confidence interval for the mean of independent bounded values.

It is valid for every sample size. If m is the mean, each factor 1 + lambda_t (x_t - m) has mean 1 given the
past whenever lambda_t depends on the past only. By Markov's inequality the product, which starts at 1, is at
least 1 / level with probability at most level. Every m whose product reaches 1 / level is rejected as too
low; the same test on mirrored values rejects means that are too high.

Source: Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86(1),
the hedged capital for a fixed sample size.
"""

import math

import numpy as np

from winnow.algorithms.state.arrays import FloatArray

MOST_STAKED = 0.75  # largest share of the capital that one value can cost; below 1, so capital stays positive
HALVINGS = 40  # bisections of the unit interval: ends are exact to 1e-12 and rounded outward


def mean_interval(values: FloatArray, alpha: float) -> tuple[float, float]:
    """Confidence interval for the mean of values in [0, 1], at confidence 1 - alpha.

    Args:
        values: Shape (n,), independent with the same mean, in an order that does not depend on them.
        alpha: Error probability, in (0, 1), half for each end.
    """
    lower = _lower_end(values, alpha / 2.0)
    upper = 1.0 - _lower_end(1.0 - values, alpha / 2.0)
    return lower, upper


def _lower_end(values: FloatArray, level: float) -> float:
    n = len(values)
    if n == 0:
        return 0.0
    bets = np.sqrt(2.0 * math.log(1.0 / level) / (n * _variances(values)))  # (n,)
    low, high = 0.0, 1.0  # bisection is valid because the capital does not increase in m
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        factors = 1.0 + np.minimum(bets, MOST_STAKED / middle) * (values - middle)
        is_refuted = np.log(factors).sum() >= -math.log(level)
        low, high = (middle, high) if is_refuted else (low, middle)
    return low


def _variances(values: FloatArray) -> FloatArray:
    """Variance of the values before each value, shape (n,).

    Smoothed by one squared deviation of 1/4.
    """
    counts = np.arange(len(values))
    before = np.concatenate(([0.0], values[:-1].cumsum()))
    means = (0.5 + before + values) / (counts + 2)
    squares = (values - means) ** 2
    variances: FloatArray = (0.25 + np.concatenate(([0.0], squares[:-1].cumsum()))) / (counts + 1)
    return variances

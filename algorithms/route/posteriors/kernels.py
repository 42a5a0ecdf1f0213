"""Kernels on contexts of equal length, and random Fourier features.

A kernel is a function of the inner product.
"""

import math
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.errors import check_parameters
from winnow.algorithms.route.config import KernelName, RouteConfig
from winnow.algorithms.state.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Similarity of two inputs of the same length; see `RouteConfig` for the formulas."""

    name: KernelName
    gamma: float
    """Factor of "poly3"."""
    bandwidth: float
    """Bandwidth of "rbf"."""
    squared_length: float = 1.0
    """Squared length of every input.
    1 for a context, 2 for a context with an arm's indicator appended."""

    @classmethod
    def of(cls, config: RouteConfig, squared_length: float = 1.0) -> "Kernel":
        """Create the kernel that a config names."""
        return cls(
            name=config.kernel,
            gamma=config.gamma,
            bandwidth=config.fixed_bandwidth,
            squared_length=squared_length,
        )

    @property
    def peak(self) -> float:
        """k(x, x), equal for all inputs x."""
        match self.name:
            case "linear":
                return self.squared_length
            case "poly3":
                return (1.0 + self.gamma * self.squared_length) ** 3
            case "rbf":
                return 1.0

    def at(self, products: FloatArray) -> FloatArray:
        """k(x, x') from the inner products x.x', of any shape, element by element."""
        match self.name:
            case "linear":
                return products
            case "poly3":
                base = 1.0 + self.gamma * products
                return base * base * base  # `**` takes thirty times as long
            case "rbf":
                # |x - x'|^2 = 2 (squared length - x.x')
                scaled: FloatArray = np.exp((products - self.squared_length) / math.pow(self.bandwidth, 2))
                return scaled


class RandomFeatures:
    """Random features phi(y) of length 1 that approximate the rbf kernel.

    phi(y) = D^-1/2 [cos w_j.y, sin w_j.y], and phi(y).phi(y') is near the kernel. The rbf kernel is k(y, y').
    The frequencies w_j, from N(0, bandwidth^-2 I), are standard normal numbers divided by the bandwidth. The
    numbers depend on the seed alone, so the frequencies are the same in a resumed campaign, and proportional
    for all bandwidths.

    Args:
        config: The problem and the common parameters; the kernel must be "rbf".
        n_features: D, the number of frequencies, at least 1; the error of an inner product is about D^-1/2.
        feature_seed: Non-negative.

    Raises:
        InvalidParameter: If a value is out of range.
    """

    def __init__(self, config: RouteConfig, n_features: int, feature_seed: int) -> None:
        check_parameters(
            (
                "kernel",
                config.kernel,
                config.kernel == "rbf",
                "'rbf', the only kernel with random features",
            ),
            ("n_features", n_features, n_features >= 1, "at least 1"),
            ("feature_seed", feature_seed, feature_seed >= 0, "at least 0"),
        )
        rng = np.random.default_rng(feature_seed)
        self.frequencies: FloatArray = rng.standard_normal((n_features, config.dim)) / config.fixed_bandwidth
        """Shape (D, d)."""

    @property
    def width(self) -> int:
        """Length 2 D of phi(y)."""
        return 2 * len(self.frequencies)

    def __call__(self, context: FloatArray) -> FloatArray:
        """phi(y) of a context: shape (d,) to (2 D,)."""
        return fourier(self.frequencies, context)


def fourier(frequencies: FloatArray, context: FloatArray) -> FloatArray:
    """phi(y) of a context, shape (2 D,), for frequencies of shape (D, d)."""
    phases = frequencies @ context
    waves: FloatArray = np.concatenate([np.cos(phases), np.sin(phases)]) / math.sqrt(len(frequencies))
    return waves

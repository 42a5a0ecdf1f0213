"""Kernels on contexts of equal length, which are functions of the inner product alone."""

import math
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.route.config import KernelName, RouteConfig
from winnow.algorithms.state.arrays import FloatArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernel:
    """Similarity of two inputs of the same length, by name; see `RouteConfig` for the formulas."""

    name: KernelName
    gamma: float
    """Factor of "poly3"."""
    bandwidth: float
    """Bandwidth of "rbf"."""
    squared_length: float = 1.0
    """Squared length of every input: 1 for a context, 2 for one with an arm's indicator appended."""

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
        """Compute k(x, x') from the inner products x.x', any shape, element by element."""
        match self.name:
            case "linear":
                return products
            case "poly3":
                base = 1.0 + self.gamma * products
                return base * base * base  # a general power takes thirty times as long
            case "rbf":
                # |x - x'|^2 = 2 (squared length - x.x')
                scaled: FloatArray = np.exp((products - self.squared_length) / math.pow(self.bandwidth, 2))
                return scaled

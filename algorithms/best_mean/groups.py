"""Groups of examples, and the value by which arms are compared.

The value is computed from an arm's mean on each group. Letters: N examples, N_g of them in group g; mu_g is
an arm's mean over these. The arm's value is either sum w_g mu_g, with shares w_g that sum to 1, or the least
mu_g. A part is a set of examples that one test covers. For a weighted mean, all examples are one part, in
which an example of group g has the weight N w_g / N_g. For the least mean, each group is a part, and all
weights are 1. The weights of a part sum to its total, which is N or N_g.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import FloatArray, IntArray

MOST_RATIO = 1_000_000
"""Largest ratio of two groups' weights.
Above it, the rounding of sums would exceed the contribution of the lighter group."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Assignment of examples to groups, with the groups' weights."""

    of_example: IntArray
    """Shape (N,), group of each example, from 0 to G - 1."""
    sizes: IntArray
    """Shape (G,), N_g, each at least 1."""
    shares: FloatArray | None
    """Shape (G,), w_g, positive with sum 1; None for the least mean."""
    weights: FloatArray
    """Shape (N,), the weight of each example."""
    part_of: IntArray
    """Shape (N,), the part of each example."""
    totals: FloatArray
    """Shape (P,), the sum of the weights of each part."""

    @classmethod
    def none(cls, n_examples: int) -> Self:
        """Put all examples into one group: the value of an arm is its mean."""
        return cls.of(np.zeros(n_examples, dtype=np.int64), np.ones(1))

    @classmethod
    def of(cls, of_example: IntArray, weights: FloatArray | None) -> Self:
        """Create groups.

        Arms are compared by a weighted mean of their group means, or by the least one.

        Args:
            of_example: Shape (N,), from 0 to G - 1, each of these at least once.
            weights: Shape (G,), weights of the groups, above 0; None for the least mean.
        """
        n = len(of_example)
        sizes = np.bincount(of_example)
        if weights is None:
            each = np.ones(n)
            return cls(of_example, sizes, None, each, of_example, sizes.astype(np.float64))
        _, exponent = np.frexp(weights.max())
        scaled = np.ldexp(weights, -exponent)  # a power of two keeps sums finite and changes no bits
        shares = scaled / scaled.sum()
        each = (n * shares / sizes)[of_example]
        return cls(of_example, sizes, shares, each, np.zeros_like(of_example), np.array([float(n)]))

    @property
    def n_groups(self) -> int:
        """Number G of groups."""
        return len(self.sizes)

    @property
    def n_parts(self) -> int:
        """Number P of parts."""
        return len(self.totals)

    @property
    def part_sizes(self) -> IntArray:
        """Number of examples of each part, shape (P,)."""
        return np.array([len(self.weights)]) if self.n_parts == 1 else self.sizes

    @property
    def are_alike(self) -> bool:
        """Whether all examples have the same weight within their part."""
        return self.shares is None or self.n_groups == 1

    def rows_of(self, arms: IntArray) -> IntArray:
        """Row indices of some arms, shape (A P,).

        The P parts of an arm are next to each other.
        """
        parts = np.arange(self.n_parts)
        return np.asarray((arms[:, np.newaxis] * self.n_parts + parts).ravel())

    def row_of(self, arms: IntArray, examples: IntArray) -> IntArray:
        """Row index of each pair, shape (B,)."""
        return np.asarray(arms * self.n_parts + self.part_of[examples])

    def least(self, of_rows: FloatArray) -> FloatArray:
        """Least value over each arm's parts, from values by row, shape (A,)."""
        return np.asarray(of_rows.reshape(-1, self.n_parts).min(axis=1))

    def value(self, means: FloatArray) -> FloatArray:
        """Value of each arm, shape (A,), from its group means, shape (A, G).

        NaN if no mean is known. An unknown mean counts as the value of the arm's other means.
        """
        is_known = ~np.isnan(means)
        known = np.where(is_known, means, 0.0)
        has_any = is_known.any(axis=1)
        if self.shares is None:
            found = np.where(is_known, means, np.inf).min(axis=1)
        else:
            # Not a matrix product, because its rounding can depend on the number of threads.
            of_known = (is_known * self.shares).sum(axis=1)
            found = (known * self.shares).sum(axis=1) / np.where(has_any, of_known, 1.0)
        return np.where(has_any, found, np.nan)


def groups_of(groups: IntArray | None, weights: FloatArray | None, n_examples: int) -> Groups:
    """Validate groups and weights.

    If `groups` is None, put all examples into one group.

    Raises:
        InvalidParameter: If the groups do not match the examples, or the weights do not match the groups.
    """
    if groups is None:
        if weights is not None:
            raise InvalidParameter("group_weights", weights.tolist(), "None without groups")
        return Groups.none(n_examples)
    of_example = np.asarray(groups)
    are_whole = of_example.shape == (n_examples,) and of_example.dtype.kind in "iu"
    if not are_whole or not np.array_equal(np.unique(of_example), np.arange(int(of_example.max()) + 1)):
        said = f"{n_examples} integers from 0 to G - 1, each of these at least once"
        raise InvalidParameter("groups", f"an array of shape {of_example.shape}", said)
    count = int(of_example.max()) + 1
    if weights is None:
        return Groups.of(of_example.astype(np.int64), None)
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (count,) or not (np.isfinite(given) & (given > 0.0)).all():
        raise InvalidParameter("group_weights", given.tolist(), f"{count} finite numbers above 0")
    if given.max() / MOST_RATIO > given.min():
        said = f"at most {MOST_RATIO} times as large as one another"
        raise InvalidParameter("group_weights", given.tolist(), said)
    return Groups.of(of_example.astype(np.int64), given)


def draw_weighted(free: IntArray, weights: FloatArray, size: int, rng: np.random.Generator) -> IntArray:
    """Draw without replacement, with probabilities proportional to weights.

    Each draw uses the weights of the remaining examples.

    Args:
        free: Examples to draw from.
        weights: Positive weights of these examples.
        size: Number of draws, at most the number of examples.
        rng: See `round_rng`.
    """
    # Independent exponential clocks: the probability that clock i rings first is proportional to its rate,
    # and the remaining clocks are memoryless.
    rings = rng.standard_exponential(len(free)) / weights
    return np.asarray(free[np.argsort(rings, kind="stable")[:size]])

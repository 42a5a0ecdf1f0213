"""Draws of all rows in counting order, with the quantities for tests of a row against a mean.

A row is an arm, or, if each group of examples is tested by itself, an arm on the examples of a group; see
`groups`. Letters: R rows, N examples.
"""

from typing import NamedTuple

import numpy as np

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.state.arrays import FloatArray, IntArray, with_more


class Grouped(NamedTuple):
    """Pairs of a batch, grouped by arm or row, in drawing order within each."""

    arms: IntArray
    """Shape (G,), each arm or row once, ascending."""
    starts: IntArray
    """Shape (G,), index of the first pair of each."""
    sizes: IntArray
    """Shape (G,)."""
    group: IntArray
    """Shape (B,), index of each pair's arm."""
    examples: IntArray
    """Shape (B,)."""
    scores: FloatArray
    """Shape (B,), NaN if unscored."""

    @classmethod
    def of(cls, arms: IntArray, examples: IntArray, scores: FloatArray) -> "Grouped":
        """Group pairs that are in the order they were drawn."""
        order = np.argsort(arms, kind="stable")
        ordered = arms[order]
        is_first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
        starts = np.flatnonzero(is_first)
        group = is_first.cumsum() - 1
        sizes = np.diff(np.append(starts, len(arms)))
        return cls(ordered[starts], starts, sizes, group, examples[order], scores[order])

    @property
    def rows(self) -> IntArray:
        """Arm of each pair, shape (B,)."""
        return self.arms[self.group]


class Played(NamedTuple):
    """Draws in the form used for bets, grouped by row."""

    scores: FloatArray
    """Scores, unscored as 1."""
    before: FloatArray
    """Weighted sums of the row's scores before each draw."""
    left: FloatArray
    """Weight of the row's examples unobserved before each draw."""
    total: FloatArray
    """Weight of all of the row's examples."""
    control: FloatArray
    """Control subtracted from the score; it has mean 0 over the examples left."""
    most: FloatArray
    """Minus the smallest possible value of the control, non-negative."""
    adaptive: FloatArray
    """Adaptive bet."""


FIRST_CAPACITY = 1024


class DrawHistory(NamedTuple):
    """All draws of some rows, grouped by row, in drawing order within each."""

    played: Played
    examples: IntArray
    """Shape (F,)."""
    residuals: FloatArray
    """Shape (F,), scores less the mean of their arm when they were observed."""
    starts: IntArray
    """Shape (A,), index of the first draw of each arm."""


class Draws:
    """Draws of K arms; memory grows with the number of draws, not of pairs."""

    def __init__(self, n_arms: int, groups: Groups) -> None:
        n_rows = n_arms * groups.n_parts
        self._groups = groups
        self.n_examples = len(groups.weights)
        self.totals = np.tile(groups.totals, n_arms)  # (R,) weights of all examples
        self.count = np.zeros(n_rows, dtype=np.int64)  # (R,)
        self.scored = np.zeros(n_rows, dtype=np.int64)  # (R,) draws with a score
        self.told = np.zeros(n_rows)  # (R,) weights of the examples drawn
        self.low = np.zeros(n_rows)  # (R,) weighted sums of the scores, unscored as 0
        self.high = np.zeros(n_rows)  # (R,) weighted sums of the scores, unscored as 1
        self.sums = np.zeros(n_rows)  # (R,) sums of the scores, unscored as 1
        self.squares = np.zeros(n_rows)  # (R,) sums of the squared scores, unscored as 1
        self._size = 0
        self._pairs = np.zeros((2, FIRST_CAPACITY), dtype=np.int64)  # arms and examples
        self._values = np.zeros((5, FIRST_CAPACITY))  # scores, controls, bounds, bets, residuals

    def add_arms(self, count: int) -> None:
        """Append arms without draws."""
        more = count * self._groups.n_parts
        self.totals = np.concatenate([self.totals, np.tile(self._groups.totals, count)])
        self.count, self.scored = with_more(self.count, more), with_more(self.scored, more)
        self.told, self.squares = with_more(self.told, more), with_more(self.squares, more)
        self.low, self.high = with_more(self.low, more), with_more(self.high, more)
        self.sums = with_more(self.sums, more)

    @property
    def left(self) -> FloatArray:
        """Weight of each row's unobserved examples, shape (R,)."""
        return self.totals - self.told

    @property
    def variances(self) -> FloatArray:
        """Variances of the rows' scores, shape (R,), smoothed by one or two fair coin draws; at most 1/4."""
        deviations = self.squares - self.sums**2 / np.maximum(self.count, 1)
        return np.asarray(np.minimum((deviations + 0.5) / (self.count + 2), 0.25))

    def next_of(self, batch: Grouped, control: FloatArray, most: FloatArray, adaptive: FloatArray) -> Played:
        """Prepare the draws of a batch for bets, before they are appended."""
        scores = np.where(np.isnan(batch.scores), 1.0, batch.scores)
        weights = self._groups.weights[batch.examples]
        sums, told = _before(weights * scores), _before(weights)
        before = self.high[batch.rows] + sums - sums[batch.starts][batch.group]
        left = self.left[batch.rows] - (told - told[batch.starts][batch.group])
        left = np.maximum(left, weights)  # rounding can subtract more than there is
        return Played(scores, before, left, self.totals[batch.rows], control, most, adaptive)

    def append(self, batch: Grouped, played: Played, residuals: FloatArray) -> None:
        """Absorb a batch; `residuals` has shape (B,)."""
        new = slice(self._size, self._size + len(batch.examples))
        while new.stop > self._pairs.shape[1]:
            self._pairs = np.concatenate([self._pairs, np.zeros_like(self._pairs)], axis=1)
            self._values = np.concatenate([self._values, np.zeros_like(self._values)], axis=1)
        self._size = new.stop
        self._pairs[0, new], self._pairs[1, new] = batch.rows, batch.examples
        kept = (played.scores, played.control, played.most, played.adaptive, residuals)
        for row, values in enumerate(kept):
            self._values[row, new] = values
        is_scored, weights = ~np.isnan(batch.scores), self._groups.weights[batch.examples]
        self.count[batch.arms] += batch.sizes
        self.scored[batch.arms] += np.add.reduceat(is_scored.astype(np.int64), batch.starts)
        self.told[batch.arms] += np.add.reduceat(weights, batch.starts)
        low = np.where(is_scored, batch.scores, 0.0)
        self.low[batch.arms] += np.add.reduceat(weights * low, batch.starts)
        self.high[batch.arms] += np.add.reduceat(weights * played.scores, batch.starts)
        self.sums[batch.arms] += np.add.reduceat(played.scores, batch.starts)
        self.squares[batch.arms] += np.add.reduceat(played.scores**2, batch.starts)

    def row(self, rows: IntArray) -> FloatArray:
        """Scores of an arm by example, shape (N,): unscored as 1, and 0 without a draw."""
        mine = np.flatnonzero(np.isin(self._pairs[0, : self._size], rows))
        row = np.zeros(self.n_examples)
        row[self._pairs[1, mine]] = self._values[0, mine]
        return row

    def history(self, arms: IntArray) -> DrawHistory:
        """All draws of some arms; the arms are in ascending order and each has a draw."""
        of_arm = self._pairs[0, : self._size]
        is_wanted = np.zeros(len(self.count), dtype=np.bool_)
        is_wanted[arms] = True
        order = np.flatnonzero(is_wanted[of_arm])
        # numpy sorts narrow integers by radix
        narrow = of_arm[order].astype(np.min_scalar_type(len(self.count)))
        order = order[np.argsort(narrow, kind="stable")]
        counts = self.count[arms]
        starts = np.concatenate(([0], counts.cumsum()[:-1]))
        scores, control, most, adaptive, residuals = self._values[:, order]
        examples, totals = self._pairs[1, order], np.repeat(self.totals[arms], counts)
        weights = self._groups.weights[examples]
        sums, told = _before(weights * scores), _before(weights)
        before = sums - np.repeat(sums[starts], counts)
        left = np.maximum(totals - (told - np.repeat(told[starts], counts)), weights)
        played = Played(scores, before, left, totals, control, most, adaptive)
        return DrawHistory(played, examples, residuals, starts)


def _before(values: FloatArray) -> FloatArray:
    """Sums of the values before each one."""
    return np.asarray(values.cumsum() - values)

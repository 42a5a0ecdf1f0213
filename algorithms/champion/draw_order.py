"""Draws of all rows in the order in which they count.

They have the quantities that tests against a mean need. A row is an arm. If each group of examples is tested
separately, a row is an arm on the examples of one group; see `groups`. Letters: R rows, N examples.
"""

from typing import NamedTuple

import numpy as np

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.state.arrays import FloatArray, IntArray, with_more


class Grouped(NamedTuple):
    """Pairs of a batch, grouped by arm or row.

    Within each group, pairs are in the order of the draws.
    """

    arms: IntArray
    """Shape (G,), arm or row of each group, ascending."""
    starts: IntArray
    """Shape (G,), index of the first pair of each group."""
    sizes: IntArray
    """Shape (G,), number of pairs of each group."""
    group: IntArray
    """Shape (B,), index of each pair's group."""
    examples: IntArray
    """Shape (B,)."""
    scores: FloatArray
    """Shape (B,), NaN if unscored."""

    @classmethod
    def of(cls, arms: IntArray, examples: IntArray, scores: FloatArray) -> "Grouped":
        """Group pairs by arm; the pairs of an arm keep their order, that of the draws."""
        order = np.argsort(arms, kind="stable")
        ordered = arms[order]
        is_first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
        starts = np.flatnonzero(is_first)
        group = is_first.cumsum() - 1
        sizes = np.diff(np.append(starts, len(arms)))
        return cls(ordered[starts], starts, sizes, group, examples[order], scores[order])

    @property
    def rows(self) -> IntArray:
        """Arm or row of each pair, shape (B,)."""
        return self.arms[self.group]


class Played(NamedTuple):
    """Draws in the form used for bets, grouped by row.

    Each field has one entry per draw.
    """

    scores: FloatArray
    """Scores; 1 if unscored."""
    before: FloatArray
    """Weighted sum of the row's scores before each draw."""
    left: FloatArray
    """Weight of the row's examples that are unobserved before each draw."""
    total: FloatArray
    """Weight of all examples of the row."""
    control: FloatArray
    """Control subtracted from the score; it has mean 0 over the examples left."""
    most: FloatArray
    """Minus the smallest possible value of the control, non-negative."""
    adaptive: FloatArray
    """Adaptive bet."""


FIRST_CAPACITY = 1024


class DrawHistory(NamedTuple):
    """All draws of some arms or rows, grouped by arm or row.

    Within each group, draws are in order.
    """

    played: Played
    examples: IntArray
    """Shape (F,)."""
    residuals: FloatArray
    """Shape (F,), residuals of the scores when they were observed.
    See `Controls.residuals`."""
    starts: IntArray
    """Shape (A,), index of the first draw of each arm or row."""


class Draws:
    """Draws of K arms. Memory grows with the number of draws, not with K x N."""

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
        """Variances of the rows' scores, shape (R,), at most 1/4.

        Smoothed by two additional squared deviations of 1/4 each.
        """
        deviations = self.squares - self.sums**2 / np.maximum(self.count, 1)
        return np.asarray(np.minimum((deviations + 0.5) / (self.count + 2), 0.25))

    def next_of(self, batch: Grouped, control: FloatArray, most: FloatArray, adaptive: FloatArray) -> Played:
        """The draws of a batch in the form used for bets, before they are appended.

        Args:
            batch: B draws.
            control: Shape (B,), control of each draw.
            most: Shape (B,), minus the smallest possible value of each control.
            adaptive: Shape (B,), adaptive bet on each draw.
        """
        scores = np.where(np.isnan(batch.scores), 1.0, batch.scores)
        weights = self._groups.weights[batch.examples]
        sums, told = _before(weights * scores), _before(weights)
        before = self.high[batch.rows] + sums - sums[batch.starts][batch.group]
        left = self.left[batch.rows] - (told - told[batch.starts][batch.group])
        left = np.maximum(left, weights)  # rounding must not make it smaller than the draw's own weight
        return Played(scores, before, left, self.totals[batch.rows], control, most, adaptive)

    def append(self, batch: Grouped, played: Played, residuals: FloatArray) -> None:
        """Append the draws of a batch; `residuals` has shape (B,)."""
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

    def revise(self, rows: IntArray, examples: IntArray, scores: FloatArray) -> IntArray:
        """Replace missing scores of some draws; controls and bets stay as they were.

        Args:
            rows: Shape (B,).
            examples: Shape (B,).
            scores: Shape (B,), in [0, 1].

        Returns:
            Shape (B,), place of each draw among those of its row.
        """
        of_row, of_example = self._pairs[:, : self._size]
        keys, order = of_row * self.n_examples + of_example, np.argsort(of_row, kind="stable")
        by_key = np.argsort(keys)
        at = by_key[np.searchsorted(keys, rows * self.n_examples + examples, sorter=by_key)]
        places = np.empty(self._size, dtype=np.int64)
        places[order] = np.arange(self._size) - (self.count.cumsum() - self.count)[of_row[order]]
        self._values[0, at] = scores
        self._values[4, at] += scores - 1.0
        weights = self._groups.weights[examples]
        np.add.at(self.scored, rows, 1)
        np.add.at(self.low, rows, weights * scores)
        np.add.at(self.high, rows, weights * (scores - 1.0))
        np.add.at(self.sums, rows, scores - 1.0)
        np.add.at(self.squares, rows, scores**2 - 1.0)
        return places[at]

    def row(self, rows: IntArray) -> FloatArray:
        """Scores of an arm by example, shape (N,): unscored as 1, undrawn as 0.

        `rows` are all rows of the arm.
        """
        mine = np.flatnonzero(np.isin(self._pairs[0, : self._size], rows))
        row = np.zeros(self.n_examples)
        row[self._pairs[1, mine]] = self._values[0, mine]
        return row

    def history(self, arms: IntArray) -> DrawHistory:
        """All draws of some arms or rows.

        These must be ascending and have at least one draw each.
        """
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
    """Cumulative sums that exclude the value itself, in the shape of `values`."""
    return np.asarray(values.cumsum() - values)

"""The draws of all arms in the order they count, with all that a test of the arm against a mean needs."""

from typing import NamedTuple

import numpy as np

from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.algorithms.state.growing import with_more


class Grouped(NamedTuple):
    """The pairs of a batch, those of an arm together and in the order they were drawn."""

    arms: IntArray
    """Shape (G,), each arm once, ascending."""
    starts: IntArray
    """Shape (G,), where the pairs of each begin."""
    sizes: IntArray
    """Shape (G,)."""
    group: IntArray
    """Shape (B,), which of the arms each pair is of."""
    place: IntArray
    """Shape (B,), how many pairs of its arm are before it in the batch."""
    examples: IntArray
    """Shape (B,)."""
    scores: FloatArray
    """Shape (B,), NaN where unscored."""

    @classmethod
    def of(cls, arms: IntArray, examples: IntArray, scores: FloatArray) -> "Grouped":
        """Group pairs, given in the order they were drawn."""
        order = np.argsort(arms, kind="stable")
        ordered = arms[order]
        is_first = np.concatenate(([True], ordered[1:] != ordered[:-1]))
        starts = np.flatnonzero(is_first)
        group = is_first.cumsum() - 1
        place = np.arange(len(arms)) - starts[group]
        sizes = np.diff(np.append(starts, len(arms)))
        return cls(ordered[starts], starts, sizes, group, place, examples[order], scores[order])

    @property
    def rows(self) -> IntArray:
        """The arm of each pair, shape (B,)."""
        return self.arms[self.group]


class Played(NamedTuple):
    """Draws in a row, of one arm after the other, as they are bet on."""

    scores: FloatArray
    """Unscored as 1."""
    before: FloatArray
    """Sums of the arm's scores before each draw."""
    left: FloatArray
    """Examples of the arm that were not told before each draw."""
    control: FloatArray
    """What is taken off the score; of mean 0 over what was left."""
    most: FloatArray
    """Minus the least that the control may be, not negative."""
    adaptive: FloatArray
    """The adaptive bet."""


FIRST_CAPACITY = 1024


class History(NamedTuple):
    """All draws of some arms: those of one arm after those of the other, in the order they were drawn."""

    played: Played
    examples: IntArray
    """Shape (F,)."""
    residuals: FloatArray
    """Shape (F,), scores less the mean of their arm when they were told."""
    starts: IntArray
    """Shape (A,), where those of each arm begin."""


class Draws:
    """What was drawn of K arms; memory goes with the number of draws, not with that of pairs."""

    def __init__(self, n_arms: int, n_examples: int) -> None:
        self.n_examples = n_examples
        self.count = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self.low = np.zeros(n_arms)  # (K,) sums, unscored as 0
        self.high = np.zeros(n_arms)  # (K,) sums, unscored as 1
        self.squares = np.zeros(n_arms)  # (K,) of the scores, unscored as 1
        self._size = 0
        self._pairs = np.zeros((2, FIRST_CAPACITY), dtype=np.int64)  # arms and examples
        self._values = np.zeros((5, FIRST_CAPACITY))  # scores, controls, bounds, bets, residuals

    def add_arms(self, count: int) -> None:
        """Append arms without draws."""
        self.count, self.squares = with_more(self.count, count), with_more(self.squares, count)
        self.low, self.high = with_more(self.low, count), with_more(self.high, count)

    @property
    def variances(self) -> FloatArray:
        """Of each arm's scores, shape (K,), smoothed by a draw or two of a fair coin; at most 1/4."""
        deviations = self.squares - self.high**2 / np.maximum(self.count, 1)
        return np.asarray(np.minimum((deviations + 0.5) / (self.count + 2), 0.25))

    def next_of(self, batch: Grouped, control: FloatArray, most: FloatArray, adaptive: FloatArray) -> Played:
        """The draws of a batch as they are bet on, before they are appended."""
        scores = np.where(np.isnan(batch.scores), 1.0, batch.scores)
        sums = scores.cumsum() - scores
        before = self.high[batch.rows] + sums - sums[batch.starts][batch.group]
        left = (self.n_examples - self.count[batch.rows] - batch.place).astype(np.float64)
        return Played(scores, before, left, control, most, adaptive)

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
        self.count[batch.arms] += batch.sizes
        low = np.where(np.isnan(batch.scores), 0.0, batch.scores)
        self.low[batch.arms] += np.add.reduceat(low, batch.starts)
        self.high[batch.arms] += np.add.reduceat(played.scores, batch.starts)
        self.squares[batch.arms] += np.add.reduceat(played.scores**2, batch.starts)

    def row(self, arm: int) -> FloatArray:
        """An arm's scores by example, shape (N,): unscored as 1, and 0 where there is no draw."""
        mine = np.flatnonzero(self._pairs[0, : self._size] == arm)
        row = np.zeros(self.n_examples)
        row[self._pairs[1, mine]] = self._values[0, mine]
        return row

    def history(self, arms: IntArray) -> History:
        """All draws of some arms, given in ascending order, each with a draw."""
        of_arm = self._pairs[0, : self._size]
        is_wanted = np.zeros(len(self.count), dtype=np.bool_)
        is_wanted[arms] = True
        order = np.flatnonzero(is_wanted[of_arm])
        narrow = of_arm[order].astype(np.min_scalar_type(len(self.count)))  # which numpy sorts by radix
        order = order[np.argsort(narrow, kind="stable")]
        counts = self.count[arms]
        starts = np.concatenate(([0], counts.cumsum()[:-1]))
        scores, control, most, adaptive, residuals = self._values[:, order]
        sums = scores.cumsum() - scores
        before = sums - np.repeat(sums[starts], counts)
        left = (self.n_examples + np.repeat(starts, counts) - np.arange(len(order))).astype(np.float64)
        played = Played(scores, before, left, control, most, adaptive)
        return History(played, self._pairs[1, order], residuals, starts)

"""The draws of each arm in the order they count, with all that a test of the arm against a mean needs."""

from typing import NamedTuple

import numpy as np

from algorithms.arrays import FloatArray, IntArray


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


class Draws:
    """What was drawn of K arms. An arm costs as much memory as it has draws, in pages of the system."""

    def __init__(self, n_arms: int, n_examples: int) -> None:
        self.n_examples = n_examples
        shape = (n_arms, n_examples)
        self.examples = np.zeros(shape, dtype=np.int32)
        self.scores = np.zeros(shape)  # unscored as 1
        self.residuals = np.zeros(shape)
        self.control = np.zeros(shape)
        self.most = np.zeros(shape)
        self.adaptive = np.zeros(shape)
        self.count = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self.low = np.zeros(n_arms)  # (K,) sums, unscored as 0
        self.high = np.zeros(n_arms)  # (K,) sums, unscored as 1
        self.squares = np.zeros(n_arms)  # (K,) of the scores, unscored as 1

    @property
    def variances(self) -> FloatArray:
        """Of each arm's scores, shape (K,), smoothed by a draw or two of a fair coin; at most 1/4."""
        deviations = self.squares - self.high**2 / np.maximum(self.count, 1)
        return np.asarray(np.minimum((deviations + 0.5) / (self.count + 2), 0.25))

    def next_of(self, batch: Grouped, control: FloatArray, most: FloatArray, adaptive: FloatArray) -> Played:
        """The draws of a batch as they are bet on, before they are appended."""
        scores = np.nan_to_num(batch.scores, nan=1.0)
        sums = scores.cumsum() - scores
        before = self.high[batch.rows] + sums - sums[batch.starts][batch.group]
        left = (self.n_examples - self.count[batch.rows] - batch.place).astype(np.float64)
        return Played(scores, before, left, control, most, adaptive)

    def append(self, batch: Grouped, played: Played, residuals: FloatArray) -> None:
        """Absorb a batch; `residuals` has shape (B,)."""
        rows, places = batch.rows, self.count[batch.rows] + batch.place
        self.examples[rows, places] = batch.examples
        for stored, values in (
            (self.scores, played.scores),
            (self.residuals, residuals),
            (self.control, played.control),
            (self.most, played.most),
            (self.adaptive, played.adaptive),
        ):
            stored[rows, places] = values
        self.count[batch.arms] += batch.sizes
        self.low[batch.arms] += np.add.reduceat(np.nan_to_num(batch.scores, nan=0.0), batch.starts)
        self.high[batch.arms] += np.add.reduceat(played.scores, batch.starts)
        self.squares[batch.arms] += np.add.reduceat(played.scores**2, batch.starts)

    def all_of(self, arms: IntArray) -> tuple[Played, IntArray]:
        """All draws of some arms, at least one each, and where those of each begin."""
        counts = self.count[arms]
        starts = np.concatenate(([0], counts.cumsum()[:-1]))
        place = np.arange(int(counts.sum())) - np.repeat(starts, counts)
        scores = self.flat(self.scores, arms)
        sums = scores.cumsum() - scores
        played = Played(
            scores,
            sums - np.repeat(sums[starts], counts),
            (self.n_examples - place).astype(np.float64),
            *(self.flat(stored, arms) for stored in (self.control, self.most, self.adaptive)),
        )
        return played, starts

    def flat(self, stored: FloatArray, arms: IntArray) -> FloatArray:
        """What is stored of the draws of some arms, in a row."""
        return np.concatenate([stored[arm, : self.count[arm]] for arm in arms.tolist()])

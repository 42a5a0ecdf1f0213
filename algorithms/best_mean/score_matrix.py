"""Record of proposed and observed pairs of the K x n score matrix.

It includes their sums per arm. A round costs O(K + B), plus O(n) for each arm whose examples are drawn.
"""

from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.groups import Groups, draw_weighted
from winnow.algorithms.errors import MalformedBatch, OutcomeOutOfRange
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray, at_bounds, with_more
from winnow.algorithms.state.dropping import too_many_unscored
from winnow.algorithms.state.in_flight import InFlight, first_of, require_untold


class ScoreMatrix:
    """Revealed part of the score matrix.

    A pair is free until it is proposed or observed. An arm is dropped permanently as soon as
    `too_many_unscored` is true, or when a tell follows `leave_out`; it then has no free pairs.

    Args:
        config: The problem, which gives the size of the matrix.
        groups: Groups of the examples, for values by group means; None if arms are compared by plain means.
    """

    def __init__(self, config: BestMeanConfig, groups: Groups | None = None) -> None:
        self.groups = Groups.none(config.n_examples) if groups is None else groups
        self.n_arms = config.n_arms
        self.n_examples = config.n_examples
        self._max_unscored = config.max_unscored
        shape = (config.n_arms, config.n_examples)
        self._told = np.zeros(shape, dtype=np.bool_)  # (K, n)
        self._taken = np.zeros(shape, dtype=np.bool_)  # (K, n) pairs proposed or observed
        self.told = np.zeros(config.n_arms, dtype=np.int64)  # (K,) pairs observed, unscored ones included
        self.scored = np.zeros(config.n_arms, dtype=np.int64)  # (K,) scored pairs
        self.sums = np.zeros(config.n_arms)  # (K,) sums of the scores
        by_group = (config.n_arms, self.groups.n_groups)
        self._scored_in = np.zeros(by_group, dtype=np.int64)  # (K, G) scored pairs of each group
        self._sums_in = np.zeros(by_group)  # (K, G) sums of their scores
        # (K, P) number of pairs of each part that were proposed or observed
        self.asked = np.zeros((config.n_arms, self.groups.n_parts), dtype=np.int64)
        self.pending = np.zeros(config.n_arms, dtype=np.int64)  # (K,) pairs proposed, not yet observed
        self.active = np.ones(config.n_arms, dtype=np.bool_)  # (K,) not dropped
        self._left_out = np.zeros(config.n_arms, dtype=np.bool_)  # (K,) to be dropped, whatever is observed
        self.free_of_arm = np.full(config.n_arms, config.n_examples)  # (K,)
        self._unscored: set[tuple[int, int]] = set()  # pairs observed without a score
        self.revised = np.zeros(config.n_arms, dtype=np.bool_)
        """Arms with a score that came after its pair was observed, shape (K,)."""
        self._in_flight = InFlight()

    def add_arms(self, count: int) -> None:
        """Append arms, whose pairs are all free."""
        self.n_arms += count
        self._told, self._taken = with_more(self._told, count), with_more(self._taken, count)
        self.told, self.scored = with_more(self.told, count), with_more(self.scored, count)
        self.sums, self.pending = with_more(self.sums, count), with_more(self.pending, count)
        self._sums_in, self._scored_in = with_more(self._sums_in, count), with_more(self._scored_in, count)
        self.asked = with_more(self.asked, count)
        self.active = with_more(self.active, count, True)
        self._left_out, self.revised = with_more(self._left_out, count), with_more(self.revised, count)
        self.free_of_arm = with_more(self.free_of_arm, count, self.n_examples)

    def leave_out(self, arms: IntArray) -> None:
        """Drop arms with the next tell, as if too many of their pairs were unscored."""
        self._left_out[arms] = True

    @property
    def means(self) -> FloatArray:
        """Mean score of each arm, or its value by group means, shape (K,).

        NaN without a score.
        """
        means = np.full(self._sums_in.shape, np.nan)
        np.divide(self._sums_in, self._scored_in, out=means, where=self._scored_in > 0)
        return self.groups.value(means)

    @property
    def fully_scored(self) -> BoolArray:
        """Arms with a score on every example, so that their means are known, shape (K,)."""
        return np.asarray(self.scored == self.n_examples, dtype=np.bool_)

    @property
    def possible_means(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest mean that the scores allow, shape (K,) each.

        An example without a score, observed or not, counts as 0 for the lowest and as 1 for the highest mean.
        """
        sizes, value = self.groups.sizes, self.groups.value
        unknown = sizes - self._scored_in
        return value(self._sums_in / sizes), value((self._sums_in + unknown) / sizes)

    @property
    def in_flight(self) -> Iterator[Batch]:
        """Pending batches, oldest first."""
        return iter(self._in_flight)

    def is_free(self, arms: IntArray, examples: IntArray) -> BoolArray:
        """Whether pairs can be proposed; the arguments are broadcast against each other."""
        return self.active[arms] & ~self._taken[arms, examples]

    def open_examples(self, arms: IntArray) -> IntArray:
        """Examples on which any of these active arms has a free pair, ascending.

        Costs O(A n).
        """
        return np.flatnonzero(~self._taken[arms].all(axis=0))

    def untold(self, arms: IntArray) -> BoolArray:
        """Which examples were not yet observed for each of A arms, shape (A, n)."""
        return ~self._told[arms]

    def draw(self, arm: int, size: int, rng: np.random.Generator, part: int | None = None) -> IntArray:
        """Draw from an arm's free examples without replacement, in random order.

        The probability of an example is proportional to its weight, so uniform without weights.

        Args:
            arm: The arm.
            size: Number of examples wanted.
            rng: See `round_rng`.
            part: The part to draw from; None for all parts.

        Returns:
            Shape (min(size, F),), where F is the number of the arm's free examples in that part.
        """
        groups = self.groups
        is_free = ~self._taken[arm] if part is None else ~self._taken[arm] & (groups.part_of == part)
        free = np.flatnonzero(is_free)
        if not groups.are_alike:
            return draw_weighted(free, groups.weights[free], size, rng)
        return rng.choice(free, size=min(size, free.size), replace=False)

    def ask(self, arms: ArrayLike, examples: IntArray) -> Batch:
        """Create a batch of free pairs and mark them as pending.

        `arms` is one arm or shape (B,).
        """
        batch = Batch(np.broadcast_to(np.asarray(arms, dtype=np.int64), examples.shape), examples)
        self._take(batch.arms, batch.examples)
        self.pending += np.bincount(batch.arms, minlength=self.n_arms)
        self._in_flight.append(batch)
        return batch

    def ask_uniformly(self, size: int, rng: np.random.Generator, among: BoolArray | None = None) -> Batch:
        """Draw at most `size` pairs uniformly from all free pairs, grouped by arm.

        Args:
            size: Number of pairs wanted.
            rng: See `round_rng`.
            among: Shape (K,), arms to choose from; None for all.
        """
        free = self.free_of_arm if among is None else np.where(among, self.free_of_arm, 0)
        size = min(size, int(free.sum()))
        if size == 0:
            return EMPTY_BATCH
        # Draw uniform pairs in two steps: the number from each row, then the examples of each row.
        counts = rng.multivariate_hypergeometric(free, size, method="marginals")
        arms = np.flatnonzero(counts)
        examples = [self.draw(int(arm), int(counts[arm]), rng) for arm in arms]
        return self.ask(np.repeat(arms, counts[arms]), np.concatenate(examples))

    def tell(self, batch: Batch, outcomes: ArrayLike) -> FloatArray:
        """Record the scores of a batch, whether or not it was proposed here.

        Args:
            batch: B pairs not observed before.
            outcomes: Shape (B,), scores in [0, 1], NaN if unscored.

        Returns:
            The outcomes as an array of shape (B,).

        Raises:
            RefusedTell: If the batch or an outcome is invalid; the matrix is then unchanged.
        """
        arms, examples = batch.arms, batch.examples
        scores = self._validate(batch, outcomes)
        self._in_flight.take_first(batch)
        was_taken = self._taken[arms, examples]
        self.pending -= np.bincount(arms[was_taken], minlength=self.n_arms)
        self._take(arms[~was_taken], examples[~was_taken])
        self._told[arms, examples] = True
        is_scored = ~np.isnan(scores)
        self._unscored.update(_pairs(arms[~is_scored], examples[~is_scored]))
        self.told += np.bincount(arms, minlength=self.n_arms)
        self._add(arms, examples, scores)
        self._drop()
        return scores

    def revise(self, batch: Batch, outcomes: ArrayLike) -> FloatArray:
        """Reveal scores of pairs that were observed without one.

        Args:
            batch: B such pairs.
            outcomes: Shape (B,), scores in [0, 1], NaN if still unscored.

        Returns:
            The outcomes as an array of shape (B,).

        Raises:
            RefusedTell: If a pair is not unscored, or an outcome is invalid; the matrix is then unchanged.
        """
        scores = _shaped(batch, outcomes)
        _require_in_range(batch, scores)
        pairs = _pairs(batch.arms, batch.examples)
        for pair, times in Counter(pairs).items():
            if pair not in self._unscored or times > 1:
                arm, example = pair
                found = "twice" if times > 1 else "otherwise"
                expected = "observed before without a score, and in the batch once"
                raise MalformedBatch("pairs", expected, f"arm {arm} on example {example} {found}")
        is_scored = ~np.isnan(scores)
        self._unscored -= set(_pairs(batch.arms[is_scored], batch.examples[is_scored]))
        self.revised[batch.arms[is_scored]] = True
        self._add(batch.arms, batch.examples, scores)
        self._drop()
        return scores

    def _add(self, arms: IntArray, examples: IntArray, scores: FloatArray) -> None:
        """Add the scores of some pairs to all sums."""
        is_scored = ~np.isnan(scores)
        self.scored += np.bincount(arms[is_scored], minlength=self.n_arms)
        self.sums += np.bincount(arms, weights=np.where(is_scored, scores, 0.0), minlength=self.n_arms)
        cells = arms * self.groups.n_groups + self.groups.of_example[examples]
        known, shape = np.where(is_scored, scores, 0.0), self._sums_in.shape
        self._scored_in += np.bincount(cells[is_scored], minlength=self._scored_in.size).reshape(shape)
        self._sums_in += np.bincount(cells, weights=known, minlength=self._sums_in.size).reshape(shape)

    def _take(self, arms: IntArray, examples: IntArray) -> None:
        self._taken[arms, examples] = True
        rows = self.groups.row_of(arms, examples)
        self.asked += np.bincount(rows, minlength=self.asked.size).reshape(self.asked.shape)
        self.free_of_arm -= np.bincount(arms[self.active[arms]], minlength=self.n_arms)

    def _drop(self) -> None:
        too_many = too_many_unscored(self.told, self.told - self.scored, self._max_unscored)
        for arm in np.flatnonzero(self.active & (too_many | self._left_out)):
            self.active[arm] = False
            self.free_of_arm[arm] = 0

    def _validate(self, batch: Batch, outcomes: ArrayLike) -> FloatArray:
        """Validate a batch; return its outcomes as floats."""
        scores = _shaped(batch, outcomes)
        require_untold(batch.arms, batch.examples, self._told)
        _require_in_range(batch, scores)
        self._in_flight.check(batch)
        return scores


def _shaped(batch: Batch, outcomes: ArrayLike) -> FloatArray:
    """The outcomes of a batch of single arms as floats, one per pair."""
    if batch.arms.ndim != 1:
        raise MalformedBatch("arms", "of shape (B,)", f"shape {batch.arms.shape}")
    scores = at_bounds(np.array(outcomes, dtype=np.float64))
    if scores.shape != batch.arms.shape:
        raise MalformedBatch("outcomes", f"of shape {batch.arms.shape}", f"shape {scores.shape}")
    return scores


def _require_in_range(batch: Batch, scores: FloatArray) -> None:
    if (where := first_of((scores < 0.0) | (scores > 1.0))) is not None:
        arm, example = int(batch.arms[where]), int(batch.examples[where])
        raise OutcomeOutOfRange(arm, example, float(scores[where]), "in [0, 1]")


def _pairs(arms: IntArray, examples: IntArray) -> list[tuple[int, int]]:
    return list(zip(arms.tolist(), examples.tolist(), strict=True))


def highest(bounds: FloatArray, free: IntArray, pending: IntArray, rng: np.random.Generator) -> int:
    """The arm with free pairs whose bound is highest.

    Requires that an arm has a free pair. Ties go to the arms with the fewest pending pairs, and are then
    broken uniformly at random.

    Args:
        bounds: Shape (K,).
        free: Shape (K,), number of free pairs.
        pending: Shape (K,), number of pending pairs.
        rng: See `round_rng`.
    """
    arms = np.flatnonzero(free)
    arms = arms[bounds[arms] == bounds[arms].max()]
    arms = arms[pending[arms] == pending[arms].min()]
    return int(arms[rng.integers(arms.size)])

"""Record of duels proposed and observed, with their sums per pair of arms.

Memory is O(K^2) and a round of B duels costs O(B), whatever the number of examples; O(K^2 + B) once some
duels are unscored. For pairs of deterministic arms, which are compared at most once on an example, the record
also stores which examples they used.
"""

import math
from bisect import bisect_left, bisect_right, insort
from collections import Counter

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.errors import (
    ArmAgainstItself,
    MalformedBatch,
    OutcomeOutOfRange,
    PairAlreadyTold,
    PairOutsideGrid,
    PairRepeated,
)
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray, at_bounds
from winnow.algorithms.state.dropping import LEAST_TOLD_TO_DROP
from winnow.algorithms.state.in_flight import InFlight


class ExampleDraws:
    """Draw a pair's unused examples uniformly and without replacement.

    A draw depends on the generator and on the set of used examples, not on their order, so a resumed campaign
    makes the same draws as the original. Memory grows with the number of used examples, not with n.
    """

    def __init__(self, n_examples: int) -> None:
        self._n_examples = n_examples
        self._taken: list[int] = []  # ascending; proposed or observed
        self._told: set[int] = set()

    def draw(self, rng: np.random.Generator) -> int:
        """Draw one unused example and mark it as used. Requires that an example is unused."""
        rank = int(rng.integers(self._n_examples - len(self._taken)))
        # Before the i-th used example, there are (its index - i) unused ones.
        before = bisect_right(range(len(self._taken)), rank, key=lambda place: self._taken[place] - place)
        insort(self._taken, rank + before)
        return rank + before

    def is_told(self, example: int) -> bool:
        """Whether a duel of the pair on an example was observed."""
        return example in self._told

    def tell(self, example: int) -> None:
        """Mark an example as observed, whether or not it was drawn here."""
        self._told.add(example)
        place = bisect_left(self._taken, example)
        if place == len(self._taken) or self._taken[place] != example:
            self._taken.insert(place, example)


NONE_LEFT = 2**62  # larger than the number of duels in any campaign: marks a pair without duels left


class DuelRecord:
    """Duels so far, as symmetric tables over pairs of arms.

    An arm is dropped permanently once at least 8 of its duels were observed and more than `max_unscored` of
    them are unscored. This count excludes duels against dropped arms and against arms with a larger share of
    unscored duels, so a broken arm does not cause its opponents to be dropped. The arms with the largest
    share are dropped first. Arms with equal shares are dropped together, because their duels alone do not
    show which of the two is broken.

    Two deterministic arms are compared at most once on an example, drawn uniformly from the examples that
    they have not used. All other pairs use examples drawn with replacement.
    """

    def __init__(self, config: BestDuelConfig) -> None:
        self.n_arms = config.n_arms
        self.n_examples = config.n_examples
        self._max_unscored = config.max_unscored
        self._asked: Counter[tuple[int, int, int]] = Counter()  # duels proposed, not yet observed
        self._in_flight = InFlight()
        shape = (config.n_arms, config.n_arms)
        self.wins = np.zeros(shape)  # (K, K) outcomes in favour of the row; a tie adds 1/2 to both
        self.counts = np.zeros(shape, dtype=np.int64)  # (K, K) scored duels
        self.told = np.zeros(shape, dtype=np.int64)  # (K, K) duels observed, unscored ones included
        self.pending = np.zeros(shape, dtype=np.int64)  # (K, K) duels proposed, not yet observed
        self.latest: list[tuple[int, int, float]] = []  # arms and outcome of each duel of the last tell
        self.scored: list[tuple[int, int]] = []  # arms of each scored duel of the last tell
        self.n_scored = 0
        self.n_told = 0
        self.n_pending = 0
        self.active = np.ones(config.n_arms, dtype=np.bool_)  # (K,) not dropped
        self.n_active = config.n_arms
        self.is_once = _pairs_compared_once(config)  # (K, K) pairs compared at most once on an example
        self._draws = {
            (int(first), int(second)): ExampleDraws(config.n_examples)
            for first, second in np.argwhere(np.triu(self.is_once))
        }
        self._list_pairs()

    @property
    def preferences(self) -> FloatArray:
        """Share of a pair's scored duels that the row won, shape (K, K).

        1/2 on the diagonal; NaN for a pair without a scored duel.
        """
        shares = np.full(self.wins.shape, np.nan)
        np.divide(self.wins, self.counts, out=shares, where=self.counts > 0)
        np.fill_diagonal(shares, 0.5)
        return shares

    @property
    def n_dropped(self) -> int:
        """Number m of dropped arms."""
        return self.n_arms - self.n_active

    def asked(self) -> IntArray:
        """Number of proposed duels of each pair, including observed ones, shape (K * K,).

        `NONE_LEFT` for a pair that has used every example.
        """
        asked = self.told + self.pending
        if self._draws:
            asked[self.is_once & (asked == self.n_examples)] = NONE_LEFT
        return asked.ravel()

    def count(self, asked: IntArray, cell: int) -> None:
        """Add one duel of a pair to a table from `asked`.

        Requires that the pair has a duel left.
        """
        asked[cell] += 1
        if self._draws and self.is_once.item(cell) and asked[cell] == self.n_examples:
            asked[cell] = NONE_LEFT

    def n_left(self) -> int:
        """Number of duels that can still be proposed for active arms.

        `NONE_LEFT` if unlimited.
        """
        if not (self._draws and self.is_once.ravel()[self.cells].all()):
            return NONE_LEFT
        met = (self.told + self.pending).ravel()[self.cells]
        return self.n_examples * len(met) - int(met.sum())

    def is_exhausted(self) -> bool:
        """Whether all possible duels of active arms were observed."""
        if not self._draws:
            return False
        told = self.told.ravel()[self.cells]
        return bool((self.is_once.ravel()[self.cells] & (told == self.n_examples)).all())

    def ask(self, pairs: IntArray, rng: np.random.Generator) -> Batch:
        """Draw a batch of duels and record them as pending.

        A fair coin decides which arm comes first, so a judge that favours the first answer favours no arm. A
        pair that has used every example is replaced by the pair of active arms with the fewest proposed
        duels.

        Args:
            pairs: Shape (B, 2), two different arms each; at most `n_left` of them.
            rng: Draws the coins and the examples.
        """
        coins = integers(rng, 2, len(pairs))
        if self._draws:
            pairs, examples = self._draw_examples(pairs, rng)
        else:
            examples = integers(rng, self.n_examples, len(pairs))
        arms = [pair[::-1] if coin else pair for pair, coin in zip(pairs.tolist(), coins, strict=True)]
        batch = Batch(np.array(arms), np.array(examples))
        for key in _keys(batch):
            self._asked[key] += 1
            _add(self.pending, key[0], key[1], 1)
        self.n_pending += len(batch)
        self._in_flight.append(batch)
        return batch

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe the outcomes of a batch, whether or not it was proposed here.

        Pairs that can be proposed repeatedly on an example can also be observed repeatedly.

        Args:
            batch: B duels.
            outcomes: Shape (B,), in [0, 1] in favour of the first arm, NaN if unscored.

        Raises:
            RefusedTell: If the batch or an outcome is invalid; the record is then unchanged.
        """
        duels = self._validate(batch, outcomes)
        self._in_flight.check(batch)
        self._in_flight.take_first(batch)
        if self.n_pending > 0:
            self._settle(batch)
        # Plain loops are several times faster than arrays for the few duels of a round.
        for first, second, outcome in duels:
            _add(self.told, first, second, 1)
            if not math.isnan(outcome):
                _add(self.counts, first, second, 1)
                self.wins[first, second] += outcome
                self.wins[second, first] += 1.0 - outcome
        for first, second, example in _keys(batch) if self._draws else ():
            if (draws := self._draws.get((min(first, second), max(first, second)))) is not None:
                draws.tell(example)
        self.latest = duels
        self.scored = [(first, second) for first, second, outcome in duels if not math.isnan(outcome)]
        self.n_told += len(duels)
        self.n_scored += len(self.scored)
        if self.n_scored < self.n_told:
            self._drop()

    def _draw_examples(self, pairs: IntArray, rng: np.random.Generator) -> tuple[IntArray, list[int]]:
        """Draw an example for each pair, replacing pairs that have used every example."""
        asked, drawn, examples = self.asked(), [], []
        for first, second in np.sort(pairs, axis=1).tolist():
            cell = first * self.n_arms + second
            if asked[cell] == NONE_LEFT:
                cell = int(self.cells[asked[self.cells].argmin()])
            self.count(asked, cell)
            pair = divmod(cell, self.n_arms)
            draws = self._draws.get(pair)
            examples.append(int(rng.integers(self.n_examples)) if draws is None else draws.draw(rng))
            drawn.append(pair)
        return np.array(drawn), examples

    def _settle(self, batch: Batch) -> None:
        """Remove the duels of a batch from the pending duels."""
        for key in _keys(batch):
            if (left := self._asked[key]) == 0:
                continue
            _add(self.pending, key[0], key[1], -1)
            self.n_pending -= 1
            if left == 1:
                del self._asked[key]
            else:
                self._asked[key] = left - 1

    def _drop(self) -> None:
        while True:
            told = np.where(self.active, self.told, 0)
            unscored = told - np.where(self.active, self.counts, 0)
            shares = unscored.sum(axis=1) / np.maximum(told.sum(axis=1), 1)
            is_no_worse = shares <= shares[:, np.newaxis]  # (K, K) the column's share is not above the row's
            n_told = told.sum(axis=1, where=is_no_worse)
            n_unscored = unscored.sum(axis=1, where=is_no_worse)
            is_judged = self.active & (n_told >= LEAST_TOLD_TO_DROP)
            too_many = is_judged & (n_unscored > self._max_unscored * n_told)
            if not too_many.any():
                return
            self.active[too_many & (shares == shares[too_many].max())] = False
            self.n_active = int(self.active.sum())
            self._list_pairs()

    def _list_pairs(self) -> None:
        self.pairs = np.argwhere(np.triu(np.outer(self.active, self.active), 1))  # (P, 2) active, i < j
        self.cells = self.pairs @ np.array([self.n_arms, 1])  # (P,) indices of the pairs in a flat table

    def _validate(self, batch: Batch, outcomes: ArrayLike) -> list[tuple[int, int, float]]:
        """Validate a batch; return the first arm, second arm and outcome of each duel."""
        if batch.arms.ndim != 2 and len(batch) > 0:
            raise MalformedBatch("arms", "of shape (B, 2)", f"shape {batch.arms.shape}")
        scores = np.array(outcomes, dtype=np.float64)
        if scores.shape != batch.examples.shape:
            raise MalformedBatch("outcomes", f"of shape {batch.examples.shape}", f"shape {scores.shape}")
        duels = []
        for (first, second, example), outcome in zip(_keys(batch), at_bounds(scores).tolist(), strict=True):
            for arm in (first, second):
                if not (0 <= arm < self.n_arms and 0 <= example < self.n_examples):
                    raise PairOutsideGrid(arm, example, self.n_arms, self.n_examples)
            if first == second:
                raise ArmAgainstItself(first, example)
            if outcome < 0.0 or outcome > 1.0:
                raise OutcomeOutOfRange((first, second), example, outcome, "in [0, 1]")
            duels.append((first, second, outcome))
        if self._draws:
            self._refuse_repeated(batch)
        return duels

    def _refuse_repeated(self, batch: Batch) -> None:
        """Raise if a pair that is compared at most once on an example repeats an example."""
        met: set[tuple[int, int, int]] = set()
        for first, second, example in _keys(batch):
            pair = min(first, second), max(first, second)
            if (draws := self._draws.get(pair)) is None:
                continue
            if draws.is_told(example):
                raise PairAlreadyTold((first, second), example)
            if (*pair, example) in met:
                raise PairRepeated((first, second), example)
            met.add((*pair, example))


def _pairs_compared_once(config: BestDuelConfig) -> BoolArray:
    if config.deterministic is None:
        return np.zeros((config.n_arms, config.n_arms), dtype=np.bool_)
    return np.outer(config.deterministic, config.deterministic) & ~np.eye(config.n_arms, dtype=np.bool_)


def integers(rng: np.random.Generator, high: int, size: int) -> list[int]:
    """The same numbers as `rng.integers(high, size=size)`.

    A single one is drawn three times faster.
    """
    return [int(rng.integers(high))] if size == 1 else rng.integers(high, size=size).tolist()


def _keys(batch: Batch) -> list[tuple[int, int, int]]:
    """First arm, second arm and example of each duel."""
    return [
        (first, second, example)
        for (first, second), example in zip(batch.arms.tolist(), batch.examples.tolist(), strict=True)
    ]


def _add(table: IntArray, row: int, column: int, amount: int) -> None:
    table[row, column] += amount
    table[column, row] += amount

"""The duels that were asked and told, and their sums per pair of arms.

Memory is O(K^2) and a round of B duels costs O(B), however many examples there are; O(K^2 + B) once some
duels are unscored. Pairs of deterministic arms, which meet an example once, keep which ones they met.
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
    """The examples that a pair may still meet, drawn uniformly and without replacement.

    Which example a draw gives depends on the generator and on which were taken, not in which order: so a
    resumed campaign draws as the original. Memory grows with the examples taken and not with n.
    """

    def __init__(self, n_examples: int) -> None:
        self._n_examples = n_examples
        self._taken: list[int] = []  # ascending; asked or told
        self._told: set[int] = set()

    def draw(self, rng: np.random.Generator) -> int:
        """Take one of the examples never taken; there must be one."""
        rank = int(rng.integers(self._n_examples - len(self._taken)))
        # Before the i-th taken example there are as many free ones as its number exceeds i by.
        before = bisect_right(range(len(self._taken)), rank, key=lambda place: self._taken[place] - place)
        insort(self._taken, rank + before)
        return rank + before

    def is_told(self, example: int) -> bool:
        """Whether the pair's duel on an example was told."""
        return example in self._told

    def tell(self, example: int) -> None:
        """Take an example, drawn here or not, for good."""
        self._told.add(example)
        place = bisect_left(self._taken, example)
        if place == len(self._taken) or self._taken[place] != example:
            self._taken.insert(place, example)


NONE_LEFT = 2**62  # more duels than any campaign has: no pair is chosen for having had so few


class DuelRecord:
    """The duels so far, as symmetric tables over pairs of arms.

    An arm is dropped for good as soon as at least 8 of its duels were told and more than `max_unscored` of
    those are unscored. Duels against a dropped arm, or against one with a larger share of unscored duels,
    do not count there, so a broken arm does not drag its opponents along. The arms with the largest share go
    first; equals go together, as which of two arms is broken cannot be told from their duels alone.

    Two deterministic arms meet an example once, drawn uniformly from those that they have not met, and all
    others meet examples drawn with replacement.
    """

    def __init__(self, config: BestDuelConfig) -> None:
        self.n_arms = config.n_arms
        self.n_examples = config.n_examples
        self._max_unscored = config.max_unscored
        self._asked: Counter[tuple[int, int, int]] = Counter()  # duels asked and not told
        self._in_flight = InFlight()
        shape = (config.n_arms, config.n_arms)
        self.wins = np.zeros(shape)  # (K, K) outcomes in favour of the row; a tie adds 1/2 to both
        self.counts = np.zeros(shape, dtype=np.int64)  # (K, K) duels told with a score
        self.told = np.zeros(shape, dtype=np.int64)  # (K, K) duels told, unscored ones included
        self.pending = np.zeros(shape, dtype=np.int64)  # (K, K) duels asked and not told
        self.latest: list[tuple[int, int, float]] = []  # arms and outcome of each duel of the last tell
        self.scored: list[tuple[int, int]] = []  # the arms of those that are scored
        self.n_scored = 0
        self.n_told = 0
        self.n_pending = 0
        self.active = np.ones(config.n_arms, dtype=np.bool_)  # (K,) not dropped
        self.n_active = config.n_arms
        self.is_once = _meet_once(config)  # (K, K) pairs that meet an example once
        self._draws = {
            (int(first), int(second)): ExampleDraws(config.n_examples)
            for first, second in np.argwhere(np.triu(self.is_once))
        }
        self._list_pairs()

    @property
    def preferences(self) -> FloatArray:
        """Share of a pair's scored duels that the row won, shape (K, K), NaN where there is none.

        It is 1/2 on the diagonal.
        """
        shares = np.full(self.wins.shape, np.nan)
        np.divide(self.wins, self.counts, out=shares, where=self.counts > 0)
        np.fill_diagonal(shares, 0.5)
        return shares

    @property
    def n_dropped(self) -> int:
        """The number of arms that were dropped, m."""
        return self.n_arms - self.n_active

    def asked(self) -> IntArray:
        """Duels asked of each pair, those told included, or `NONE_LEFT`: shape (K * K,), as `cells`."""
        asked = self.told + self.pending
        if self._draws:
            asked[self.is_once & (asked == self.n_examples)] = NONE_LEFT
        return asked.ravel()

    def count(self, asked: IntArray, cell: int) -> None:
        """Count one more duel of a pair that has one left, in a table as `asked` makes it."""
        asked[cell] += 1
        if self._draws and self.is_once.item(cell) and asked[cell] == self.n_examples:
            asked[cell] = NONE_LEFT

    def n_left(self) -> int:
        """The number of duels that may still be asked of active arms; `NONE_LEFT` stands for no end."""
        if not (self._draws and self.is_once.ravel()[self.cells].all()):
            return NONE_LEFT
        met = (self.told + self.pending).ravel()[self.cells]
        return self.n_examples * len(met) - int(met.sum())

    def is_exhausted(self) -> bool:
        """Whether all duels that active arms may have were told."""
        if not self._draws:
            return False
        told = self.told.ravel()[self.cells]
        return bool((self.is_once.ravel()[self.cells] & (told == self.n_examples)).all())

    def ask(self, pairs: IntArray, rng: np.random.Generator) -> Batch:
        """Make a batch of duels, and remember them as pending.

        Which arm comes first is a fair coin, so a judge that favours the first answer favours no arm. Where
        a pair has met every example, the pair of active arms asked least takes its place.

        Args:
            pairs: Shape (B, 2), two different arms each; at most `n_left` of them.
            rng: Draws the coins and the examples.
        """
        coins = integers(rng, 2, len(pairs))
        if self._draws:
            pairs, examples = self._drawn(pairs, rng)
        else:
            examples = integers(rng, self.n_examples, len(pairs))
        arms = [pair[::-1] if coin else pair for pair, coin in zip(pairs.tolist(), coins, strict=True)]
        batch = Batch(np.array(arms), np.array(examples))
        for key in _keys(batch):
            self._asked[key] += 1
            _add(self.pending, key[0], key[1], 1)
        self.n_pending += len(batch)
        self._in_flight.asked(batch)
        return batch

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb the outcomes of a batch, asked here or not; a duel may be told again where it may be asked.

        Args:
            batch: B duels.
            outcomes: Shape (B,), in [0, 1] in favour of the first arm, NaN where unscored.

        Raises:
            RefusedTell: If the batch or an outcome cannot be right; nothing was changed.
        """
        duels = self._checked(batch, outcomes)
        self._in_flight.check(batch)
        self._in_flight.told(batch)
        if self.n_pending > 0:
            self._settle(batch)
        # Plain loops: for the few duels of a round they are several times faster than arrays.
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

    def _drawn(self, pairs: IntArray, rng: np.random.Generator) -> tuple[IntArray, list[int]]:
        """The pairs, others in the place of those that have met every example, and an example for each."""
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
        """Take the duels of a batch that were asked here off the pending ones."""
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
            is_no_worse = shares <= shares[:, np.newaxis]  # (K, K) the column than the row
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
        self.cells = self.pairs @ np.array([self.n_arms, 1])  # (P,) their places in a table laid out flat

    def _checked(self, batch: Batch, outcomes: ArrayLike) -> list[tuple[int, int, float]]:
        """First arm, second arm and outcome of each duel, if nothing speaks against them."""
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
        """Raise where a pair that meets an example once meets it again."""
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


def _meet_once(config: BestDuelConfig) -> BoolArray:
    if config.deterministic is None:
        return np.zeros((config.n_arms, config.n_arms), dtype=np.bool_)
    return np.outer(config.deterministic, config.deterministic) & ~np.eye(config.n_arms, dtype=np.bool_)


def integers(rng: np.random.Generator, high: int, size: int) -> list[int]:
    """As `rng.integers(high, size=size)`, from the same draws; one of them takes a third of the time."""
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

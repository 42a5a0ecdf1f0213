"""Which duels were asked and told, and what that adds up to per pair of arms.

Memory is O(K^2) and a round of B duels costs O(B), however many examples there are; O(K^2 + B) once some
duels are unscored.
"""

import math
from collections import Counter

import numpy as np
from numpy.typing import ArrayLike

from algorithms.arrays import FloatArray, IntArray
from algorithms.best_duel.setting import Setting
from algorithms.errors import ArmAgainstItself, MalformedBatch, OutcomeOutOfRange, PairOutsideGrid
from algorithms.in_flight import InFlight
from algorithms.protocols import Batch

LEAST_TOLD_TO_SET_ASIDE = 8  # fewer duels say too little about the share of unscored ones


class DuelRecord:
    """The duels so far, as symmetric tables over pairs of arms.

    An arm is set aside for good as soon as at least 8 of its duels were told and more than `max_unscored` of
    those are unscored. Duels against an arm set aside, or against one with a larger share of unscored duels,
    do not count there, so a broken arm does not drag its opponents along. The arms with the largest share go
    first; equals go together, as which of two arms is broken cannot be told from their duels alone.
    """

    def __init__(self, setting: Setting) -> None:
        self.n_arms = setting.n_arms
        self.n_examples = setting.n_examples
        self._max_unscored = setting.max_unscored
        self._asked: Counter[tuple[int, int, int]] = Counter()  # duels asked and not told
        self._in_flight = InFlight()
        shape = (setting.n_arms, setting.n_arms)
        self.wins = np.zeros(shape)  # (K, K) outcomes in favour of the row; a tie adds 1/2 to both
        self.counts = np.zeros(shape, dtype=np.int64)  # (K, K) duels told with a score
        self.told = np.zeros(shape, dtype=np.int64)  # (K, K) duels told, unscored ones included
        self.pending = np.zeros(shape, dtype=np.int64)  # (K, K) duels asked and not told
        self.scored: list[tuple[int, int]] = []  # the arms of each scored duel of the last tell
        self.n_scored = 0
        self.n_told = 0
        self.n_pending = 0
        self.active = np.ones(setting.n_arms, dtype=np.bool_)  # (K,) not set aside
        self.n_active = setting.n_arms
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

    def ask(self, pairs: IntArray, rng: np.random.Generator) -> Batch:
        """Make a batch of duels, and remember them as pending.

        Which arm comes first is a fair coin, so a judge that favours the first answer favours no arm.

        Args:
            pairs: Shape (B, 2), two different arms each.
            rng: Draws the coins and the examples, uniformly and with replacement.
        """
        coins = integers(rng, 2, len(pairs))
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
        """Absorb the outcomes of a batch, asked here or not; a duel may be told again.

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
        self.scored = [(first, second) for first, second, outcome in duels if not math.isnan(outcome)]
        self.n_told += len(duels)
        self.n_scored += len(self.scored)
        if self.n_scored < self.n_told:
            self._set_aside()

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

    def _set_aside(self) -> None:
        while True:
            told = np.where(self.active, self.told, 0)
            unscored = told - np.where(self.active, self.counts, 0)
            shares = unscored.sum(axis=1) / np.maximum(told.sum(axis=1), 1)
            is_no_worse = shares <= shares[:, np.newaxis]  # (K, K) the column than the row
            n_told = told.sum(axis=1, where=is_no_worse)
            n_unscored = unscored.sum(axis=1, where=is_no_worse)
            is_judged = self.active & (n_told >= LEAST_TOLD_TO_SET_ASIDE)
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
        for (first, second, example), outcome in zip(_keys(batch), scores.tolist(), strict=True):
            for arm in (first, second):
                if not (0 <= arm < self.n_arms and 0 <= example < self.n_examples):
                    raise PairOutsideGrid(arm, example, self.n_arms, self.n_examples)
            if first == second:
                raise ArmAgainstItself(first, example)
            if outcome < 0.0 or outcome > 1.0:
                raise OutcomeOutOfRange((first, second), example, outcome, "in [0, 1]")
            duels.append((first, second, outcome))
        return duels


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

"""Which duels were asked and told, and what that adds up to per pair of arms.

Memory is O(K^2) and a round of B duels costs O(K^2 + B), however many examples there are.
"""

from collections import Counter

import numpy as np
from numpy.typing import ArrayLike

from algorithms.best_duel.setting import Setting
from algorithms.errors import ArmAgainstItself, MalformedBatch, OutcomeOutOfRange, PairOutsideGrid
from algorithms.protocols import Batch, BoolArray, FloatArray, IntArray

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
        shape = (setting.n_arms, setting.n_arms)
        self.wins = np.zeros(shape)  # (K, K) outcomes in favour of the row; a tie adds 1/2 to both
        self.counts = np.zeros(shape, dtype=np.int64)  # (K, K) duels told with a score
        self.told = np.zeros(shape, dtype=np.int64)  # (K, K) duels told, unscored ones included
        self.pending = np.zeros(shape, dtype=np.int64)  # (K, K) duels asked and not told
        self.n_scored = 0
        self.n_told = 0
        self.n_pending = 0
        self.active = np.ones(setting.n_arms, dtype=np.bool_)  # (K,) not set aside
        self.pairs = np.argwhere(np.triu(np.ones(shape, dtype=np.bool_), 1))  # (P, 2) of active arms, i < j

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
        swapped = rng.integers(2, size=len(pairs)) == 1
        examples = rng.integers(self.n_examples, size=len(pairs))
        batch = Batch(np.where(swapped[:, np.newaxis], pairs[:, ::-1], pairs), examples)
        self._asked.update(_keys(batch))
        _add(self.pending, batch.arms, 1)
        self.n_pending += len(batch)
        return batch

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb the outcomes of a batch, asked here or not; a duel may be told again.

        Args:
            batch: B duels.
            outcomes: Shape (B,), in [0, 1] in favour of the first arm, NaN where unscored.

        Raises:
            RefusedTell: If the batch or an outcome cannot be right; nothing was changed.
        """
        scores = self._checked(batch, outcomes)
        if len(batch) == 0:
            return
        self._settle(batch)
        is_scored = ~np.isnan(scores)
        arms, scores = batch.arms[is_scored], scores[is_scored]
        _add(self.told, batch.arms, 1)
        _add(self.counts, arms, 1)
        np.add.at(self.wins, (arms[:, 0], arms[:, 1]), scores)
        np.add.at(self.wins, (arms[:, 1], arms[:, 0]), 1.0 - scores)
        self.n_told += len(batch)
        self.n_scored += len(arms)
        if self.n_scored < self.n_told:
            self._set_aside()

    def _settle(self, batch: Batch) -> None:
        """Take the duels of a batch that were asked here off the pending ones."""
        if self.n_pending == 0:
            return
        was_asked = np.zeros(len(batch), dtype=np.bool_)
        for place, key in enumerate(_keys(batch)):
            if self._asked[key] > 0:
                was_asked[place] = True
                self._asked[key] -= 1
            if self._asked[key] == 0:
                del self._asked[key]
        _add(self.pending, batch.arms[was_asked], -1)
        self.n_pending -= int(was_asked.sum())

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
            self.pairs = np.argwhere(np.triu(np.outer(self.active, self.active), 1))

    def _checked(self, batch: Batch, outcomes: ArrayLike) -> FloatArray:
        """The outcomes as floats, if nothing speaks against them."""
        arms, examples = batch.arms, batch.examples
        if arms.ndim != 2 and len(batch) > 0:
            raise MalformedBatch("arms", "of shape (B, 2)", f"shape {arms.shape}")
        scores = np.array(outcomes, dtype=np.float64)
        if scores.shape != examples.shape:
            raise MalformedBatch("outcomes", f"of shape {examples.shape}", f"shape {scores.shape}")
        if len(batch) == 0:
            return scores
        outside = (arms < 0) | (arms >= self.n_arms)
        outside |= ((examples < 0) | (examples >= self.n_examples))[:, np.newaxis]
        if (where := _first(outside.ravel())) is not None:
            arm, example = int(arms.flat[where]), int(examples[where // 2])
            raise PairOutsideGrid(arm, example, self.n_arms, self.n_examples)
        if (where := _first(arms[:, 0] == arms[:, 1])) is not None:
            raise ArmAgainstItself(int(arms[where, 0]), int(examples[where]))
        if (where := _first((scores < 0.0) | (scores > 1.0))) is not None:
            first, second = arms[where].tolist()
            raise OutcomeOutOfRange((first, second), int(examples[where]), float(scores[where]), "in [0, 1]")
        return scores


def _keys(batch: Batch) -> list[tuple[int, int, int]]:
    return [
        (first, second, example)
        for (first, second), example in zip(batch.arms.tolist(), batch.examples.tolist(), strict=True)
    ]


def _add(table: IntArray, arms: IntArray, amount: int) -> None:
    np.add.at(table, (arms[:, 0], arms[:, 1]), amount)
    np.add.at(table, (arms[:, 1], arms[:, 0]), amount)


def _first(flags: BoolArray) -> int | None:
    return int(flags.argmax()) if flags.any() else None

"""Batches asked and not told yet, the one order in which they may be told, and which pairs may be."""

from collections import deque
from collections.abc import Iterator

import numpy as np

from winnow.algorithms.errors import PairAlreadyTold, PairOutsideGrid, PairRepeated, ToldOutOfOrder
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, IntArray

Pair = tuple[int, ...]


class InFlight:
    """The batches in flight, the one asked first in front.

    A batch is told whole, its pairs in the order of asking, and after all those that were asked before it.
    Telling batches as they arrive would be biased, as short answers arrive first: what is told early would
    be no random part of what was drawn, and intervals that bet on uniform draws would not hold. In the order
    of asking they are uniform given all before them, however the answers come.

    A batch that was never asked here, as in a replay, may be told at any time if none of its pairs is in
    flight.
    """

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)

    def asked(self, batch: Batch) -> None:
        """Remember a batch that is asked now."""
        if len(batch) > 0:
            self._batches.append(batch)

    def check(self, batch: Batch) -> None:
        """Make sure that a batch may be told now; nothing is changed.

        Raises:
            ToldOutOfOrder: If a pair of it is in flight, and it is not the batch that was asked first.
        """
        if not self._batches or self._is_first(batch):
            return
        in_flight = {pair for asked in self._batches for pair in _pairs(asked)}
        for pair in _pairs(batch):
            if pair in in_flight:
                raise ToldOutOfOrder(pair, next(iter(_pairs(self._batches[0]))))

    def told(self, batch: Batch) -> Batch:
        """Forget a batch that was checked and is told now; return it as it was asked, if it was."""
        return self._batches.popleft() if self._batches and self._is_first(batch) else batch

    def remove_arm(self, arm: int) -> None:
        """Take an arm out of all batches, of which the rest is then to be told."""
        kept = []
        for batch in self._batches:
            stays = batch.arms != arm
            kept.append(Batch(batch.arms[stays], batch.examples[stays], changes=batch.changes))
        self._batches = deque(batch for batch in kept if len(batch) > 0)

    def _is_first(self, batch: Batch) -> bool:
        first = self._batches[0]
        return np.array_equal(first.arms, batch.arms) and np.array_equal(first.examples, batch.examples)


def _pairs(batch: Batch) -> list[Pair]:
    """The arm, or both arms of a duel, and the example of each pair."""
    return list(map(tuple, np.column_stack([batch.arms, batch.examples]).tolist()))


def require_untold(arms: IntArray, examples: IntArray, told: BoolArray) -> None:
    """Refuse pairs that cannot be told.

    Args:
        arms: Shape (B,).
        examples: Shape (B,).
        told: Shape (K, N), pairs that were told before.

    Raises:
        PairOutsideGrid: If there is no such arm or example.
        PairAlreadyTold: If one was told before.
        PairRepeated: If one stands there twice.
    """
    n_arms, n_examples = told.shape
    inside = (arms >= 0) & (arms < n_arms) & (examples >= 0) & (examples < n_examples)
    if (where := first_of(~inside)) is not None:
        raise PairOutsideGrid(int(arms[where]), int(examples[where]), n_arms, n_examples)
    if (where := first_of(told[arms, examples])) is not None:
        raise PairAlreadyTold(int(arms[where]), int(examples[where]))
    pairs = np.sort(arms * n_examples + examples)
    if (where := first_of(pairs[1:] == pairs[:-1])) is not None:
        raise PairRepeated(*map(int, divmod(pairs[where], n_examples)))


def first_of(flags: BoolArray) -> int | None:
    """The place of the first true one of B flags; None where none is."""
    return int(flags.argmax()) if flags.any() else None

"""Batches in flight, and the order in which they must be observed.

In flight means proposed and not yet observed.
"""

from collections import deque
from collections.abc import Iterator

import numpy as np

from winnow.algorithms.errors import PairAlreadyTold, PairOutsideGrid, PairRepeated, ToldOutOfOrder
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, IntArray

Pair = tuple[int, ...]


class InFlight:
    """Batches in flight, oldest first.

    A batch must be observed (`tell`) as a whole, with its pairs in the order of proposal, and after all
    batches that were proposed before it. Observing batches in the order of arrival would cause bias, because
    short outputs arrive first: the first observations would not be a random part of the draws, and intervals
    that bet on uniform draws would be invalid. In the order of proposal, each draw is uniform given all
    earlier ones, whatever the order of arrival.

    A batch that was not proposed by this selector, as in a replay, can be observed at any time if none of its
    pairs is in flight.
    """

    def __init__(self) -> None:
        self._batches: deque[Batch] = deque()

    def __len__(self) -> int:
        return len(self._batches)

    def __iter__(self) -> Iterator[Batch]:
        return iter(self._batches)

    def append(self, batch: Batch) -> None:
        """Append a newly proposed batch, unless it is empty."""
        if len(batch) > 0:
            self._batches.append(batch)

    def check(self, batch: Batch) -> None:
        """Raise if a batch cannot be observed now; changes nothing.

        Raises:
            ToldOutOfOrder: If a pair of the batch is in flight, and the batch is not the oldest in flight.
        """
        if not self._batches or self._is_first(batch):
            return
        in_flight = {pair for asked in self._batches for pair in _pairs(asked)}
        for pair in _pairs(batch):
            if pair in in_flight:
                raise ToldOutOfOrder(pair, next(iter(_pairs(self._batches[0]))))

    def take_first(self, batch: Batch) -> Batch:
        """Remove and return the oldest proposal if it equals the batch.

        Otherwise return the batch.
        """
        return self._batches.popleft() if self._batches and self._is_first(batch) else batch

    def remove_arm(self, arm: int) -> None:
        """Remove an arm from all batches in flight.

        The remaining pairs must still be observed.
        """
        kept = []
        for batch in self._batches:
            stays = batch.arms != arm
            kept.append(Batch(batch.arms[stays], batch.examples[stays], changes=batch.changes))
        self._batches = deque(batch for batch in kept if len(batch) > 0)

    def _is_first(self, batch: Batch) -> bool:
        first = self._batches[0]
        return np.array_equal(first.arms, batch.arms) and np.array_equal(first.examples, batch.examples)


def _pairs(batch: Batch) -> list[Pair]:
    """The arm, or both arms of a duel, then the example, of each pair."""
    return list(map(tuple, np.column_stack([batch.arms, batch.examples]).tolist()))


def require_untold(arms: IntArray, examples: IntArray, told: BoolArray) -> None:
    """Raise if pairs do not exist, were observed before, or occur twice.

    Args:
        arms: Shape (B,).
        examples: Shape (B,).
        told: Shape (K, N), pairs observed before.

    Raises:
        PairOutsideGrid: If a pair's arm or example does not exist.
        PairAlreadyTold: If a pair was observed before.
        PairRepeated: If a pair occurs twice.
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
    """Index of the first true flag; None if all are false."""
    return int(flags.argmax()) if flags.any() else None

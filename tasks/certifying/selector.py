"""A certifying selector that speaks of a dataset's examples; the algorithm numbers labellable ones alone."""

import numpy as np
from numpy.typing import ArrayLike

from algorithms.protocols import Batch, Decision, IntArray, Selector


class LabelSelector:
    """Passes everything on, with example positions for numbers of labellable examples.

    Args:
        inner: The algorithm.
        labellable: Example position of each of its examples, shape (n,).
    """

    def __init__(self, inner: Selector, labellable: IntArray) -> None:
        self.inner = inner
        self._labellable = labellable
        self._numbers = {int(position): number for number, position in enumerate(labellable)}
        self._told: set[int] = set()

    @property
    def n_labels(self) -> int:
        """Labels that were used: examples that at least one arm was told of."""
        return len(self._told)

    def ask(self, rng: np.random.Generator) -> Batch:
        """See `Selector`."""
        batch = self.inner.ask(rng)
        return Batch(batch.arms, self._labellable[batch.examples])

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """See `Selector`; outcomes are losses, shape (B, 3)."""
        numbers = [self._numbers[position] for position in batch.examples.tolist()]
        self.inner.tell(Batch(batch.arms, np.array(numbers, dtype=np.int64)), outcomes)
        self._told.update(numbers)

    def decision(self) -> Decision:
        """See `Selector`."""
        return self.inner.decision()

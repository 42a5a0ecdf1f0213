"""A best-mean selector on part of the examples; then its finalists on the others."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import MalformedBatch
from winnow.algorithms.protocols import EMPTY_BATCH, Batch, Growing, LookingAhead, Selector
from winnow.algorithms.state.in_flight import InFlight
from winnow.storage.records.record_types import SET_ASIDE
from winnow.tasks.objectives.best_mean.holdout.split import FINALISTS, Split


def finalists(
    best: int | None, estimates: Sequence[float | None], status: Sequence[str], *, most: int = FINALISTS
) -> list[int]:
    """The best arm, then the remaining arm with the highest estimate, if they exist.

    Args:
        best: The arm that the decision names; None if it names no arm.
        estimates: Estimates by arm, None or NaN if unknown.
        status: Status by arm, see `algorithms.claims.ArmStatus`; dropped arms cannot be the runner-up.
        most: Maximum number of arms.
    """
    if best is None:
        return []
    rivals = [
        (-estimate, arm)
        for arm, (estimate, state) in enumerate(zip(estimates, status, strict=True))
        if arm != best and state not in SET_ASIDE and estimate is not None and not math.isnan(estimate)
    ]
    return [best, *(arm for _, arm in sorted(rivals)[: most - 1])]


class HoldoutSelector:
    """Delegate selection to a selector; after its end, propose held-out examples.

    The inner selector does not observe held-out examples, so its decision and claims do not change. Until all
    held-out examples are observed for both finalists, the decision is to continue. If the limit allows no
    further pair, the decision is to stop, and the reason for a claimed answer is the budget.

    As for every selector, its state depends only on its observations, in order. Held-out examples are
    proposed only while no batch of the inner selector is in flight, because such a batch could still change
    the finalists.

    Args:
        inner: The inner selector, which numbers only the selection examples.
        split: The split into selection and held-out examples.
        limit: Maximum number of pairs in total; None for no limit.
        batch_size: Maximum number of pairs in a round on held-out examples.
    """

    def __init__(self, inner: Selector, split: Split, *, limit: int | None, batch_size: int) -> None:
        self._inner, self._split = inner, split
        self._limit, self._batch_size = limit, batch_size
        self._numbers = np.full(len(split.selection) + len(split.held_out), -1)
        self._numbers[split.selection] = np.arange(len(split.selection))
        self._n_told = 0
        self._held_out_told: set[tuple[int, int]] = set()
        self._held_out_asked: set[tuple[int, int]] = set()
        self._in_flight = InFlight()
        self._n_of_inner = 0  # batches in flight that the inner selector proposed
        self._n_pending = 0  # pairs in flight

    @property
    def n_arms(self) -> int:
        """Number of arms, see `Growing`; the inner selector must support it."""
        return cast(Growing, self._inner).n_arms

    def add_arms(self, count: int) -> None:
        """Add arms, see `Growing`; the inner selector must support it."""
        cast(Growing, self._inner).add_arms(count)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose the next pairs; see `Selector`."""
        batch = self._inner.ask(rng)
        if len(batch) > 0:
            batch = Batch(batch.arms, self._split.selection[batch.examples], changes=batch.changes)
        elif self._n_of_inner == 0:
            batch = self._next_held_out()
        self._note_asked(batch)
        return batch

    def take_up(self, batch: Batch) -> None:
        """Register a batch in flight, see `LookingAhead`.

        The inner selector must support it.
        """
        if not self._is_held_out(batch):
            cast(LookingAhead, self._inner).take_up(self._of_selection(batch))
        self._note_asked(batch)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe outcomes; see `Selector`.

        All examples of a batch are selection examples, or all are held out.
        """
        self._in_flight.check(batch)
        if self._is_held_out(batch):
            self._held_out_told.update(_pairs(batch))
        else:
            self._inner.tell(self._of_selection(batch), outcomes)
        self._n_told += len(batch)
        before = len(self._in_flight)
        self._in_flight.take_first(batch)
        if len(self._in_flight) < before:
            self._n_pending -= len(batch)
            self._n_of_inner -= not self._is_held_out(batch)

    def decision(self) -> Decision:
        """The inner selector's decision, except for whether and why to stop."""
        found = self._inner.decision()
        if not found.stop or not self._missing(found):
            return found
        if self._room > 0:
            return replace(found, stop=False)
        return found if found.claim.kind == "none" else replace(found, reason="budget")

    def _next_held_out(self) -> Batch:
        """The finalists' next comparisons on held-out examples; empty before they exist."""
        found = self._inner.decision()
        missing = self._missing(found) if found.stop else []
        pairs = [pair for pair in missing if pair not in self._held_out_asked]
        pairs = pairs[: max(0, min(self._batch_size, self._room - self._n_pending))]
        if not pairs:
            return EMPTY_BATCH
        arms, examples = zip(*pairs, strict=True)
        return Batch(np.array(arms), np.array(examples))

    def _note_asked(self, batch: Batch) -> None:
        if len(batch) == 0:
            return
        self._in_flight.append(batch)
        self._n_pending += len(batch)
        if self._is_held_out(batch):
            self._held_out_asked.update(_pairs(batch))
        else:
            self._n_of_inner += 1

    def _is_held_out(self, batch: Batch) -> bool:
        is_held_out = self._numbers[batch.examples] < 0
        if is_held_out.any() and not is_held_out.all():
            raise MalformedBatch("examples", "all held out, or none of them", "some of each")
        return bool(is_held_out.any())

    def _of_selection(self, batch: Batch) -> Batch:
        """The batch with the inner selector's example indices, not dataset positions."""
        return Batch(batch.arms, self._numbers[batch.examples], changes=batch.changes)

    @property
    def _room(self) -> int:
        everything = self._split.comparisons
        return everything if self._limit is None else max(0, self._limit - self._n_told)

    def _missing(self, decision: Decision) -> list[tuple[int, int]]:
        """The held-out pairs that are not observed yet, ordered by example."""
        arms = finalists(
            decision.best, decision.estimates.tolist(), decision.status, most=self._split.finalists
        )
        pairs = [(arm, example) for example in self._split.held_out.tolist() for arm in arms]
        return [pair for pair in pairs if pair not in self._held_out_told]


def _pairs(batch: Batch) -> list[tuple[int, int]]:
    return list(zip(batch.arms.tolist(), batch.examples.tolist(), strict=True))

"""Interface of selectors, and the values they receive and return.

K arms and n examples are the integers 0..K-1 and 0..n-1. A pair is one arm on one example. A batch is the B
pairs proposed together. A round is one ask and its tell.
"""

from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import MalformedBatch
from winnow.algorithms.state.arrays import FloatArray, IntArray


def frozen_integers(field: str, values: ArrayLike) -> IntArray:
    """Copy integers as a read-only array.

    Raise `MalformedBatch` with the field's name for other values.
    """
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise MalformedBatch(field, "integers", f"dtype {given.dtype}")
    frozen = np.array(given, dtype=np.int64)
    frozen.setflags(write=False)
    return frozen


SPARED = -1.0
"""Outcome of a pair that needs no score; see `Sparing`.
All arms in question score the same on its example."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Pairs of one round, in the order of the draws.

    Batches are equal if their arrays are.
    """

    arms: IntArray
    """Shape (B,), or (B, 2) for duels. Read-only."""
    examples: IntArray
    """Shape (B,). Read-only."""
    propensities: FloatArray | None = field(default=None, kw_only=True)
    """Shape (B,), in (0, 1]: probability with which each arm was drawn.
    Conditional on all earlier observations. None if arms are not drawn at random, or if the selector does
    not need the probabilities. Read-only."""
    changes: int | None = field(default=None, kw_only=True)
    """Number of additions and removals of arms before the batch was proposed.
    None if no arm was added or removed between proposal and observation. Store it with the batch, to
    replay `tell`; equality ignores it."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", frozen_integers("arms", self.arms))
        object.__setattr__(self, "examples", frozen_integers("examples", self.examples))
        n_pairs = self.examples.shape
        if self.propensities is not None:
            object.__setattr__(self, "propensities", _probabilities(self.propensities, n_pairs))
        if len(n_pairs) != 1 or self.arms.shape not in (n_pairs, (*n_pairs, 2)):
            shapes = f"shapes {self.arms.shape} and {self.examples.shape}"
            raise MalformedBatch("arms and examples", "of shapes (B,) or (B, 2) and (B,)", shapes)

    def __len__(self) -> int:
        return len(self.examples)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Batch):
            return NotImplemented
        return (
            np.array_equal(self.arms, other.arms)
            and np.array_equal(self.examples, other.examples)
            and _same(self.propensities, other.propensities)
        )


def _probabilities(values: ArrayLike, shape: tuple[int, ...]) -> FloatArray:
    """Copy probabilities above 0 as a read-only array."""
    found = np.array(values, dtype=np.float64)
    if found.shape != shape:
        raise MalformedBatch("propensities", f"of shape {shape}", f"shape {found.shape}")
    if not ((found > 0.0) & (found <= 1.0)).all():
        raise MalformedBatch("propensities", "in (0, 1]", str(found.tolist()))
    found.setflags(write=False)
    return found


def _same(mine: FloatArray | None, theirs: FloatArray | None) -> bool:
    if mine is None or theirs is None:
        return mine is theirs
    return np.array_equal(mine, theirs)


EMPTY_BATCH = Batch(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64))
"""A batch of no pairs."""


class Selector(Protocol):
    """Choose which pairs to observe next, and which arm is best.

    A selector draws random numbers only from the generator passed to `ask`, reads no clock and does no I/O.
    Its state is a function of its constructor's arguments and of the observations, in order. So a campaign
    resumes by passing the stored rounds to a new selector in order: the same history gives the same
    continuation, bit for bit.
    """

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose pairs that were neither observed nor proposed before.

        See `round_rng` for the generator. Duels are drawn with replacement: a pair of arms can be proposed
        again on the same example.

        The call changes no estimate. It records the pairs as pending, so that several batches can be in
        flight. A discarded batch stays pending, and `tell` then refuses all later batches: continue with a
        new selector that has observed the stored rounds. To resume with rounds in flight, repeat all calls of
        `ask` and `tell` in their original order, or see `LookingAhead`.

        Returns:
            The batch; empty if all pairs were proposed, the budget is spent or the selector stopped.
        """
        ...

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe the outcomes of a batch, whether or not this selector proposed it.

        Pass batches in flight in the order of their proposal, each as a whole, because an arm's draws count
        in the order of proposal. The order of arrival would cause bias, because short outputs arrive first.

        The effect of a batch depends on the batch and on all earlier observations, not on when it was
        proposed: a new selector that observes the same batches in the same order, without any `ask`, has the
        same state, bit for bit. A batch that this selector did not propose can be observed while others are
        in flight if none of its pairs is in flight.

        Args:
            batch: Pairs not observed before (duels can repeat), in the order of the draws.
            outcomes: One per pair, or a row per pair for objectives with several outcomes. NaN means
                unscored: the pair is used up, but does not count as 0.

        Raises:
            RefusedTell: If the batch or an outcome is invalid; the selector is then unchanged.
        """
        ...

    def decision(self) -> Decision:
        """Return the current decision, without side effects."""
        ...


class LookingAhead(Selector, Protocol):
    """A selector that proposes rounds ahead and can be resumed in that state.

    Ahead means while earlier rounds are in flight. Other selectors accept several batches in flight too, but
    only the instance that proposed these batches can propose the next one.
    """

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed by this selector and pending.

        To resume, create a selector, let it observe the finished rounds, then take up the batches in flight
        in the order of their proposal. It continues like the selector that proposed them, bit for bit.

        Args:
            batch: Pairs neither observed nor proposed before, in the order of the draws.
        """
        ...


@runtime_checkable
class LeavingOut(Selector, Protocol):
    """A selector that can leave arms out after outcomes were observed.

    Its claim remains valid. A replay must leave out the same arms before the same calls of `tell`.
    """

    def leave_out(self, arms: IntArray) -> None:
        """Drop arms with the next `tell`.

        They are not proposed again, and no claim covers them. The choice of arms can depend on all outcomes,
        including those of the next `tell`.

        Args:
            arms: Shape (A,).
        """
        ...


@runtime_checkable
class Revising(Selector, Protocol):
    """A selector that accepts scores of unscored pairs later, with a claim that remains valid.

    A replay revises the same pairs at the same places among its tells.
    """

    def revise(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb scores of pairs that were observed without one; NaN leaves a pair unscored.

        The pairs and the time can depend on everything that was observed. But the score of a pair must not
        depend on when it is requested: never request a pair again that has a score, and choose none of
        several scores.

        Args:
            batch: B pairs that were observed and are unscored; need not have been proposed together.
            outcomes: Shape (B,), scores in [0, 1], NaN if still unscored.

        Raises:
            RefusedTell: If a pair is not unscored, or an outcome is invalid; the selector is then unchanged.
            InvalidParameter: If a parameter of the selector is incompatible with it.
        """
        ...


@runtime_checkable
class Sparing(Selector, Protocol):
    """A selector that needs no score on an example if all arms are equal there.

    Only the arms in question count.
    """

    def compares_all(self, batch: Batch) -> bool:
        """Whether a batch contains all arms in question on common examples.

        It must be the next batch to be observed. If all scores on such an example are known to be equal, the
        outcome of each of its pairs can be `SPARED`.
        """
        ...


class Growing(Selector, Protocol):
    """A selector to which arms can be added after outcomes were observed.

    Its claim remains valid. A replay must add the same numbers of arms between the same calls of `tell`.
    """

    @property
    def n_arms(self) -> int:
        """Number of arms K, including those added."""
        ...

    def add_arms(self, count: int) -> None:
        """Add `count` arms from now on; earlier arms keep their indices."""
        ...


def round_rng(seed: int, round_: int) -> np.random.Generator:
    """Create the generator of a round, its only source of randomness.

    A repeated `ask` then draws the same pairs.

    Args:
        seed: The campaign's seed, non-negative.
        round_: The number of the round, counted from 0.
    """
    return np.random.default_rng([seed, round_])

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
    """Copy integers as a read-only array; raise `MalformedBatch` with the field's name for other values."""
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise MalformedBatch(field, "integers", f"dtype {given.dtype}")
    frozen = np.array(given, dtype=np.int64)
    frozen.setflags(write=False)
    return frozen


SPARED = -1.0
"""Outcome of a pair that needs no score, because all arms in question have the same one; see `Sparing`."""


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Pairs of one round, in the order they were drawn; equal if their arrays are."""

    arms: IntArray
    """Shape (B,), or (B, 2) for duels. Read-only."""
    examples: IntArray
    """Shape (B,). Read-only."""
    propensities: FloatArray | None = field(default=None, kw_only=True)
    """Shape (B,), in (0, 1]: probability with which each arm was drawn, given everything known before; None
    if arms are not drawn, or the probabilities are not needed. Read-only."""
    changes: int | None = field(default=None, kw_only=True)
    """Number of additions and removals of arms before the batch was proposed; None if unchanged when the
    batch is observed. Store it with the batch, to replay the tell; equality ignores it."""

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

    A selector has no randomness of its own, reads no clock and does no I/O. Its state is a function of its
    constructor's arguments and of the observations, in order. So a campaign resumes by telling a fresh
    selector the stored rounds in order: same history, same future, bit for bit.
    """

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose pairs that were neither observed nor proposed before; see `round_rng` for the generator.

        Duels are drawn with replacement, so a pair of arms can be proposed on an example again.

        Estimates stay as they are, but the pairs are recorded as pending, so that several batches can be in
        flight. A discarded batch stays pending, and no later batch can be told: continue with a fresh
        selector that is told the stored rounds. To resume with rounds in flight, interleave the tells with
        the same asks, or see `LookingAhead`.

        Returns:
            The batch; empty if all pairs were proposed, the budget is spent or the selector stopped.
        """
        ...

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb the outcomes of a batch, proposed by this selector or not.

        Tell batches in flight in the order they were proposed, each one whole: an arm's draws count in the
        order of proposal. In the order of arrival they would be biased, because short outputs arrive first.
        The effect of a batch is a function of the batch and of all earlier observations, not of when it was
        proposed: a fresh selector that is told the same batches in the same order, without any ask, has the
        same state, bit for bit. A batch that was not proposed here can be told while others are in flight if
        none of its pairs is in flight.

        Args:
            batch: Pairs not observed before, duels excepted, in the order they were drawn.
            outcomes: One per pair, or a row per pair for objectives with several; NaN means unscored, which
                spends the pair and is not a zero.

        Raises:
            RefusedTell: If the batch or an outcome is invalid; the selector is then unchanged.
        """
        ...

    def decision(self) -> Decision:
        """Return the current decision, without side effects."""
        ...


class LookingAhead(Selector, Protocol):
    """A selector that can be asked for rounds while earlier ones are in flight, and resumed among them.

    Other selectors accept several batches in flight too, but only the instance that proposed them can propose
    the next.
    """

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed by this selector and pending.

        A fresh selector that is told the finished rounds, and then takes up those in flight in the order of
        their proposal, continues like the selector that proposed them, bit for bit.

        Args:
            batch: Pairs neither observed nor proposed before, in the order they were drawn.
        """
        ...


@runtime_checkable
class LeavingOut(Selector, Protocol):
    """A selector that can leave arms out after outcomes were observed, with a claim that remains valid.

    A replay leaves out the same arms before the same tells.
    """

    def leave_out(self, arms: IntArray) -> None:
        """Drop arms with the next tell: they are not proposed again, and no claim covers them.

        Which arms are left out can depend on all outcomes, those of the next tell included.

        Args:
            arms: Shape (A,).
        """
        ...


@runtime_checkable
class Sparing(Selector, Protocol):
    """A selector that can do without the scores of an example on which all arms in question have the same."""

    def compares_all(self, batch: Batch) -> bool:
        """Whether the next batch to be told has common examples of all arms in question.

        The outcomes of all pairs of such an example can then be `SPARED` if their scores are known to be
        equal.
        """
        ...


class Growing(Selector, Protocol):
    """A selector to which arms can be added after outcomes were observed, with a claim that remains valid.

    A replay adds the same lists of arms at the same places among its tells.
    """

    @property
    def n_arms(self) -> int:
        """Number of arms K, including those added."""
        ...

    def add_arms(self, count: int) -> None:
        """Add `count` arms from now on; earlier arms keep their indices."""
        ...


def round_rng(seed: int, round_: int) -> np.random.Generator:
    """The only source of randomness of a round, so that a repeated ask draws the same pairs.

    Args:
        seed: The campaign's seed, non-negative.
        round_: The number of the round, counted from 0.
    """
    return np.random.default_rng([seed, round_])

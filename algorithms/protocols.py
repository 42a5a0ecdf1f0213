"""The interface that every selector keeps to, and the values that go in and out of it.

K arms and n examples are the integers 0..K-1 and 0..n-1; a pair is one arm on one example; B pairs
asked together are a batch; a round is one ask and its tell.
"""

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import MalformedBatch
from winnow.algorithms.state.arrays import FloatArray, IntArray


def frozen_integers(field: str, values: ArrayLike) -> IntArray:
    """A read-only copy of integers; raises `MalformedBatch` with the field's name for other values."""
    given = np.asarray(values)
    if given.size and given.dtype.kind not in "iu":
        raise MalformedBatch(field, "integers", f"dtype {given.dtype}")
    frozen = np.array(given, dtype=np.int64)
    frozen.setflags(write=False)
    return frozen


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The pairs of one round, in the order they were drawn; equal when their arrays are."""

    arms: IntArray
    """Shape (B,), or (B, 2) for duels. Read-only."""
    examples: IntArray
    """Shape (B,). Read-only."""
    propensities: FloatArray | None = field(default=None, kw_only=True)
    """Shape (B,), in (0, 1]: the probability with which each arm was drawn, all that was known before it
    given; None where arms are not drawn, or nobody needs it. Read-only."""
    changes: int | None = field(default=None, kw_only=True)
    """Number of times that arms had been added or removed when the batch was asked; None where it is the same
    when the batch is told. To be kept with the batch, to tell it again; batches may be equal without it."""

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
    """A read-only copy of probabilities above 0."""
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
    """Chooses which pairs to observe next, and says which arm is best.

    A selector owns no randomness, reads no clock and does no I/O. What it believes is a function of
    its constructor's arguments and of what it was told, in order. So a campaign resumes by telling a
    fresh selector the stored rounds in order: same history, same future, bit for bit.
    """

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose pairs that were neither told nor asked before; see `round_rng` for the generator.

        Duels are drawn with replacement: there, a pair of arms may meet on an example again.

        Beliefs are left as they are, but the pairs are remembered as pending, so that several batches
        may be in flight. A batch that is thrown away stays pending, and no batch after it can be told: go on
        with a fresh selector that is told the stored rounds. To resume with rounds in flight, interleave the
        tells with the same asks, or see `LookingAhead`.

        Returns:
            The batch; empty when everything was asked, the budget is spent or the selector stopped.
        """
        ...

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb the outcomes of a batch, asked of this selector or not.

        Batches in flight are told in the order they were asked, each one whole: an arm's draws count in the
        order of asking. In the order of arrival they would be biased, as short answers arrive first. What
        follows from a batch is a function of the batch and of all that was told before it, and not of when
        it was asked: a fresh selector that is told the same batches in the same order, and is asked nothing,
        believes the same, bit for bit. A batch that was not asked here may be told while others are in
        flight if none of its pairs is.

        Args:
            batch: Pairs never told before, duels excepted, in the order they were drawn.
            outcomes: One per pair, or a row per pair where an objective has several; NaN means unscored,
                which spends the pair and is not a zero.

        Raises:
            RefusedTell: If the batch or an outcome cannot be right; nothing was changed.
        """
        ...

    def decision(self) -> Decision:
        """Return the present decision; asking for it changes nothing."""
        ...


class LookingAhead(Selector, Protocol):
    """A selector that can be asked for rounds while earlier ones are in flight, and resumed among them.

    Without it a selector takes several batches in flight all the same, but only the one that was asked for
    them can be asked for the next.
    """

    def take_up(self, batch: Batch) -> None:
        """Remember a batch as asked of this selector and in flight.

        A fresh selector that is told the rounds that were finished, and then takes up those in flight in the
        order in which they were asked, asks and believes what the one that was asked for them would, bit for
        bit.

        Args:
            batch: Pairs neither told nor asked before, in the order they were drawn.
        """
        ...


class Growing(Selector, Protocol):
    """A selector of which arms may be added after it was told outcomes, and which says what then holds.

    A replay adds the same lists of arms at the same places among its tells.
    """

    @property
    def n_arms(self) -> int:
        """K, with the arms that were added."""
        ...

    def add_arms(self, count: int) -> None:
        """Let a list of so many arms take part from now on; those before them keep their indices."""
        ...


def round_rng(seed: int, round_: int) -> np.random.Generator:
    """The only source of randomness of a round, so that a round asked again draws the same pairs.

    Args:
        seed: The campaign's seed, non-negative.
        round_: The number of the round, counted from 0.
    """
    return np.random.default_rng([seed, round_])

"""The interface of every selector that routes, beyond that of others."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import UnusableContexts
from winnow.algorithms.protocols import Batch
from winnow.algorithms.route.contexts import unit_rows
from winnow.algorithms.route.policy import Policy
from winnow.algorithms.state.arrays import FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class RoutedBatch(Batch):
    """The prompts of one round with the arm that each was routed to; equal when all arrays are."""

    contexts: FloatArray
    """Shape (B, d), rows of length 1; see `unit_rows`. Read-only."""

    def __post_init__(self) -> None:
        Batch.__post_init__(self)  # `super()` does not work in a dataclass with slots
        object.__setattr__(self, "contexts", unit_rows(self.contexts))
        if len(self.contexts) != len(self.examples):
            expected = f"of shape ({len(self.examples)}, d), a row for each prompt"
            raise UnusableContexts(None, expected, f"shape {self.contexts.shape}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RoutedBatch):
            return NotImplemented if not isinstance(other, Batch) else False
        return Batch.__eq__(self, other) is True and np.array_equal(self.contexts, other.contexts)


class Router(Protocol):
    """A selector that is shown each prompt before it chooses the arm that answers it.

    All that `Selector` promises holds, with these additions. The pairs are asked prompt by prompt: the
    caller brings the prompts' contexts, and the batch keeps them, so stored rounds can be told again. Arms
    may be added and removed at any time, and again at the same places among the tells of a replay; what was
    learned of the others stays as it is.
    """

    def next_examples(self) -> IntArray:
        """The prompts whose turn it is: the first ones never asked nor told, in order.

        Returns:
            At most `batch_size` indices; empty when there is nothing left to ask.
        """
        ...

    def ask(
        self, rng: np.random.Generator, contexts: ArrayLike, examples: ArrayLike | None = None
    ) -> RoutedBatch:
        """Choose an arm for each prompt, the pairs pending so far being reckoned with.

        Args:
            rng: See `round_rng`.
            contexts: Shape (B, d), the embeddings of the prompts, of length 1; see `unit_rows`. B may be
                larger or smaller than `batch_size`.
            examples: Shape (B,), the indices of the prompts; None for the next ones never asked nor told.

        Returns:
            The batch: shorter than B where budget or prompts run out, empty when the router has stopped.

        Raises:
            RefusedTell: If contexts or examples cannot be right; nothing was changed.
        """
        ...

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb scores in [-1, 1], NaN where unscored, of a `RoutedBatch`; see `Selector.tell`."""
        ...

    def decision(self) -> Decision:
        """Say which arm's scores are best on average; see `Selector.decision`."""
        ...

    def add_arm(self) -> int:
        """Let one more arm take part from now on.

        Returns:
            Its index, K before the call; the arms before it keep theirs.
        """
        ...

    def remove_arm(self, arm: int) -> None:
        """Choose an arm no more; its index is not used again, and the prompts that it has pending are free.

        Of a batch in flight the rest is to be told, with its propensities and its `changes`. It is learned
        from, and takes no part in what is claimed of routing: the prompts that are left are those that were
        not given to this arm, and that is no accident.

        Raises:
            NoArmToRemove: If there is no such arm, or no other one.
        """
        ...

    def policy(self) -> Policy:
        """The policy that was learned, as plain arrays that choose an arm for a prompt without exploring."""
        ...

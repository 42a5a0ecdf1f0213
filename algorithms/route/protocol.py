"""Interface of route selectors, in addition to that of all selectors."""

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
    """Prompts of one round, with the arm that each was routed to.

    Equal if all arrays are equal.
    """

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
    """A selector that receives each prompt before it chooses the arm for it.

    The contract of `Selector` holds, with these additions. Pairs are proposed prompt by prompt: the caller
    passes the prompts' contexts, and the batch stores them, so that stored rounds can be replayed. Arms can
    be added and removed at any time; a replay must do so at the same places among its tells. The models of
    the other arms stay unchanged.
    """

    def next_examples(self) -> IntArray:
        """Next prompts: the first ones that were neither proposed nor observed, in order.

        Returns:
            At most `batch_size` indices; empty if no prompt is left to propose.
        """
        ...

    def ask(
        self, rng: np.random.Generator, contexts: ArrayLike, examples: ArrayLike | None = None
    ) -> RoutedBatch:
        """Choose an arm for each prompt, taking pending pairs into account.

        Args:
            rng: See `round_rng`.
            contexts: Shape (B, d), the embeddings of the prompts, of length 1; see `unit_rows`. B may be
                larger or smaller than `batch_size`.
            examples: Shape (B,), the indices of the prompts; None for the next ones that were neither
                proposed nor observed.

        Returns:
            The batch: shorter than B if budget or prompts run out, empty if the router has stopped.

        Raises:
            RefusedTell: If contexts or examples are invalid; the router is then unchanged.
        """
        ...

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [-1, 1], NaN if unscored, of a `RoutedBatch`.

        See `Selector.tell`.
        """
        ...

    def decision(self) -> Decision:
        """Recommend the arm with the best mean score; see `Selector.decision`."""
        ...

    def add_arm(self) -> int:
        """Add an arm from now on.

        Returns:
            The index of the new arm, K before the call; earlier arms keep their indices.
        """
        ...

    def remove_arm(self, arm: int) -> None:
        """Stop choosing an arm.

        Its index is not reused, and its pending prompts become free. The rest of a batch in flight must still
        be observed, with its propensities and its `changes`. The method learns from these pairs, but claims
        about routing exclude them: the remaining prompts are those not given to this arm, so they are a
        biased selection.

        Raises:
            NoArmToRemove: If the arm does not exist, was removed before, or is the only one left.
        """
        ...

    def policy(self) -> Policy:
        """The learned policy as plain arrays.

        They choose an arm for a prompt without exploring.
        """
        ...

"""Adapt a routing algorithm to a campaign: vectors of prompts, rescaled scores."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch
from winnow.algorithms.route.advantage import Advantage
from winnow.algorithms.route.policy import Policy
from winnow.algorithms.route.protocol import RoutedBatch, Router
from winnow.algorithms.state.arrays import FloatArray


class PromptRouter:
    """Adapter of a routing algorithm to the prompts and scores of a campaign.

    A judge's score is in [0, 1]; the algorithm expects values in [-1, 1]. The budget ends the stream of
    prompts, but does not limit prompts that are requested by position.

    Args:
        inner: The algorithm, without a budget of its own.
        contexts: Vector of each prompt, shape (n, d), of length 1.
        n_arms: Current number of arms.
        budget: Number of prompts after which the stream ends.
    """

    def __init__(self, inner: Router, contexts: FloatArray, n_arms: int, budget: int) -> None:
        self.inner = inner
        self._contexts = contexts
        self._n_arms = n_arms
        self._budget = budget
        self._taken: set[int] = set()  # prompts asked or told
        self._n_told = 0

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose candidates for the next prompts in order; see `Selector`.

        The budget limits their number.
        """
        room = max(0, self._budget - len(self._taken))
        return self.ask_about(rng, self.inner.next_examples()[:room].tolist())

    def ask_about(self, rng: np.random.Generator, examples: Sequence[int]) -> Batch:
        """Choose a candidate for each given prompt."""
        chosen = self.inner.ask(rng, self._contexts[list(examples)], list(examples))
        self._taken.update(chosen.examples.tolist())
        return Batch(chosen.arms, chosen.examples, propensities=chosen.propensities)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [0, 1]; see `Selector`."""
        contexts = self._contexts[batch.examples]
        routed = RoutedBatch(batch.arms, batch.examples, contexts, propensities=batch.propensities)
        self.inner.tell(routed, 2.0 * np.asarray(outcomes, dtype=np.float64) - 1.0)
        self._taken.update(batch.examples.tolist())
        self._n_told += len(batch)

    def decision(self) -> Decision:
        """The current decision, with estimates as mean scores in [0, 1]; see `Selector`."""
        decision = self.inner.decision()
        decision = replace(decision, estimates=(decision.estimates + 1.0) / 2.0)
        if decision.stop or self._n_told < self._budget:
            return decision
        return replace(decision, stop=True, reason="budget")

    def advantage(self) -> Advantage | None:
        """The advantage of routing over the best single candidate, in scores in [0, 1].

        None if no share of the prompts is explored, or before any score.
        """
        find = getattr(self.inner, "advantage", None)  # a third party's router need not have it
        found: Advantage | None = None if find is None else find()
        return None if found is None else in_unit_scores(found)

    def policy(self) -> Policy:
        """The learned policy, whose predicted scores are in [-1, 1]."""
        return self.inner.policy()

    def grow_to(self, n_arms: int) -> None:
        """Add candidates, up to `n_arms` in total."""
        while self._n_arms < n_arms:
            self._n_arms = self.inner.add_arm() + 1


def in_unit_scores(advantage: Advantage) -> Advantage:
    """Convert a difference between scores in [-1, 1] to one between scores in [0, 1]."""
    return replace(
        advantage, estimate=advantage.estimate / 2.0, lower=advantage.lower / 2.0, upper=advantage.upper / 2.0
    )


def as_router(selector: object) -> PromptRouter:
    """Cast the selector of a route campaign to its type."""
    return cast(PromptRouter, selector)

"""Simulate routing: a table of scores as a stream of prompts, and a run's metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

import numpy as np

from winnow.algorithms.best_mean.metrics import true_means
from winnow.algorithms.claims import NOTHING_CLAIMED
from winnow.algorithms.decision import statuses
from winnow.algorithms.protocols import Batch, Selector
from winnow.algorithms.route.metrics import cumulative_regret, optimal_pick_ratio, pick_shares
from winnow.algorithms.route.protocol import Router
from winnow.algorithms.state.arrays import FloatArray, IntArray
from winnow.tasks.objectives.route.selector import PromptRouter
from winnow.tasks.simulation.environments import Environment
from winnow.tasks.simulation.simulate import Run

ORDER = 2
"""Seed component that separates the generator of a stream's order from those of `environments.NOISE` and of a
round.
"""
ORACLE = "oracle"
"""Name of the one-arm oracle in results."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RouteEnvironment(Environment):
    """A table of scores as a stream: each example arrives once, as a prompt.

    The chosen arm gets its score in the table. Prompts arrive one by one, unless a selector requests larger
    batches, in an order that depends on the seed. In batches and runs, example t is the one at position t of
    the stream.
    """

    scores: FloatArray
    """Shape (K, n), in [0, 1]; NaN for an unscored pair."""
    contexts: FloatArray
    """Vectors of length 1, shape (n, d)."""
    types: IntArray | None = None
    """Index of each example's type, from 0 to G - 1, shape (n,); used only in metrics.
    None without types.
    """

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of arms and of examples."""
        n_arms, n_examples = self.scores.shape
        return n_arms, n_examples

    @property
    def best_arm(self) -> int:
        """The arm with the highest mean over all examples; the first of equal arms."""
        return int(true_means(self.scores).argmax())

    def settings(self, chosen: Mapping[str, object]) -> Mapping[str, object]:
        """The length of contexts, and by default batches of one prompt."""
        return {"dim": self.contexts.shape[1]} | ({} if "batch_size" in chosen else {"batch_size": 1})

    def wrap(self, selector: Selector, seed: int) -> Selector:
        """Wrap the selector, with the prompts in their order in the stream."""
        n_arms, n_examples = self.shape
        contexts = self.contexts[self.order(seed)]
        return PromptRouter(cast(Router, selector), contexts, n_arms=n_arms, budget=n_examples)

    def batch_validator(self) -> Callable[[Batch], None]:
        """Create a check that refuses pairs outside the table and repeated prompts."""
        taken = np.zeros(self.shape[1], dtype=np.bool_)  # (n,)

        def check(batch: Batch) -> None:
            np.ravel_multi_index((batch.arms, batch.examples), self.shape)  # raises if outside
            if taken[batch.examples].any() or np.unique(batch.examples).size < len(batch):
                raise ValueError("it proposed a prompt that it had proposed before")
            taken[batch.examples] = True

        return check

    def outcomes(self, batch: Batch, seed: int, round_: int) -> FloatArray:
        """The scores of the batch's pairs."""
        return self.scores[batch.arms, self.order(seed)[batch.examples]]

    def order(self, seed: int) -> IntArray:
        """The example (column of the table) at each position of the stream, shape (n,)."""
        return _order(self.shape[1], seed)

    def expected(self) -> FloatArray:
        """The expected score of each arm on each example, shape (K, n).

        It is the arm's mean over the examples of the same type; without types, the score in the table. If
        that is missing, it is the arm's mean over all examples.

        Raises:
            InvalidParameter: An arm has no score.
        """
        means = true_means(self.scores)[:, np.newaxis]  # (K, 1)
        if self.types is None:
            return np.where(np.isnan(self.scores), means, self.scores)
        is_of = self.types == np.arange(self.types.max() + 1)[:, np.newaxis]  # (G, n)
        is_scored = ~np.isnan(self.scores)  # (K, n)
        counts = is_scored.astype(np.float64) @ is_of.T  # (K, G)
        by_type = np.broadcast_to(means, counts.shape).copy()
        np.divide(np.nan_to_num(self.scores) @ is_of.T, counts, out=by_type, where=counts > 0)
        return by_type[:, self.types]


@lru_cache(maxsize=8)
def _order(n_examples: int, seed: int) -> IntArray:
    order = np.random.default_rng([seed, 0, ORDER]).permutation(n_examples)
    order.setflags(write=False)
    return order


def one_arm_oracle(environment: RouteEnvironment, *, budgets: Sequence[int], seed: int) -> Run:
    """A run that routes every prompt to the arm that is best over all examples."""
    best, count = environment.best_arm, budgets[-1]
    return Run(
        label=ORACLE,
        seed=seed,
        spent=np.array(budgets),
        told=Batch(np.full(count, best), np.arange(count)),
        best=np.full(len(budgets), best),
        ranking=np.tile(true_means(environment.scores), (len(budgets), 1)),
        status=statuses(environment.shape[0], ()),
        reason="exhausted" if count == environment.shape[1] else "budget",
        claim=NOTHING_CLAIMED,
    )


WINDOWS = 10
"""Maximum number of parts of a stream that have separate shares."""


def outscore_by(environment: RouteEnvironment) -> Callable[[Run], FloatArray]:
    """Create a function from a run to its mean score minus the one-arm oracle's.

    Both are over the same prompts. The result has shape (T,) and is in [-1, 1]. Unlike
    `algorithms.route.metrics.outscore_the_best` at an early round, it does not depend on whether easy prompts
    came first; after the whole stream the two are equal. Unscored prompts are excluded from each mean; before
    the first score it is 0.
    """
    best = environment.best_arm

    def lead(run: Run) -> FloatArray:
        examples = environment.order(run.seed)[run.told.examples]  # (t,)
        scores, alone = environment.scores[run.told.arms, examples], environment.scores[best, examples]
        return np.array([_mean(scores[:count]) - _mean(alone[:count]) for count in run.spent])

    return lead


def optimal_picks_by(environment: RouteEnvironment) -> Callable[[Run], FloatArray]:
    """Create a function from a run to its share of prompts routed to a best arm.

    A best arm has the highest expected score. The share has shape (T,) and is in [0, 1]; it is 0 before the
    first prompt.
    """
    expected = environment.expected()
    return lambda run: _at_budgets(
        run, optimal_pick_ratio(run.told.arms, _scores_of_prompts(run, environment, expected))
    )


def regret_by(environment: RouteEnvironment) -> Callable[[Run], FloatArray]:
    """Create a function from a run to its loss, compared with routing to best arms.

    For each prompt, the best arm is the one with the highest expected score. The loss is the total; it has
    shape (T,) and is in score units, at least 0 and at most the number of prompts.
    """
    expected = environment.expected()
    return lambda run: _at_budgets(
        run, cumulative_regret(run.told.arms, _scores_of_prompts(run, environment, expected))
    )


def parts(budget: int) -> list[int]:
    """Ends of at most `WINDOWS` parts of a stream, shape (W,).

    All parts except the last one are equally long.
    """
    window = -(-budget // WINDOWS)
    return [min(end, budget) for end in range(window, budget + window, window)]


def picks_by(environment: RouteEnvironment, budget: int) -> Callable[[Run], FloatArray] | None:
    """Create a function from a run to the shares of prompt types routed to each arm.

    Args:
        environment: The environment.
        budget: Number of prompts.

    Returns:
        A function from a run to shares of shape (W, G, K), W as in `parts`; NaN if a type did not occur. None
            without types of
        prompts.
    """
    if environment.types is None:
        return None
    types, n_arms, ends = environment.types, environment.shape[0], parts(budget)

    def shares(run: Run) -> FloatArray:
        of_prompts = types[environment.order(run.seed)[run.told.examples]]  # (t,)
        found = pick_shares(run.told.arms, of_prompts, n_arms, ends[0])
        padded = np.full((len(ends), int(types.max()) + 1, n_arms), np.nan)
        padded[: found.shape[0], : found.shape[1]] = found
        return padded

    return shares


def average_picks(shares: Sequence[FloatArray]) -> FloatArray:
    """The average over R runs of shares with shape (W, G, K).

    NaN if a type occurred in none of them.
    """
    found = np.array(shares)  # (R, W, G, K)
    counts = (~np.isnan(found)).sum(axis=0)
    means = np.full(found.shape[1:], np.nan)
    np.divide(np.nansum(found, axis=0), counts, out=means, where=counts > 0)
    return means


def _scores_of_prompts(run: Run, environment: RouteEnvironment, expected: FloatArray) -> FloatArray:
    """The expected scores of the observed prompts, shape (t, K)."""
    return expected[:, environment.order(run.seed)[run.told.examples]].T


def _at_budgets(run: Run, values: FloatArray) -> FloatArray:
    """Select the values at the budgets, from values after each prompt, shape (t,).

    0 before the first prompt.
    """
    return np.concatenate([[0.0], values])[run.spent]


def _mean(scores: FloatArray) -> float:
    scored = scores[~np.isnan(scores)]
    return float(scored.mean()) if scored.size else 0.0

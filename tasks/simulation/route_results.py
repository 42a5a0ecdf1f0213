"""Results of a simulated route: metrics at each budget, and the arms chosen for each type of prompt."""

from collections.abc import Callable, Sequence

import numpy as np

from winnow.algorithms.route.metrics import cumulative_regret, optimal_pick_ratio, pick_shares
from winnow.algorithms.state.arrays import FloatArray
from winnow.tasks.simulation.route_environments import RouteEnvironment
from winnow.tasks.simulation.simulate import Run

WINDOWS = 10
"""Maximum number of parts of a stream with separate shares."""


def outscore_by(environment: RouteEnvironment) -> Callable[[Run], FloatArray]:
    """A function from a run to its mean score minus the one-arm oracle's on the same prompts.

    The result has shape (T,) and is in [-1, 1]. Unlike `algorithms.route.metrics.outscore_the_best` at an
    early round, it does not depend on whether easy prompts came first; after the whole stream the two are
    equal. Unscored prompts are excluded from each mean; before the first score it is 0.
    """
    best = environment.best_arm

    def lead(run: Run) -> FloatArray:
        examples = environment.order(run.seed)[run.told.examples]  # (t,)
        scores, alone = environment.scores[run.told.arms, examples], environment.scores[best, examples]
        return np.array([_mean(scores[:count]) - _mean(alone[:count]) for count in run.spent])

    return lead


def optimal_picks_by(environment: RouteEnvironment) -> Callable[[Run], FloatArray]:
    """A function from a run to its share of prompts routed to an arm with the highest expected score.

    The share has shape (T,) and is in [0, 1]; it is 0 before the first prompt.
    """
    expected = environment.expected()
    return lambda run: _at_budgets(run, optimal_pick_ratio(run.told.arms, _seen(run, environment, expected)))


def regret_by(environment: RouteEnvironment) -> Callable[[Run], FloatArray]:
    """A function from a run to its total loss compared with routing each prompt to the best expected arm.

    The loss has shape (T,) and is in score units, at least 0 and at most the number of prompts.
    """
    expected = environment.expected()
    return lambda run: _at_budgets(run, cumulative_regret(run.told.arms, _seen(run, environment, expected)))


def parts(budget: int) -> list[int]:
    """The ends of at most `WINDOWS` parts of a stream, shape (W,); all but the last part are equally long."""
    window = -(-budget // WINDOWS)
    return [min(end, budget) for end in range(window, budget + window, window)]


def picks_by(environment: RouteEnvironment, budget: int) -> Callable[[Run], FloatArray] | None:
    """A function from a run to the shares of each prompt type routed to each arm, by part of the budget.

    Args:
        environment: The environment, with G types; without types the result is None.
        budget: Number of prompts.

    Returns:
        A function from a run to shares of shape (W, G, K), W as in `parts`; NaN if a type did not occur.
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
    """The average over R runs of shares of shape (W, G, K), NaN if a type occurred in none of them."""
    found = np.array(shares)  # (R, W, G, K)
    counts = (~np.isnan(found)).sum(axis=0)
    means = np.full(found.shape[1:], np.nan)
    np.divide(np.nansum(found, axis=0), counts, out=means, where=counts > 0)
    return means


def _seen(run: Run, environment: RouteEnvironment, expected: FloatArray) -> FloatArray:
    """The expected scores of the observed prompts, shape (t, K)."""
    return expected[:, environment.order(run.seed)[run.told.examples]].T


def _at_budgets(run: Run, values: FloatArray) -> FloatArray:
    """Values at the budgets, from values after every prompt, shape (t,); 0 before the first prompt."""
    return np.concatenate([[0.0], values])[run.spent]


def _mean(scores: FloatArray) -> float:
    scored = scores[~np.isnan(scores)]
    return float(scored.mean()) if scored.size else 0.0

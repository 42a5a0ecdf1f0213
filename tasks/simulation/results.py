"""Metrics of simulated runs, per run and budget, and their averages over seeds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from winnow.algorithms.best_duel.win_tables import worst_preferences
from winnow.algorithms.best_mean.metrics import (
    arms_not_worse,
    arms_within_gap,
    best_arms,
    budget_to_reach,
    hits,
    ndcg,
    true_values,
)
from winnow.algorithms.state.arrays import BoolArray, FloatArray
from winnow.storage.objectives import Simulated
from winnow.tasks.errors import SpecError
from winnow.tasks.simulation.environments import DuelEnvironment, Environment, ScoreEnvironment
from winnow.tasks.simulation.routes import RouteEnvironment, optimal_picks_by, outscore_by, regret_by
from winnow.tasks.simulation.simulate import ComparedSelector, Run
from winnow.tasks.spec.selector_traits import GATE

Metric = Literal[
    "accuracy",
    "top1-eps",
    "top1-mcnemar",
    "ndcg",
    "outscore-the-best",
    "optimal-pick-ratio",
    "regret",
    "coverage",
]
"""Metric of a run. These are in [0, 1], and 1 is best:

* accuracy: whether the recommended arm has the highest mean or, for duels, does best against its best
  opponent.
* top1-eps: whether its mean is at most a gap below the highest.
* top1-mcnemar: whether it is not significantly worse than the best one.
* ndcg: how well the ranking puts the ten best arms first.
* optimal-pick-ratio: the share of prompts routed to the arm with the highest expected score.

These are in score units:

* outscore-the-best: the mean score minus that of the arm that is best over all examples.
* regret: the total loss compared with routing each prompt to the arm with the highest expected score.

This is for a campaign that evaluated only some pairs, so that a selector's quality cannot be measured:

* coverage: the share of the proposed pairs with a score; 0 if no pair was proposed.
"""

METRICS: Mapping[Simulated, tuple[Metric, ...]] = {
    "tables of scores": ("accuracy", "top1-eps", "top1-mcnemar", "ndcg"),
    "duels": ("accuracy",),
    "routes": ("outscore-the-best", "optimal-pick-ratio", "regret"),
}
"""Metrics by `Traits.simulated`; the first one is the default."""

RIGHT_OR_WRONG = ("accuracy", "top1-eps", "top1-mcnemar")
"""Metrics that classify a recommended arm as right or wrong."""

IN_SCORE_UNITS = ("outscore-the-best", "regret")
"""Metrics without a best value that a run can reach."""

ROUNDING = 1e-9
"""Tolerance for rounding in sums of scores."""

TARGET = 0.95
"""Level of the "budget to reach", from the PULSE paper."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """Average of a metric over runs, at each of T budgets."""

    label: str
    runs: int
    means: FloatArray
    """Averages, shape (T,)."""
    errors: FloatArray
    """Standard errors of the averages, shape (T,); NaN for a single run."""

    def budget_to_target(self, budgets: Sequence[int]) -> int | None:
        """The first budget at which the average reaches `TARGET`; None if no budget does."""
        reached = budget_to_reach(budgets, self.means, TARGET)
        return int(reached) if np.isfinite(reached) else None


def metric_for(simulated: Simulated, chosen: Metric | None) -> Metric:
    """The chosen metric, or the default of the simulated objective.

    Raises:
        SpecError: The objective has no such metric.
    """
    if chosen is None or chosen in METRICS[simulated]:
        return chosen or METRICS[simulated][0]
    where = " and ".join(other for other in METRICS if chosen in METRICS[other])
    known = ", ".join(METRICS[simulated])
    raise SpecError(f"--metric {chosen} is only for {where}; for {simulated} choose one of {known}")


def measure_by(
    metric: Metric, environment: Environment, *, gap: float, level: float
) -> Callable[[Run], FloatArray]:
    """Create a function from a run to its metric at each of T budgets, shape (T,).

    Args:
        metric: The metric, one of `METRICS` for the environment.
        environment: The environment that was simulated.
        gap: The gap of top1-eps, in score units.
        level: The level of top1-mcnemar, in (0, 1).

    Raises:
        InvalidParameter: The gap or the level is out of range, or an arm has no score.
        SpecError: The metric is top1-mcnemar and the examples have groups.
    """
    if isinstance(environment, RouteEnvironment):
        return _ROUTE_METRICS[metric](environment)
    if isinstance(environment, DuelEnvironment):
        best = best_arms(
            worst_preferences(environment.preferences, np.ones(len(environment.preferences), dtype=np.bool_))
        )
        return lambda run: hits(run.best, best).astype(np.float64)
    assert isinstance(environment, ScoreEnvironment)
    if metric == "coverage":
        return lambda run: coverage(run, environment.scores)
    if metric == "top1-mcnemar" and environment.groups is not None:
        raise SpecError(
            "--metric top1-mcnemar compares candidates example by example, and this campaign by means of "
            "groups; choose another metric"
        )
    means = true_values(environment.scores, environment.groups)
    if metric == "ndcg":
        return lambda run: np.array([ndcg(ranking, means) for ranking in run.ranking])
    if metric == "accuracy":
        right = best_arms(means)
    elif metric == "top1-eps":
        right = arms_within_gap(means, gap)
    else:
        right = arms_not_worse(environment.scores, level)
    return lambda run: hits(run.best, right).astype(np.float64)


def claims_truly(each: ComparedSelector, environment: Environment) -> Callable[[Run], bool] | None:
    """Create a check whether the arm that a run names satisfies its selector's claim.

    The claim is that no other arm's mean is above its own by more than `epsilon`, or that no other arm is
    preferred over it by more. None if the claim is about something else, as for gates and `top_m`, or if
    scores are missing that were never requested, because the best candidate is then unknown.
    """
    if isinstance(environment, RouteEnvironment) or each.selector == GATE or each.params.get("top_m", 1) != 1:
        return None
    if isinstance(environment, ScoreEnvironment) and environment.is_partial:
        return None
    within = float(each.params.get("epsilon", 0.0)) + ROUNDING
    if isinstance(environment, DuelEnvironment):
        all_arms = np.ones(len(environment.preferences), dtype=np.bool_)
        right: BoolArray = worst_preferences(environment.preferences, all_arms) >= 0.5 - within
    else:
        assert isinstance(environment, ScoreEnvironment)
        right = arms_within_gap(true_values(environment.scores, environment.groups), within)
    return lambda run: bool(hits(run.best, right)[-1])


def coverage(run: Run, scores: FloatArray) -> FloatArray:
    """Share of the pairs proposed by each budget that have a score, shape (T,).

    0 if no pair was proposed.
    """
    found = np.cumsum(~np.isnan(scores[run.told.arms, run.told.examples]))
    counts = np.concatenate([[0], found])[run.spent]
    shares: FloatArray = counts / np.maximum(run.spent, 1)
    return shares


_ROUTE_METRICS: Mapping[Metric, Callable[[RouteEnvironment], Callable[[Run], FloatArray]]] = {
    "outscore-the-best": outscore_by,
    "optimal-pick-ratio": optimal_picks_by,
    "regret": regret_by,
}


def average(label: str, values: Sequence[FloatArray]) -> Curve:
    """The average curve of one selector over its runs."""
    per_run = np.array(values)  # (R, T)
    runs = len(per_run)
    errors = per_run.std(axis=0, ddof=1) / np.sqrt(runs) if runs > 1 else np.full(per_run.shape[1], np.nan)
    return Curve(label=label, runs=runs, means=per_run.mean(axis=0), errors=errors)

"""Forecast a campaign's requests, tokens, price and hours, and detectable gaps."""

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.algorithms.state.assumed_scores import assumed_scores, disagreement
from winnow.storage.queries.costs import ModelRate
from winnow.tasks.answer.expected_engines import expected_unsteady
from winnow.tasks.answer.resolution import Resolution, resolution_of
from winnow.tasks.campaign.contacts import canary_words
from winnow.tasks.data.score_tables import ScoreTable
from winnow.tasks.objectives.best_mean.objective import BestMean
from winnow.tasks.simulation.forecast.pricing import Amounts, Pricing
from winnow.tasks.simulation.forecast.requests import Assumption, Played, Player, StandIn, stand_in
from winnow.tasks.simulation.forecast.tokens import all_uses
from winnow.tasks.simulation.simulate import simulators

POWER = 0.9
"""Share of runs that must decide a gap within the budget, for the right winner, so that it counts as
detectable.
"""

STEPS = 5
"""Number of bisection steps.
The reported gap and the next lower one tried differ by the factor (n / 2) ** (1 / 2 ** STEPS): 1.2 for 600
examples and 1.3 for 12,000.
"""


def smallest_separated(separates: Callable[[float], bool], n_examples: int, most: float) -> float | None:
    """Find the smallest detectable gap, by bisection on a logarithmic scale.

    Args:
        separates: Whether a gap in mean, in (0, 1), is detected; assumed to be monotone.
        n_examples: Number n of examples. Gaps below 1 / n are not tried, because different means of
            scores of 0 and 1 differ by at least 1 / n.
        most: The largest possible gap.

    Returns:
        None if even `most` is not detected.
    """
    least = 1.0 / n_examples
    if not separates(most):
        return None
    low, high = least, most
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        middle = math.ceil(middle * n_examples - 1e-9) / n_examples  # a whole number of examples
        if not low < middle < high:
            break
        low, high = (low, middle) if separates(middle) else (middle, high)
    return high


Assumed = Assumption | ScoreTable
"""Source of the assumed scores."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Forecast of a campaign's cost, and of the gaps that it can detect."""

    name: str
    canaries: str | None
    """Clause on the canary prompts for served models; None if no model is served."""
    unsteady: tuple[str, ...]
    """Expected engines that may not reproduce their outputs."""
    assumed: str
    candidates: int
    examples: int
    """Number of selection examples."""
    held_out: int
    batch_size: int
    selector: str
    delta: float | None
    epsilon: float
    top_m: int
    """Number of best candidates to find."""
    grid: int
    """Number of comparisons if selection evaluates all pairs."""
    limit: int
    """Maximum number of comparisons, including those on held-out examples."""
    runs: int
    comparisons: float
    """Average number over the runs.
    With several outputs per example, the number of requests is higher.
    """
    fewest: int
    """Lower end of the range of comparisons in nine of ten runs."""
    most: int
    """Upper end of the range of comparisons in nine of ten runs."""
    decided: int
    """Number of runs that ended within the budget with an exact or proven answer."""
    right: int
    """Number of runs that named the right winner, or the right m best."""
    expected: Amounts
    """Average cost over the runs."""
    dearest: Amounts
    """Cost of the whole limit, spent on the most expensive candidates with outputs of maximum length."""
    sampled_examples: int
    guessed_tokens: tuple[str, ...]
    """Models whose prompt tokens are estimated as characters / 4."""
    measured: Mapping[str, ModelRate]
    """Rates measured on outputs in the database, by model."""
    rate: float | None
    """Requests per second that the user gave; None if not given."""
    gap: float | None
    """The smallest gap that nine of ten runs detect within the budget; None if no gap is detected."""
    gap_of_grid: float | None
    """The smallest gap that is detectable with all comparisons.
    None, like `gap`, for group means and `top_m`.
    """
    on_new_examples: Resolution | None
    """The smallest difference of the best two that can be shown on new examples.
    None also if scores are not 0 and 1.
    """


def plan_campaign(
    checked: BestMean, assumed: Assumed, *, seeds: int, workers: int | None = None, rate: float | None = None
) -> Plan:
    """Simulate a campaign's selector on a table, and compute the cost.

    No request is sent.

    Args:
        checked: The campaign, which searches for a winner.
        assumed: An assumption, or a table that is used as its scores.
        seeds: Number of runs; each gap that is tried needs as many runs again.
        workers: Number of processes; None for one per core.
        rate: Requests per second; None for the models' measured rates in the database.

    Raises:
        SpecError: The table does not fit the campaign.
    """
    with simulators(min(workers or os.cpu_count() or 1, seeds)) as pool:
        player = Player(checked, seeds=range(seeds), workers=workers, pool=pool)
        return _planned(checked, assumed, player, rate)


def _planned(checked: BestMean, assumed: Assumed, player: Player, rate: float | None) -> Plan:
    rng = np.random.default_rng(checked.spec.seed)
    has_gap = checked.groups is None and player.top_m == 1
    scores, is_of_candidates = _scores(assumed, checked, player, rng)
    played = player.play(scores, is_of_candidates=is_of_candidates)
    # The best candidate is unknown; on average over this, every candidate has the same share of the work.
    by_arm = played.by_arm if is_of_candidates else np.full(player.n_arms, played.by_arm.mean())
    limit = player.limit + player.held_out_comparisons
    pricing = Pricing(checked, all_uses(checked), rate)
    low, high = np.quantile(played.comparisons, [0.05, 0.95], method="inverted_cdf").tolist()
    spec = checked.spec
    return Plan(
        name=spec.name,
        canaries=canary_words(checked),
        unsteady=expected_unsteady(checked),
        assumed=_said_of(assumed, is_of_candidates) + checked.compared_words,
        candidates=player.n_arms,
        examples=player.n_examples,
        held_out=player.n_held_out,
        batch_size=spec.batch_size,
        selector=spec.selector.name,
        delta=spec.stopping.delta,
        epsilon=checked.epsilon,
        top_m=player.top_m,
        grid=player.grid,
        limit=limit,
        runs=played.runs,
        comparisons=float(played.comparisons.mean()),
        fewest=int(low),
        most=int(high),
        decided=played.decided,
        right=played.right,
        expected=pricing.amounts(by_arm),
        dearest=pricing.amounts(
            pricing.dearest(limit, player.n_examples + player.n_held_out), at_length=True
        ),
        sampled_examples=pricing.tokens.examples,
        guessed_tokens=pricing.tokens.guessed,
        measured=pricing.measured,
        rate=rate,
        gap=_gap(player, assumed, scores, rng, wants_decision=spec.stopping.delta is not None)
        if has_gap
        else None,
        gap_of_grid=1.0 / player.n_examples if has_gap else None,
        on_new_examples=_on_new_examples(assumed, scores) if has_gap else None,
    )


def _scores(assumed: Assumed, checked: BestMean, player: Player, rng: np.random.Generator) -> StandIn:
    if isinstance(assumed, Assumption):
        means = assumed.means(player.n_arms)
        return StandIn(assumed_scores(means, player.n_examples, alike=assumed.alike, rng=rng), False)
    keys = [each.key for each in checked.dataset.examples]
    if checked.split is not None:
        keys = [keys[position] for position in checked.split.selection.tolist()]
    return stand_in(assumed, [each.name for each in checked.candidates], keys, rng)


def _gap(
    player: Player, assumed: Assumed, scores: FloatArray, rng: np.random.Generator, *, wants_decision: bool
) -> float | None:
    """Smallest detectable gap in mean, by simulation; None if no gap is detected.

    One candidate leads, and all others share one mean. If the budget covers all pairs, the gap is 1 /
    n_examples, without simulation.
    """
    if player.limit == player.grid:
        return 1.0 / player.n_examples
    best = float(np.nanmax(np.nanmean(scores, axis=1)))
    alike = assumed.alike if isinstance(assumed, Assumption) else 0.0

    def separates(gap: float) -> bool:
        means = Assumption(best=best, rest=max(best - gap, 0.0), alike=alike).means(player.n_arms)
        table = assumed_scores(means, player.n_examples, alike=alike, rng=rng)
        played: Played = player.play(table, is_of_candidates=False)
        return (played.decided_right if wants_decision else played.right) >= POWER * played.runs

    return smallest_separated(separates, player.n_examples, best)


def _on_new_examples(assumed: Assumed, scores: FloatArray) -> Resolution | None:
    first, second = np.argsort(-np.nanmean(scores, axis=1), kind="stable")[:2]
    if isinstance(assumed, Assumption):
        means = assumed.means(len(scores))
        share = disagreement(float(means[0]), float(means[1]), assumed.alike)
    elif np.isin(scores[[first, second]], [0.0, 1.0]).all():
        share = float((scores[first] != scores[second]).mean())
    else:
        return None
    return resolution_of(scores.shape[1], len(scores), share)


def _said_of(table: Assumed, is_of_candidates: bool) -> str:
    if isinstance(table, Assumption):
        return str(table)
    whose = "of these candidates" if is_of_candidates else "instead of these candidates"
    said = f"{table.source}, {len(table.candidates)} candidates x {table.scores.shape[1]} examples, {whose}"
    if not table.is_partial:
        missing = 1.0 - table.filled
        open_ = f"; {missing:.2%} of its scores are missing, which may leave runs open"
        return f"{said}{open_ * (missing > 0.0)}"
    return (
        f"{said}; {table.filled:.0%} of its scores are known, the others are drawn from the candidate's own"
    )

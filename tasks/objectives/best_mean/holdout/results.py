"""Results of the winner and the runner-up on held-out examples, with intervals.

Selection chose the winner by its scores on the selection examples. As the highest of many noisy means, its
mean there tends to be too high for other examples (the winner's curse). The held-out examples had no part in
the choice. The mean on them is exact for these examples and an estimate for new ones.

The intervals are about new examples: about the population from which the dataset's examples were drawn at
random. Given all selection scores, which determine the finalists, the held-out examples are independent draws
from it. So no correction for the choice is needed.

With constraints, only the winner is scored on them, because it is often unknown whether the runner-up meets
the constraints. The mean of each constraint's metric has an interval of the same kind. The winner depends
only on scores and values of selection, so all of this holds for these values, too.

The intervals are not about the dataset. Given the winner on the rest of it, the held-out examples are not a
random sample of the whole: if the winner was lucky on the rest, it is unlucky on these.

A user who has seen held-out scores could add candidates because of them, or raise the budget until another
candidate wins. So the intervals guarantee nothing in two cases, which the results report: if candidates
joined after that, or if selection continued and found other finalists than those scored first.

A comparison without an outcome, for any reason, counts at its worst at both ends of an interval.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from winnow.algorithms.bounds.averaged_bets import ratio_interval
from winnow.algorithms.bounds.mean_interval import mean_interval
from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.queries.objective import paired as paired_views
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import rounds as round_records
from winnow.storage.records.record_types import DecisionRecord
from winnow.tasks.campaign.budget import BudgetUsage
from winnow.tasks.campaign.look import Look
from winnow.tasks.objectives.best_mean.holdout.selector import finalists
from winnow.tasks.objectives.best_mean.holdout.split import selection_keys, stored_split
from winnow.tasks.spec.stored_spec import constraints_of

LEVEL = 0.05
"""Error probability of all intervals together: two of scores, or one of scores and one for each
constraint.
"""

Scores = Sequence[float | None]
"""Outcomes by held-out example, in the order of the split; None for a missing outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutValue:
    """The winner's values of one constraint's metric on the held-out examples."""

    constraint: str
    valued: int
    """Number of the winner's comparisons with a value of the metric."""
    mean: float | None
    """Mean of these values, in [0, 1]; None if there are no values."""
    lower: float
    """Lower end of the interval for the mean on new examples."""
    upper: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOut:
    """Results of the winner, and of the runner-up, on the held-out examples."""

    n_examples: int
    """Number of held-out examples, h."""
    n_selection: int
    """Number of selection examples."""
    winner: str | None
    runner_up: str | None
    told: int
    """Number of the winner's comparisons on held-out examples so far."""
    scored: int
    """Number of these comparisons that have an outcome."""
    is_complete: bool
    """Whether all comparisons of the winner and the runner-up are done.
    Before that, the fields `clusters`, `mean` and below are unknown.
    """
    joined: str | None = None
    """A candidate that joined after held-out scores had been seen; None without such a candidate."""
    went_on: bool = False
    """Whether selection later continued to other finalists, or to another order of them, than were scored
    first. The finalists can then depend on held-out scores.
    """
    clusters: int | None = None
    """Number of clusters of the held-out examples; None if single examples are held out."""
    mean: float | None = None
    """Mean score of the winner on the held-out examples, in [0, 1]."""
    lower: float | None = None
    """Lower end of the interval for the winner's mean on new examples."""
    upper: float | None = None
    both_scored: int = 0
    """Number of held-out examples with outcomes of both finalists."""
    difference: float | None = None
    """Mean score of the winner minus that of the runner-up on these examples, in [-1, 1]; None without a
    runner-up.
    """
    difference_lower: float | None = None
    """Lower end of the interval for the mean difference on new examples."""
    difference_upper: float | None = None
    values: tuple[HeldOutValue, ...] = ()
    """Values for each constraint; empty until the winner is scored on all held-out examples."""


def held_out_of(look: Look, names: Sequence[str], decision: DecisionRecord | None) -> HeldOut | None:
    """A campaign's results on held-out examples so far; None without such examples.

    Args:
        look: The campaign.
        names: Names of its candidates, by arm.
        decision: Its latest decision; None before the first round is finished.
    """
    split = stored_split(look)
    if split is None:
        return None
    held_out = [split.keys[position] for position in split.held_out.tolist()]
    best = list(names).index(decision.best) if decision and decision.best is not None else None
    chosen = finalists(best, decision.estimates, decision.status, most=split.finalists) if decision else []
    found = [paired_views.outcomes(look.session, look.record.id, names[arm]) for arm in chosen]
    told = [[scores[key] for key in held_out if key in scores] for scores in found]
    positions = frozenset(split.held_out.tolist())
    seen = round_records.rounds_on(look.session, look.record.id, positions) if any(told) else []
    standing = HeldOut(
        n_examples=len(held_out),
        n_selection=len(split.selection),
        winner=names[chosen[0]] if chosen else None,
        runner_up=names[chosen[1]] if len(chosen) > 1 else None,
        told=len(told[0]) if told else 0,
        scored=_scored(told[0]) if told else 0,
        is_complete=bool(told) and all(len(scores) == len(held_out) for scores in told),
        joined=_joined(look, names, seen[0].number) if seen else None,
        went_on=others_came_first([arm for each in seen for arm in each.arms], chosen),
    )
    if not standing.is_complete:
        return standing
    constraints = constraints_of(look.record.spec)
    if not constraints:
        return completed(standing, *told, clusters=split.clusters)
    metrics = {each.metric for each in constraints}
    values = paired_views.metric_values(look.session, look.record.id, names[chosen[0]], metrics)
    told_values = {str(each): [values[each.metric].get(key) for key in held_out] for each in constraints}
    return completed(standing, *told, values=told_values, clusters=split.clusters)


def lets_ask(look: Look, names: Sequence[str], decision: DecisionRecord | None, usage: BudgetUsage) -> bool:
    """Whether the limit of comparisons allows more selection, or more held-out scores.

    Selection cannot use the comparisons reserved for finalists, even if fewer finalists exist than expected.
    """
    standing, split = held_out_of(look, names, decision), stored_split(look)
    if standing is None or split is None:
        return True
    asked = round_records.rounds_on(look.session, look.record.id, frozenset(split.held_out.tolist()))
    of_selection = usage.spent - sum(len(each.arms) for each in asked)
    is_left = standing.winner is not None and not standing.is_complete
    return is_left or of_selection < usage.limit - split.comparisons


def selection_values(look: Look, name: str, metrics: Collection[str]) -> dict[str, list[float]]:
    """A candidate's metric values on the selection examples, by metric."""
    seen = selection_keys(look)
    values = paired_views.metric_values(look.session, look.record.id, name, metrics)
    return {
        metric: [value for key, value in of_it.items() if key in seen and value is not None]
        for metric, of_it in values.items()
    }


def selection_outcomes(look: Look, names: Collection[str]) -> list[list[float | None]]:
    """Outcomes on the selection examples, by candidate; None for a missing outcome."""
    seen = selection_keys(look)
    found = [paired_views.outcomes(look.session, look.record.id, name) for name in names]
    return [[outcome for key, outcome in each.items() if key in seen] for each in found]


def _joined(look: Look, names: Sequence[str], seen: int) -> str | None:
    """The first candidate by name that joined after the round `seen`; None if no candidate did.

    `seen` is the first round with held-out examples.
    """
    first_rounds = campaign_records.first_rounds(look.session, look.record.id)
    late = [(first, name) for first, name in zip(first_rounds, names, strict=True) if first]
    return min((name for first, name in late if first > seen), default=None)


def others_came_first(arms: Sequence[int], finalists: Sequence[int]) -> bool:
    """Whether held-out examples were first evaluated for other finalists.

    Another order of the finalists counts as well.

    Args:
        arms: Arms of the comparisons on held-out examples, in order: for each example the winner, then the
            runner-up if it is scored.
        finalists: Arms of the current finalists, the winner first.
    """
    asked = list(dict.fromkeys(arms))
    return asked != list(finalists[: len(asked)])


def completed(
    standing: HeldOut,
    winner: Scores,
    runner_up: Scores | None = None,
    *,
    values: Mapping[str, Scores] | None = None,
    clusters: Sequence[str] | None = None,
) -> HeldOut:
    """Add means and intervals to the results.

    Scores are by held-out example.

    Args:
        standing: The results without means and intervals.
        winner: Scores of the winner.
        runner_up: Scores of the runner-up; None if it is not scored.
        values: The winner's values of each constraint's metric, by the constraint in words.
        clusters: Cluster of each example; None if examples were drawn one by one.
    """
    ours = _bounds(winner)
    level = LEVEL / (1 + max(1, len(values or {})))  # divided among all intervals
    standing = replace(
        standing,
        mean=_mean(winner),
        clusters=None if clusters is None else len(set(clusters)),
        lower=_interval(ours[0], level, clusters)[0],
        upper=_interval(ours[1], level, clusters)[1],
        values=tuple(_value(said, told, level, clusters) for said, told in (values or {}).items()),
    )
    if runner_up is None:
        return standing
    theirs = _bounds(runner_up)
    differences = [
        None if mine is None or its is None else mine - its
        for mine, its in zip(winner, runner_up, strict=True)
    ]
    # Differences are in [-1, 1], the interval is for values in [0, 1].
    least, most = (ours[0] - theirs[1] + 1.0) / 2.0, (ours[1] - theirs[0] + 1.0) / 2.0
    return replace(
        standing,
        both_scored=_scored(differences),
        difference=_mean(differences),
        difference_lower=2.0 * _interval(least, LEVEL / 2.0, clusters)[0] - 1.0,
        difference_upper=2.0 * _interval(most, LEVEL / 2.0, clusters)[1] - 1.0,
    )


def _interval(values: FloatArray, level: float, clusters: Sequence[str] | None) -> tuple[float, float]:
    """Interval for the mean of values in [0, 1] on new examples.

    Values, or clusters, are in the random order of the split.
    """
    if clusters is None:
        return mean_interval(values, level)
    numbers = {name: number for number, name in enumerate(dict.fromkeys(clusters))}
    of_value = np.array([numbers[name] for name in clusters], dtype=np.int64)
    sums: FloatArray = np.bincount(of_value, weights=values).astype(np.float64)
    return ratio_interval(sums, np.bincount(of_value), level)


def _value(constraint: str, values: Scores, level: float, clusters: Sequence[str] | None) -> HeldOutValue:
    least, most = _bounds(values)
    return HeldOutValue(
        constraint=constraint,
        valued=_scored(values),
        mean=_mean(values),
        lower=_interval(least, level, clusters)[0],
        upper=_interval(most, level, clusters)[1],
    )


def _bounds(scores: Scores) -> FloatArray:
    """The lowest and the highest possible value of each score, shape (2, h)."""
    unknown = np.array([score is None for score in scores])
    known = np.array([0.0 if score is None else score for score in scores])
    return np.array([known, known + unknown])


def _scored(values: Scores) -> int:
    return sum(value is not None for value in values)


def _mean(values: Scores) -> float | None:
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else None

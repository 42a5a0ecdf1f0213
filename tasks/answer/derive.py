"""Derive the answer of a stored campaign from its latest decision."""

from collections.abc import Sequence, Set
from dataclasses import replace
from math import fsum
from typing import TYPE_CHECKING

from winnow.algorithms.claims import ArmStatus, Assumption, Claim
from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.objectives import Traits, traits_of
from winnow.storage.queries import matrix
from winnow.storage.queries import unscored as unscored_views
from winnow.storage.queries.campaign_views import all_scores_are_zero
from winnow.storage.queries.campaign_views import metrics as metric_means
from winnow.storage.queries.objective import paired as paired_views
from winnow.storage.queries.objective.judgment_pairs import without_opinion
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord, DecisionRecord
from winnow.tasks.answer.earlier_campaigns import Earlier, earlier_of, is_drawn_again
from winnow.tasks.answer.excess import excess_of
from winnow.tasks.answer.model import (
    Addition,
    Answer,
    CandidateStanding,
    Constrained,
    Difference,
    People,
    Unscored,
    claim_of,
)
from winnow.tasks.answer.opponents import with_rival
from winnow.tasks.answer.outcome import claim_at, outcome_at, reason_of
from winnow.tasks.campaign.budget import BudgetUsage
from winnow.tasks.campaign.changed_models import server_changes
from winnow.tasks.campaign.look import Look
from winnow.tasks.engines.known_providers import FUNCTION, REMOTE
from winnow.tasks.spec.judge_tree import judge_tree, judging_models, scored_by, spares
from winnow.tasks.spec.stored_spec import (
    NO_STORED_TEXT,
    ONLY,
    baseline_name,
    constraints_of,
    costs_of,
    grouping_of,
    has_features,
    left_out_of,
)

if TYPE_CHECKING:
    from winnow.tasks.objectives.best_mean.holdout.results import HeldOut
    from winnow.tasks.objectives.certify.certificate import Certificate
    from winnow.tasks.objectives.route.status import Standing


SOLVING = ("winner", "tied", "policy", "decided", "none")
"""Outcomes that count as an answer, for which a warning is shown if all scores are 0. "none" is included: no
candidate is certified.
"""


def answer_of(
    look: Look,
    *,
    decision: DecisionRecord | None,
    has_ended: bool,
    waits: bool,
    stopped_by: BudgetUsage | None,
    budgets: Sequence[BudgetUsage],
    n_examples: int,
    without_text: int,
    people: People | None,
    certificate: "Certificate | None",
    standing: "Standing | None",
) -> Answer:
    """Derive the current answer of a campaign.

    Args:
        look: The campaign's current state.
        decision: Its latest decision; None before the first round is finished.
        has_ended: Whether no process runs the campaign, and its last decision or a spent limit ends it.
        waits: Whether the campaign waits for annotators.
        stopped_by: The limit that ended it although its selector would continue; None without such a limit.
        budgets: All limits of the campaign.
        n_examples: Number of examples of the campaign's benchmark, held-out ones included.
        without_text: Number of comparisons for which no output could be generated.
        people: Number of annotators and of missing judgments; None without a human judge.
        certificate: Results of a certify campaign; None for other objectives.
        standing: Results of a route campaign; None for other objectives.
    """
    traits = traits_of(look.record.objective)
    reason = reason_of(decision, stopped_by if has_ended else None)
    servers = tuple(server_changes(look.session, look.record))
    earlier = earlier_of(look)
    is_redrawn = not traits.measures_risk and is_drawn_again(look)
    claim = Claim()
    if has_ended:
        is_mixed = any(each.mixes for each in servers)
        is_seen = earlier is not None
        claim = claim_at(
            look.record, decision, reason, is_mixed=is_mixed, is_seen=is_seen, is_redrawn=is_redrawn
        )
    outcome = outcome_at(look.names, look.record, decision, reason, claim) if has_ended else None
    held_out = _held_out(look, decision)
    n_examples = n_examples if held_out is None else held_out.n_selection
    # With held-out examples, a limit can end the campaign although selection has no pair left to propose.
    is_open = outcome == "undecided" and decision is not None and decision.reason == "exhausted"
    refuted = claim_of(decision.claim).refuted if decision else ()
    answer = replace(
        _question(look.record, look.names, n_examples),
        outcome="waiting" if waits else outcome,
        claim=claim,
        reason=reason,
        best=decision.best if decision else None,
        judged=_judged(look, decision),
        candidates=standings_of(look.names, decision, traits),
        dropped=_unscored(look, decision, "dropped"),
        lacking=_lacking(look, decision) if is_open else (),
        additions=_additions(look) if traits.scores_a_benchmark else (),
        without_text=without_text,
        constraints=_constraints(look, None if decision is None else decision.best),
        people=people,
        silent=without_opinion(look.session, look.record.id) if len(_judges(look.record)) > 1 else {},
        stored_texts=_stored_texts(look),
        named_by_program=_named_by_program(look.record, is_done=has_ended and reason != "budget"),
        intervals_if=_intervals_if(look.record, refuted, earlier, is_redrawn=is_redrawn),
        refuted=refuted,
        servers=servers,
        held_out=held_out,
        only_held_out_left=reason == "budget" and _is_held_out_left(held_out, decision),
        certificate=certificate,
        earlier=earlier,
        standing=standing,
        is_unsolved=outcome in SOLVING
        and not traits.compares_pairs
        and all_scores_are_zero(look.session, look.record.id),
    )
    answer = replace(answer, excess=excess_of(look.names, decision, answer))
    answer = with_rival(look, answer)
    limit = _limit(answer, stopped_by, budgets)
    answer = replace(answer, known=_known(look, answer))
    return replace(
        answer,
        scored=_scored(look, answer),
        measured=_measured(look, answer),
        limit=limit,
        also_spent=() if limit is None else _also_spent(limit, budgets),
    )


def _question(campaign: CampaignRecord, names: Sequence[str], n_examples: int) -> Answer:
    """Create an answer without results, from the campaign's definition only."""
    spec = campaign.spec
    selector = spec["selector"]
    return Answer(
        campaign=campaign.name,
        objective=campaign.objective,
        outcome=None,
        claim=Claim(),
        reason="running",
        best=None,
        candidates=tuple(CandidateStanding(name=name) for name in names),
        left_out=spec.get("left_out", {}),
        expects_additions=selector["params"].get("additions") == "expected",
        n_examples=n_examples,
        delta=spec["stopping"]["delta"],
        epsilon=spec["stopping"]["epsilon"],
        baseline=baseline_name(selector),
        groups=grouping_of(spec),
        top_m=selector["params"].get("top_m", 1),
        costs=costs_of(selector),
        samples=_samples(campaign),
        judges=_judges(campaign),
        judged_in_part=any(not each.models for each in judge_tree(spec.get("judge")).parts),
        plugin=None if spec.get("selector_code") is None else selector["name"],
        is_of_program=any(each.get("provider") == FUNCTION for each in spec.get("models", ())),
        without_canaries=_sends_no_canaries(campaign),
        allows_all_zero=campaign.execution.get("execution", {}).get("allow_all_zero", False),
    )


def _sends_no_canaries(campaign: CampaignRecord) -> bool:
    """Whether the campaign uses servers and sends no canary prompts to them."""
    if campaign.execution.get("execution", {}).get("canaries", True):
        return False
    judging = (model for _, model in judging_models(campaign.spec))
    return any(each.get("provider") in REMOTE for each in (*campaign.spec.get("models", ()), *judging))


def _named_by_program(campaign: CampaignRecord, *, is_done: bool) -> str | None:
    if is_done:
        return None
    from winnow.tasks.campaign.program_plugins import (
        named_by_program,  # slow to import, and most answers do not need it
    )

    return named_by_program(campaign)


def _held_out(look: Look, decision: DecisionRecord | None) -> "HeldOut | None":
    """Results on held-out examples; None if no examples are held out.

    Numpy is only imported if examples are held out.
    """
    if look.record.spec.get("holdout") is None:
        return None
    from winnow.tasks.objectives.best_mean.holdout.results import held_out_of

    return held_out_of(look, look.names, decision)


def _is_held_out_left(held_out: "HeldOut | None", decision: DecisionRecord | None) -> bool:
    """Whether selection has ended and held-out examples still have to be scored."""
    if held_out is None or decision is None or held_out.is_complete:
        return False
    return held_out.told > 0 or decision.reason not in ("running", "budget")


def _constraints(look: Look, best: str | None) -> tuple[Constrained, ...]:
    """The constraints, each with the best candidate's mean so far."""
    constraints = constraints_of(look.record.spec)
    if not constraints:
        return ()
    means = _means_of_metrics(look, best, {each.metric for each in constraints})
    judges = {each["name"]: scored_by(each["judge"]) for each in look.record.spec.get("metrics", ())}
    found = [(each, *means.get(each.metric, (None, 0))) for each in constraints]
    return tuple(
        Constrained(constraint=each, mean=mean, valued=valued, judges=judges.get(each.metric, ()))
        for each, mean, valued in found
    )


def _means_of_metrics(look: Look, best: str | None, metrics: Set[str]) -> dict[str, tuple[float | None, int]]:
    """The best candidate's mean and number of values, by metric.

    Held-out examples do not count.
    """
    if best is None:
        return {}
    if look.record.spec.get("holdout") is None:
        rows = [row for row in metric_means(look.session, look.record.id) if row["candidate"] == best]
        return {row["metric"]: (row["mean"], row["scored"]) for row in rows}
    from winnow.tasks.objectives.best_mean.holdout.results import selection_values

    values = selection_values(look, best, metrics)
    return {name: (fsum(told) / len(told) if told else None, len(told)) for name, told in values.items()}


def _judges(campaign: CampaignRecord) -> tuple[str, ...]:
    """Names of the models that score outputs or choose among them; empty for duels."""
    return () if traits_of(campaign.objective).compares_pairs else scored_by(campaign.spec.get("judge", {}))


def _stored_texts(look: Look) -> tuple[int, int] | None:
    """Number of comparisons with a stored output, and of all comparisons.

    None if the campaign generates outputs.
    """
    if look.record.execution.get("reuse") != ONLY:
        return None
    by_reason = unscored_views.by_reason(look.session, look.record)
    told = sum(by_reason.values())
    return told - by_reason.get(NO_STORED_TEXT, 0), told


def _limit(
    answer: Answer, stopped_by: BudgetUsage | None, budgets: Sequence[BudgetUsage]
) -> BudgetUsage | None:
    """The limit that ended the campaign without an answer; None without such a limit.

    For certify, this includes the limit on labels.
    """
    if answer.reason != "budget" and answer.outcome != "none" and not answer.unsettled:
        return None
    return stopped_by or next((each for each in budgets if each.is_spent), None)


def _also_spent(limit: BudgetUsage, budgets: Sequence[BudgetUsage]) -> tuple[BudgetUsage, ...]:
    """The other spent limits that can be raised; the limit on labels cannot."""
    return tuple(each for each in budgets if each.is_spent and each.kind not in (limit.kind, "human_labels"))


def _additions(look: Look) -> tuple[Addition, ...]:
    """Candidates that joined later, grouped by the round in which they joined."""
    first_rounds = campaign_records.first_rounds(look.session, look.record.id)
    joined = sorted(set(first_rounds) - {0})
    return tuple(
        Addition(
            names=tuple(
                name for name, first in zip(look.names, first_rounds, strict=True) if first == round_
            ),
            rounds=round_,
        )
        for round_ in joined
    )


def _intervals_if(
    campaign: CampaignRecord, refuted: Sequence[Assumption], earlier: Earlier | None, *, is_redrawn: bool
) -> tuple[Assumption, ...]:
    if traits_of(campaign.objective).measures_risk:
        return ("random-labels",) if earlier is None else ("random-labels", "unseen-labels")
    drawn: tuple[Assumption, ...] = ("unseen-draws",) if is_redrawn else ()
    has_model = has_features(campaign.objective, campaign.spec["selector"])
    return ("bradley-terry", *drawn) if has_model and "bradley-terry" not in refuted else drawn


def _known(look: Look, answer: Answer) -> frozenset[str]:
    """Names of candidates in the answer whose means are exact.

    These are scored on every example; for duels, on every example against each remaining candidate. An
    interval of width 0 is necessary for this, but not sufficient: its ends can also meet because the interval
    missed the mean.
    """
    if not traits_of(answer.objective).looks_for_best:
        return frozenset()
    spoken_of = {answer.best, *answer.top, *answer.tied, answer.runner_up and answer.runner_up.name}
    if answer.baseline is not None:  # each candidate is compared with the baseline
        spoken_of = {each.name for each in answer.candidates}
    points = {each.name for each in answer.candidates if each.lower is not None and each.lower == each.upper}
    asked = sorted(points & spoken_of)
    if answer.held_out is not None:  # held-out examples do not count: only two candidates are scored on them
        from winnow.tasks.objectives.best_mean.holdout.results import selection_outcomes

        told = zip(asked, selection_outcomes(look, asked), strict=True)
        return frozenset(name for name, its in told if len(its) == answer.n_examples and None not in its)
    left = {each.name for each in answer.candidates if each.status != "dropped"}

    def is_known(name: str) -> bool:
        scored = paired_views.scored_examples(look.session, look.record.id, name)
        rivals = left - {name} if traits_of(answer.objective).compares_pairs else {None}
        return all(scored.get(rival) == answer.n_examples for rival in rivals)

    return frozenset(name for name in asked if is_known(name))


def _scored(look: Look, answer: Answer) -> tuple[int, float] | None:
    """Number of the best candidate's scored examples, and their plain mean, as in `Answer.scored`."""
    traits = traits_of(answer.objective)
    if answer.best is None or answer.groups is not None or answer.judged is not None:
        return None
    if not traits.looks_for_best or traits.compares_pairs or answer.is_known(answer.best):
        return None
    if answer.held_out is None:
        return paired_views.count_and_mean(look.session, look.record.id, answer.best)
    from winnow.tasks.objectives.best_mean.holdout.results import selection_outcomes

    (told,) = selection_outcomes(look, [answer.best])
    scores = [outcome for outcome in told if outcome is not None]
    return (len(scores), fsum(scores) / len(scores)) if scores else None


def _measured(look: Look, answer: Answer) -> dict[str, tuple[int, float]]:
    """Plain differences of candidates to the baseline, as in `Answer.measured`."""
    if answer.baseline is None or answer.outcome is None or spares(look.record.spec):
        return {}
    others = [each.name for each in answer.candidates if each.name != answer.baseline]
    pairs = {name: matrix.pair(look.session, look.record.id, name, answer.baseline) for name in others}
    return {
        name: (each.both, each.mean_difference)
        for name, each in pairs.items()
        if each.mean_difference is not None
    }


def standings_of(
    names: Sequence[str], decision: DecisionRecord | None, traits: Traits
) -> tuple[CandidateStanding, ...]:
    """The status and the estimates of each candidate after a decision, by arm.

    Args:
        names: Names of the candidates, by arm.
        decision: The decision; None before the first one.
        traits: The traits of the campaign's objective.
    """
    if decision is None:
        return tuple(CandidateStanding(name=name) for name in names)
    unknown = [None] * len(names)
    has_none = decision.differences is None and traits.scores_a_benchmark
    differences = (
        _exact_differences(names, decision)
        if has_none
        else [_difference(names, decision, arm) for arm in range(len(names))]
    )
    bets = decision.bets or {"wealths": unknown, "out_in_round": unknown, "out_at": unknown}
    by_field = {
        "name": names,
        "status": decision.status,
        "estimate": decision.estimates,
        "lower": decision.lower,
        "upper": decision.upper,
        "wealth": bets["wealths"],
        "out_in_round": bets["out_in_round"],
        "out_at": bets["out_at"],
        "difference": differences,
    }
    rows = zip(*by_field.values(), strict=True)
    return tuple(CandidateStanding(**dict(zip(by_field, row, strict=True))) for row in rows)


def _exact_differences(names: Sequence[str], decision: DecisionRecord) -> list[Difference | None]:
    """Differences of exact means to that of the best candidate.

    For a selector that stores no differences, so that --exhaustive, which scores every pair, has a runner-up.
    """
    rows = zip(names, decision.estimates, decision.lower, decision.upper, strict=True)
    known = {name: mean for name, mean, lower, upper in rows if mean is not None and lower == mean == upper}
    best = decision.best
    if best is None or best not in known:
        return [None] * len(names)
    behind = {name: mean - known[best] for name, mean in known.items() if name != best}
    return [
        Difference(against=best, estimate=behind[name], lower=behind[name], upper=behind[name])
        if name in behind
        else None
        for name in names
    ]


def _difference(names: Sequence[str], decision: DecisionRecord, arm: int) -> Difference | None:
    """Difference between a candidate and the one that all are compared with.

    None for the latter, for a candidate that joined later, and if the decision stores no differences.
    """
    found = decision.differences
    if found is None or arm == found["against"] or arm >= len(found["estimates"]):
        return None
    return Difference(
        against=names[found["against"]],
        estimate=found["estimates"][arm],
        lower=found["lower"][arm],
        upper=found["upper"][arm],
    )


def _unscored(
    look: Look,
    decision: DecisionRecord | None,
    *statuses: ArmStatus,
) -> tuple[Unscored, ...]:
    """Missing scores of the candidates with one of the given statuses, by arm."""
    if decision is None or not set(statuses) & set(decision.status):
        return ()
    rows = unscored_views.shares(look.session, look.record.id)
    if (address := traits_of(look.record.objective).missing) is not None:
        missing = object_at(address)(look)
        rows = [
            row | dict(zip(("unscored", "reason"), missing.get(position, (0, None)), strict=True))
            for position, row in enumerate(rows)
        ]
    left_out = left_out_of(look.record.execution)
    return tuple(
        Unscored(
            name=name,
            told=row["told"],
            unscored=row["unscored"],
            reason=row["reason"],
            left_out_in=None if name not in left_out else left_out[name] + 1,
        )
        for name, each, row in zip(look.names, decision.status, rows, strict=True)
        if each in statuses
    )


def _judged(look: Look, decision: DecisionRecord | None) -> int | None:
    """Number of scores of the best candidate; None if every output gets a verdict."""
    if decision is None or decision.best is None or not spares(look.record.spec):
        return None
    of = {row["candidate"]: row for row in unscored_views.shares(look.session, look.record.id)}[decision.best]
    return int(of["told"] - of["unscored"])


def _lacking(look: Look, decision: DecisionRecord | None) -> tuple[Unscored, ...]:
    """Missing selection scores of the candidates that could still be the answer.

    Held-out examples do not count. Candidates eliminated by bets are not included, as in `Answer.contenders`.
    """
    found = _unscored(look, decision, "active", "baseline")
    bets = None if decision is None else decision.bets
    if bets is not None:
        out = {
            name for name, since in zip(look.names, bets["out_in_round"], strict=True) if since is not None
        }
        found = tuple(each for each in found if each.name not in out)
    if look.record.spec.get("holdout") is None:
        return found
    from winnow.tasks.objectives.best_mean.holdout.results import selection_outcomes

    told = selection_outcomes(look, [each.name for each in found])
    return tuple(
        replace(each, told=len(its), unscored=its.count(None)) for each, its in zip(found, told, strict=True)
    )


def _samples(campaign: CampaignRecord) -> tuple[int, str] | None:
    samples = campaign.spec.get("samples")
    return None if samples is None else (samples["n"], samples["reduce"])

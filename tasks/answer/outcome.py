"""The outcome of a campaign by its latest decision, and the claim about it."""

from collections.abc import Sequence
from dataclasses import replace

from winnow.algorithms.claims import HEURISTIC, Assumption, Claim
from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.objectives import traits_of
from winnow.storage.records.record_types import CampaignRecord, DecisionRecord
from winnow.tasks.answer.model import Outcome, claim_of
from winnow.tasks.answer.new_examples import draws_examples
from winnow.tasks.campaign.budget import BudgetUsage
from winnow.tasks.spec.stored_spec import baseline_name, has_features


def reason_of(decision: DecisionRecord | None, stopped_by: BudgetUsage | None) -> str:
    """The selector's reason for the end, or "budget" if a limit ended the campaign.

    "running" if neither has ended it.
    """
    if decision is None:
        return "running"
    if not decision.stop:
        return "running" if stopped_by is None else "budget"
    return decision.reason


def outcome_at(
    names: Sequence[str],
    campaign: CampaignRecord,
    decision: DecisionRecord | None,
    reason: str,
    claim: Claim,
) -> Outcome:
    """The outcome of an ended campaign."""
    if (baseline := baseline_name(campaign.spec["selector"])) is not None:
        return _outcome_of_gate(names, baseline, decision, reason)
    is_none_known = "constraints" in campaign.spec and claim.kind in ("exact", "proven")
    return _outcome_of(campaign.objective, decision, reason, claim, is_none_known=is_none_known)


def _outcome_of(
    objective: str, decision: DecisionRecord | None, reason: str, claim: Claim, *, is_none_known: bool
) -> Outcome:
    """The outcome of a campaign without a baseline.

    Args:
        objective: The campaign's objective.
        decision: Its latest decision; None before the first one.
        reason: The reason for the end.
        claim: The claim about the campaign.
        is_none_known: Whether a decision without a best candidate shows that no candidate meets the
            constraints.
    """
    if decision is None or reason == "all-dropped":
        return "failed" if reason == "all-dropped" else "undecided"
    if (address := traits_of(objective).outcome) is not None:
        own: Outcome = object_at(address)(decision, reason, claim)
        return own
    if decision.best is None and is_none_known:
        return "none"
    if decision.best is None or claim.kind == "none":
        return "undecided"
    if claim.kind != "heuristic" and not {"best", "top", "tied"} & set(decision.status):
        return "none"  # it is proven that no candidate beats or ties every other one
    if "top" in decision.status:
        return "winner"
    return "tied" if list(decision.status).count("tied") > 1 else "winner"


def _outcome_of_gate(
    names: Sequence[str], baseline: str, decision: DecisionRecord | None, reason: str
) -> Outcome:
    """The outcome of a gate: decided once no candidate except the baseline is active."""
    if decision is None or reason == "all-dropped":
        return "failed" if reason == "all-dropped" else "undecided"
    statuses = zip(names, decision.status, strict=True)
    is_open = any(status == "active" for name, status in statuses if name != baseline)
    return "undecided" if is_open else "decided"


def claim_at(
    campaign: CampaignRecord,
    decision: DecisionRecord | None,
    reason: str,
    *,
    is_mixed: bool,
    is_seen: bool,
    is_redrawn: bool,
) -> Claim:
    """The claim about an ended campaign, with all its assumptions.

    Args:
        campaign: The campaign.
        decision: Its latest decision; None before the first one.
        reason: The reason for the end.
        is_mixed: Whether a served model changed during the campaign.
        is_seen: Whether an earlier campaign scored examples that count as fresh here.
        is_redrawn: Whether an earlier campaign drew the same examples, before a served model changed.
    """
    delta = campaign.spec["stopping"]["delta"]
    claim = _claim_by(decision, reason, delta, is_mixed=is_mixed)
    if decision is not None and _compares_nobody(campaign, decision.status):
        return HEURISTIC if claim.kind != "none" else claim
    if not is_mixed and _is_nobody_left(campaign, decision):
        claim = Claim(kind="proven", delta=delta)
    if claim.kind != "proven":
        return claim
    taken: list[Assumption] = []
    if traits_of(campaign.objective).measures_risk:
        taken += ["unseen-labels"] if is_seen else []
    elif is_redrawn:
        taken.append("unseen-draws")
    return replace(claim, assumptions=(*claim.assumptions, *taken))


def _claim_by(decision: DecisionRecord | None, reason: str, delta: float | None, *, is_mixed: bool) -> Claim:
    if decision is None:
        return Claim()
    claim = claim_of(decision.claim)
    if is_mixed and claim.kind != "none":
        return HEURISTIC  # the proof assumes that models do not change
    # A limit outside of the selector has ended the campaign: without delta, the leader counts as the best.
    return HEURISTIC if reason == "budget" and delta is None and claim.kind == "none" else claim


def _compares_nobody(campaign: CampaignRecord, statuses: Sequence[str]) -> bool:
    """Whether only one of several candidates was not dropped.

    An exact or proven claim that it is the best would be empty, except that it meets constraints.
    """
    looks_for_best = traits_of(campaign.objective).looks_for_best
    is_plain = baseline_name(campaign.spec["selector"]) is None and not campaign.spec.get("constraints")
    return looks_for_best and is_plain and list(statuses).count("dropped") == len(statuses) - 1 > 0


def _is_nobody_left(campaign: CampaignRecord, decision: DecisionRecord | None) -> bool:
    """Whether duels showed that each candidate loses against some other one.

    If some candidate loses against no other one, the probability that it was eliminated is at most `delta`.
    This requires that no candidate was dropped and that each pair is counted separately
    (`CountEvidence.beaten`).
    """
    if not traits_of(campaign.objective).compares_pairs or campaign.spec["stopping"]["delta"] is None:
        return False
    if decision is None or set(decision.status) != {"eliminated"} or claim_of(decision.claim).kind != "none":
        return False
    selector = campaign.spec["selector"]
    return draws_examples(selector["name"]) and not has_features(campaign.objective, selector)

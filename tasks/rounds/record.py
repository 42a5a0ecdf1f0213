"""Record a round: the selector observes it, and outcomes and decision are stored.

Outcomes and decision are stored in one transaction.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from decimal import ROUND_DOWN, Context

import numpy as np

from winnow.algorithms.claims import ArmStatus
from winnow.algorithms.decision import Bets, Decision, Differences
from winnow.algorithms.errors import ImpossibleState
from winnow.algorithms.protocols import SPARED, Selector
from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.objectives import traits_of
from winnow.storage.records import generations as generation_records
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.leases import writing_under
from winnow.storage.records.record_types import (
    EQUAL_OUTPUTS,
    THE_ANSWER,
    CampaignRecord,
    NewComparison,
    NewDecision,
    RoundRecord,
)
from winnow.tasks.campaign.blas_threads import on_one_thread
from winnow.tasks.campaign.contacts import repeat_references
from winnow.tasks.campaign.lease import now
from winnow.tasks.campaign.replay import arms_and_examples
from winnow.tasks.campaign.session import CampaignSession
from winnow.tasks.errors import ContradictoryState
from winnow.tasks.spec.stored_spec import baseline_name


@on_one_thread
def decide_round(
    campaign: CampaignSession, round_: RoundRecord, comparisons: Sequence[NewComparison]
) -> Decision:
    """Let the selector observe a round's outcomes, in order; return its decision.

    Raises:
        ContradictoryState: No scores could lead to the selector's state.
    """
    checked = campaign.checked
    losses = [
        (each.human_loss, each.auto_loss, each.unlabelled_loss, each.unlabelled_missing)
        for each in comparisons
    ]
    names = checked.told_metrics
    metrics = [_values(each, names) for each in comparisons]
    scores = [
        SPARED if checked.spares and each.reason == EQUAL_OUTPUTS else each.outcome for each in comparisons
    ]
    outcomes = checked.outcomes(scores, losses, metrics)
    campaign.tell(round_, outcomes, sum(each.is_answered for each in comparisons))
    try:
        return believed(campaign.selector, campaign.record)
    except ImpossibleState as error:
        raise ContradictoryState(campaign.record.name, round_.number + 1, str(error)) from error


def believed(selector: Selector, record: CampaignRecord) -> Decision:
    """The decision of a campaign's selector, adapted to the campaign.

    A gate has no best candidate: its selector ranks candidates only in order to continue, without a claim
    about the leader.
    """
    decision = selector.decision()
    if traits_of(record.objective).compares_pairs:
        decision = _with_opponents(decision)
    is_gate = baseline_name(record.spec["selector"]) is not None
    return replace(decision, best=None) if is_gate else decision


def _with_opponents(decision: Decision) -> Decision:
    """Remove the bounds of an arm without remaining opponents, whose preference is 1."""
    is_left = np.array([kind != "dropped" for kind in decision.status])
    is_alone = (is_left.sum() - is_left) == 0
    lower, upper = (np.where(is_alone, np.nan, ends) for ends in (decision.lower, decision.upper))
    return replace(decision, lower=lower, upper=upper)


def _values(comparison: NewComparison, metrics: Sequence[str]) -> list[float | None]:
    """Values of some metrics for a comparison; None for a missing value."""
    known = {each.name: each.score for each in comparison.metrics}
    return [known.get(name) for name in metrics]


LARGEST = 1e300
"""Finite value that replaces an overflowed wealth, because JSON has no infinity."""


def record_round(
    campaign: CampaignSession, round_: RoundRecord, comparisons: Sequence[NewComparison], decision: Decision
) -> None:
    """Store a round's results and its decision in one transaction.

    Raises:
        LeaseLost: Another process took the campaign over; nothing is stored.
        TextsLost: An output that the round uses was replaced; nothing is stored.
    """
    decided, in_use = as_record(decision, campaign.candidate_ids), campaign.texts_in_use.get(round_.id, {})
    with writing_under(campaign.database, campaign.lease) as session:
        generation_records.require_texts(session, in_use)
        if campaign.n_in_flight > 1:
            generation_records.charge(session, round_.id, list(in_use))
        known = outcome_records.add_outcomes(
            session,
            round_.id,
            comparisons,
            decided,
            now(),
            before=campaign.known,
            is_retry=campaign.is_retry(round_),
        )
    campaign.known = known
    campaign.texts_in_use.pop(round_.id, None)
    if campaign.checked.repeats_examples:
        campaign.replicates.add(arms_and_examples(round_.arms, round_.examples))
    repeat_references(campaign)


def as_record(decision: Decision, candidate_ids: Sequence[int]) -> NewDecision:
    """A decision in its stored form, with candidate ids by arm."""
    return NewDecision(
        best_candidate_id=None if decision.best is None else candidate_ids[decision.best],
        estimates=_known(decision.estimates),
        lower=_known(decision.lower),
        upper=_known(decision.upper),
        status=decision.status,
        claim=_of_claim(decision),
        stop=decision.stop,
        ranking=None if decision.ranking is None else _known(decision.ranking),
        reason=decision.reason,
        differences=None if decision.differences is None else _fields(decision.differences),
        bets=None if decision.bets is None else _of_bets(decision.bets, decision.status),
    )


def _of_claim(decision: Decision) -> dict[str, object]:
    """The claim as JSON; the decision's `excess`, if any, is a further field."""
    claim = asdict(decision.claim)
    return claim if decision.excess is None else {**claim, "excess": asdict(decision.excess)}


def _of_bets(bets: Bets, status: Sequence[ArmStatus]) -> dict[str, list[float | None]]:
    """The bets as JSON.

    A level that cannot be reached is null, and so is the round of a candidate that is not eliminated. Wealths
    have six digits, except one that rounding would put below the level that it has reached. Candidates in the
    answer are not eliminated, even if they were shown not to be the best: those within epsilon of the highest
    mean are tied with it, and the cheapest good enough candidate is chosen.
    """
    wealths: list[float | None] = [
        _rounded_wealth(min(wealth, LARGEST), level)
        for wealth, level in zip(bets.wealths.tolist(), bets.levels.tolist(), strict=True)
    ]
    levels = [None if math.isinf(each) else each for each in bets.levels.tolist()]
    out_in_round, out_at = (
        [
            None if each < 0 or kind in THE_ANSWER else each
            for each, kind in zip(values.tolist(), status, strict=True)
        ]
        for values in (bets.out_in_round, bets.out_at)
    )
    return {"wealths": wealths, "levels": levels, "out_in_round": out_in_round, "out_at": out_at}


SIX_DIGITS = Context(prec=6, rounding=ROUND_DOWN)


def _rounded_wealth(wealth: float, level: float) -> float:
    """Round a wealth to six digits, without crossing its level."""
    lower = float(SIX_DIGITS.create_decimal(repr(wealth)))
    return max(lower, level) if wealth >= level else lower


def _fields(differences: Differences) -> dict[str, object]:
    return {
        "against": differences.against,
        "delta": differences.delta,
        "estimates": _known(differences.estimates),
        "lower": _known(differences.lower),
        "upper": _known(differences.upper),
    }


def _known(values: FloatArray) -> list[float | None]:
    """Values as a list, with None for NaN and without negative zeros.

    SQLite stores neither NaN nor negative zeros.
    """
    return [None if math.isnan(value) else value for value in (values + 0.0).tolist()]

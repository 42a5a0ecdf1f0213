"""Outcomes of a round and the decision from them, stored in one transaction."""

import datetime as dt
from collections.abc import Sequence
from dataclasses import fields, replace
from operator import attrgetter

from sqlalchemy import ColumnElement, Connection, func, select, true
from sqlalchemy.orm import Session, aliased

from winnow.storage.engine.database import once_a_look
from winnow.storage.engine.raw_sql import insert_rows
from winnow.storage.models import (
    Campaign,
    Candidate,
    Comparison,
    Decision,
    Judgment,
    Metric,
    Output,
    Round,
    table_of,
)
from winnow.storage.objectives import traits_of
from winnow.storage.records.candidates.states import Known, said_of_candidates
from winnow.storage.records.candidates.stats import add_to_stats, decide
from winnow.storage.records.generations import unpin_recorded
from winnow.storage.records.record_types import (
    DecisionRecord,
    NewComparison,
    NewDecision,
    NewJudgment,
    NewOutput,
)
from winnow.storage.records.rounds import unfinished_rounds
from winnow.storage.records.tallies import add_to_tallies, add_to_totals

OF_ITS_OWN = ("judgments", "outputs", "metrics")
"""Fields of a comparison that are stored in other tables."""
COMPARISON_FIELDS = tuple(field.name for field in fields(NewComparison) if field.name not in OF_ITS_OWN)
BY_THE_BEST = ("best", "top", "tied", "not-better")
"""Statuses of a decision that compare a candidate with the best one."""
JUDGMENT_FIELDS = tuple(field.name for field in fields(NewJudgment))
OUTPUT_FIELDS = tuple(field.name for field in fields(NewOutput))
AGAINST = aliased(Candidate)
"""The candidate that others are compared with."""
_comparison_fields = attrgetter(*COMPARISON_FIELDS)
_judgment_fields = attrgetter(*JUDGMENT_FIELDS)
_output_fields = attrgetter(*OUTPUT_FIELDS)


def add_outcomes(
    session: Session,
    round_id: int,
    comparisons: Sequence[NewComparison],
    decision: NewDecision,
    now: dt.datetime,
    before: Known | None = None,
) -> Known:
    """Store a round's outcomes and the decision from them, in one transaction.

    Outputs that the round had pinned are then protected by its comparisons and judgments; see `generations`.
    The returned values can be passed as `before` of the next round, which saves reading them, if no other
    process stores rounds of the campaign meanwhile and the transaction was committed.
    """
    connection = session.connection()
    rows = ((round_id, *_comparison_fields(row)) for row in comparisons)
    insert_rows(connection, table_of(Comparison), ("round_id", *COMPARISON_FIELDS), rows)
    _add_parts(connection, round_id, comparisons)
    add_to_tallies(connection, round_id, comparisons)
    unpin_recorded(connection, round_id)
    add_to_stats(connection, round_id)
    known = decide(connection, round_id, comparisons, decision, now, before)
    add_to_totals(connection, round_id)
    return known


@once_a_look
def latest_decision(
    session: Session, campaign_id: int, until: dt.datetime | int | None = None
) -> DecisionRecord | None:
    """The last decision of a campaign; None before the first round is finished.

    Except in routing, it is reopened if candidates were added after it, or if it stops the campaign while
    other rounds are in flight.

    Args:
        session: Reads the results.
        campaign_id: The campaign.
        until: Latest time of the decision, or number of its round; None for any.
    """
    stored = decision_as_stored(session, campaign_id, until)
    if stored is None:
        return None
    found, objective = stored
    is_final = not (found.n_joined or (found.stop and unfinished_rounds(session, campaign_id)))
    return found if traits_of(objective).is_stream or is_final else _opened_again(found)


def decision_as_stored(
    session: Session, campaign_id: int, until: dt.datetime | int | None = None
) -> tuple[DecisionRecord, str] | None:
    """The same decision without reopening, with its campaign's objective; None before the first round."""
    in_time: ColumnElement[bool]
    if isinstance(until, int):
        in_time = Round.number <= until
    else:
        in_time = Decision.decided_at <= until if until is not None else true()
    row = session.execute(
        select(Round.number, Candidate.name, AGAINST.position, Decision, Campaign.objective)
        .join(Decision, Decision.round_id == Round.id)
        .join(Campaign, Campaign.id == Round.campaign_id)
        .outerjoin(Candidate, Candidate.id == Decision.best_candidate_id)
        .outerjoin(AGAINST, AGAINST.id == Decision.against_candidate_id)
        .where(Round.campaign_id == campaign_id, in_time)
        .order_by(Round.number.desc())
        .limit(1)
    ).first()
    if row is None:
        return None
    number, best, against, decision, objective = row
    said, n_joined = said_of_candidates(session.connection(), campaign_id, decision, against)
    found = DecisionRecord(
        round_number=number,
        best=best,
        claim=decision.claim,
        stop=decision.stop,
        reason=decision.reason,
        decided_at=decision.decided_at,
        n_joined=n_joined,
        **said,
    )
    return found, objective


def latest_decision_ids(session: Session) -> dict[int, int]:
    """Id of the last decision of each campaign that has one, by campaign id."""
    found = session.execute(
        select(Round.campaign_id, func.max(Decision.id))
        .join(Decision, Decision.round_id == Round.id)
        .group_by(Round.campaign_id)
    )
    return {campaign_id: decision_id for campaign_id, decision_id in found}


def _opened_again(decision: DecisionRecord) -> DecisionRecord:
    """The part of a decision that still holds after candidates were added, or while rounds are in flight.

    Once another candidate is added, or another round is observed, the named candidate can cease to be the
    best.
    """
    claim = dict(decision.claim)
    if decision.n_joined:  # those who joined can be better by more
        claim.pop("excess", None)
    return replace(
        decision,
        status=["active" if each in BY_THE_BEST else each for each in decision.status],
        claim={**claim, "kind": "none", "delta": None, "raised_by": [], "assumptions": []},
        stop=False,
        reason="running",
    )


def _add_parts(connection: Connection, round_id: int, comparisons: Sequence[NewComparison]) -> None:
    """Insert the judgments, outputs and metrics of comparisons that have any."""
    if not any(each.judgments or each.outputs or each.metrics for each in comparisons):
        return
    ids = {
        position: id_
        for position, id_ in connection.execute(
            select(Comparison.position, Comparison.id).where(Comparison.round_id == round_id)
        )
    }
    rows = (
        (ids[comparison.position], number, *_judgment_fields(judgment))
        for comparison in comparisons
        for number, judgment in enumerate(comparison.judgments)
    )
    insert_rows(connection, table_of(Judgment), ("comparison_id", "number", *JUDGMENT_FIELDS), rows)
    outputs = (
        (ids[comparison.position], *_output_fields(output))
        for comparison in comparisons
        for output in comparison.outputs
    )
    insert_rows(connection, table_of(Output), ("comparison_id", *OUTPUT_FIELDS), outputs)
    metrics = (
        (ids[comparison.position], metric.name, metric.score, metric.reason)
        for comparison in comparisons
        for metric in comparison.metrics
    )
    insert_rows(connection, table_of(Metric), ("comparison_id", "name", "score", "reason"), metrics)

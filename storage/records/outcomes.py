"""Outcomes of a round and the decision from them.

They are stored in one transaction with all sums over rounds. Duels are counted by pair, and paid and reused
outputs by owner, in SQL; the caller specifies the rounds. A round is added before its pins are removed.
"""

import datetime as dt
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from functools import cache
from operator import attrgetter

from sqlalchemy import ColumnElement, Connection, func, select, true
from sqlalchemy.orm import Session, aliased

from winnow.storage.engine.database import once_a_look
from winnow.storage.engine.raw_sql import insert_rows, run
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
from winnow.storage.records.candidate_states import Known, add_to_stats, decide, said_of_candidates
from winnow.storage.records.generations import unpin_recorded
from winnow.storage.records.record_types import (
    DecisionRecord,
    NewComparison,
    NewDecision,
    NewJudgment,
    NewOutput,
)
from winnow.storage.records.rounds import unfinished_rounds

FIRST, SECOND, BESIDE, REPLIES = "first", "second", "beside", "replies"

USED = {
    FIRST: """
        SELECT x.round_id, x.generation_a_id AS generation_id, k.position, NULL AS judge
        FROM comparisons x JOIN candidates k ON k.id = x.candidate_a_id""",
    SECOND: """
        SELECT x.round_id, x.generation_b_id, k.position, NULL
        FROM comparisons x JOIN candidates k ON k.id = x.candidate_b_id""",
    BESIDE: """
        SELECT x.round_id, o.generation_id, k.position, NULL
        FROM outputs o JOIN comparisons x ON x.id = o.comparison_id
        JOIN candidates k ON k.id = x.candidate_a_id""",
    REPLIES: """
        SELECT x.round_id, m.generation_id, NULL, m.judge
        FROM judgments m JOIN comparisons x ON x.id = m.comparison_id""",
}
"""Queries for the uses of an output, by kind.
An output can be used as first or second side of a comparison, as one of its several outputs, or as a judge's
reply."""

ROLE = (
    "CASE WHEN u.position IS NOT NULL THEN 'candidate' WHEN u.judge IS NOT NULL THEN 'judge' ELSE 'other' END"
)
NAME = "coalesce(k.name, u.judge, '')"
"""Name of the owner `u` of an output.
`k` is the candidate at the owner's position."""

SUMS = (
    "count(*) AS generations, sum(g.input_tokens) AS input_tokens, sum(g.output_tokens) AS output_tokens, "
    "sum(g.seconds) AS seconds"
)
"""Sums over outputs `g`."""

CACHE_SUMS = (
    "coalesce(sum(g.cached_tokens), 0) AS cached_tokens, "
    "coalesce(sum(CASE WHEN g.cached_tokens IS NOT NULL THEN g.input_tokens END), 0) AS cacheable_tokens"
)
"""Sums over those outputs `g` whose engines reported cached tokens."""


def owners(parts: Iterable[str], where: str = "1 = 1") -> str:
    """Query for the owner of each output that rounds use.

    Its columns are `round_id, generation_id, position, judge`. A shared output belongs to the candidate with
    the smallest position, and to a judge only if no candidate uses it.

    Args:
        parts: Those kinds of `USED` that occur in the rounds.
        where: A condition on `used`, which is pushed into its parts so that their indexes apply.
    """
    used = " UNION ALL ".join(USED[part] for part in USED if part in {FIRST, *parts})
    return f"""
        SELECT round_id, generation_id, min(position) AS position,
            CASE WHEN min(position) IS NULL THEN min(judge) END AS judge
        FROM ({used}) used WHERE generation_id IS NOT NULL AND {where} GROUP BY round_id, generation_id"""


def paid(parts: Iterable[str], *, used: str = "1 = 1", where: str) -> str:
    """Query for the outputs that rounds paid for.

    Its columns are `campaign_id, role, name, model` and sums.

    Args:
        parts: Same as for `owners`.
        used: A condition on the uses of an output.
        where: A condition on the rounds `r`.
    """
    return f"""
        SELECT r.campaign_id, {ROLE}, {NAME}, g.model, {SUMS}, {CACHE_SUMS}
        FROM rounds r
        JOIN generations g ON g.round_id = r.id
        LEFT JOIN ({owners(parts, used)}) u ON u.round_id = r.id AND u.generation_id = g.id
        LEFT JOIN candidates k ON k.campaign_id = r.campaign_id AND k.position = u.position
        WHERE {where}
        GROUP BY r.campaign_id, u.position, u.judge, k.name, g.model
    """


def taken(owned: str, where: str) -> str:
    """Query for the outputs that rounds reused.

    Its columns are `campaign_id, role, name, taken_from_id` and sums.

    Args:
        owned: Rows like those of `owners`.
        where: A condition on these rows `u`, their rounds `r`, the outputs `g` and the rounds `paid` that
            paid for them.
    """
    return f"""
        SELECT r.campaign_id, {ROLE}, {NAME}, coalesce(paid.campaign_id, 0), {SUMS}
        FROM ({owned}) u
        JOIN rounds r ON r.id = u.round_id
        JOIN generations g ON g.id = u.generation_id
        LEFT JOIN rounds paid ON paid.id = g.round_id
        LEFT JOIN candidates k ON k.campaign_id = r.campaign_id AND k.position = u.position
        WHERE {where}
        GROUP BY r.campaign_id, u.position, u.judge, k.name, coalesce(paid.campaign_id, 0)
    """


TOTALS = """
    SELECT r.campaign_id, count(*), sum(d.comparisons), sum(d.answered), sum(d.scored), sum(d.generations),
        sum(d.input_tokens), sum(d.output_tokens), sum(d.seconds)
    FROM decisions d JOIN rounds r ON r.id = d.round_id WHERE {where} GROUP BY r.campaign_id
"""
"""Sums over the decisions that satisfy a condition, by campaign."""

METRICS = """
    SELECT x.candidate_a_id, m.name, count(m.score), count(*) - count(m.score), coalesce(sum(m.score), 0)
    FROM metrics m JOIN comparisons x ON x.id = m.comparison_id WHERE {where}
    GROUP BY x.candidate_a_id, m.name
"""
"""Counts and sums of metrics' scores, by candidate and metric.
Only comparisons that satisfy a condition are included."""

DUELS = """
    SELECT candidate_a_id, candidate_b_id, count(*), count(outcome),
        sum(CASE WHEN outcome > 0.5 THEN 1 ELSE 0 END), sum(CASE WHEN outcome < 0.5 THEN 1 ELSE 0 END),
        coalesce(sum(outcome), 0)
    FROM comparisons WHERE candidate_b_id IS NOT NULL AND {where}
    GROUP BY candidate_a_id, candidate_b_id
"""
"""Results of the duels that satisfy a condition, by pair of candidates."""


TEXT_SUMS = ("generations", "input_tokens", "output_tokens", "seconds")
PAID_SUMS = (*TEXT_SUMS, "cached_tokens", "cacheable_tokens")
ROUND_SUMS = ("rounds", "comparisons", "answered", "scored", *TEXT_SUMS)
METRIC_SUMS = ("scored", "unscored", "score_sum")
DUEL_SUMS = ("duels", "scored", "wins", "losses", "outcome_sum")
KEYS = {
    "campaign_stats": ("campaign_id",),
    "metric_stats": ("candidate_id", "name"),
    "duel_stats": ("candidate_a_id", "candidate_b_id"),
    "cost_stats": ("campaign_id", "role", "name", "model"),
    "reuse_stats": ("campaign_id", "role", "name", "taken_from_id"),
}
"""Key columns of each table of sums."""


def add_to_tallies(connection: Connection, round_id: int, comparisons: Sequence[NewComparison]) -> None:
    """Add a round to the sums.

    Its comparisons, judgments and outputs have just been stored.
    """
    parts = _parts(comparisons)
    run(connection, _paid(parts), (round_id, round_id))
    if SECOND in parts:
        run(connection, _DUELS, (round_id,))
    if any(each.metrics for each in comparisons):
        run(connection, _METRICS, (round_id,))
    # Outputs that other campaigns paid for are still pinned here.
    if run(connection, "SELECT 1 FROM pins WHERE round_id = ? LIMIT 1", (round_id,)):
        run(connection, _taken(parts), (round_id,))
        run(connection, _remembered(parts), (round_id,))


def _parts(comparisons: Sequence[NewComparison]) -> tuple[str, ...]:
    """Kinds of `USED` that occur in these comparisons, other than as first sides."""
    found = {
        SECOND: any(each.candidate_b_id is not None for each in comparisons),
        BESIDE: any(each.outputs for each in comparisons),
        REPLIES: any(each.judgments for each in comparisons),
    }
    return tuple(part for part, is_used in found.items() if is_used)


def _add(table: str, sums: Sequence[str], rows: str) -> str:
    key = ", ".join(KEYS[table])
    added = ", ".join(f"{name} = {table}.{name} + excluded.{name}" for name in sums)
    return f"INSERT INTO {table} ({key}, {', '.join(sums)}) {rows} ON CONFLICT ({key}) DO UPDATE SET {added}"


@cache
def _paid(parts: tuple[str, ...]) -> str:
    return _add("cost_stats", PAID_SUMS, paid(parts, used="round_id = ?", where="r.id = ?"))


IS_PINNED = (
    "EXISTS (SELECT 1 FROM pins p WHERE p.round_id = u.round_id AND p.generation_id = u.generation_id)"
)
IS_KNOWN = (
    "EXISTS (SELECT 1 FROM reused_texts t WHERE t.campaign_id = r.campaign_id AND t.generation_id = g.id)"
)


@cache
def _taken(parts: tuple[str, ...]) -> str:
    """Statement that adds reused outputs.

    Outputs that the campaign has already reused are left out.
    """
    rows = taken(owners(parts, "round_id = ?"), f"{IS_PINNED} AND NOT {IS_KNOWN}")
    return _add("reuse_stats", TEXT_SUMS, rows)


@cache
def _remembered(parts: tuple[str, ...]) -> str:
    return f"""
        INSERT INTO reused_texts (campaign_id, generation_id)
        SELECT r.campaign_id, u.generation_id
        FROM ({owners(parts, "round_id = ?")}) u JOIN rounds r ON r.id = u.round_id
        WHERE {IS_PINNED}
        ON CONFLICT DO NOTHING
    """


_TOTALS = _add("campaign_stats", ROUND_SUMS, TOTALS.format(where="d.round_id = ?"))
_METRICS = _add("metric_stats", METRIC_SUMS, METRICS.format(where="x.round_id = ?"))
_DUELS = _add("duel_stats", DUEL_SUMS, DUELS.format(where="round_id = ?"))


OF_ITS_OWN = ("judgments", "outputs", "metrics")
"""Fields of a comparison that are stored in tables of their own."""
COMPARISON_FIELDS = tuple(field.name for field in fields(NewComparison) if field.name not in OF_ITS_OWN)
BY_THE_BEST = ("best", "top", "tied", "not-better")
"""Statuses that compare a candidate with the best one."""
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
    *,
    is_retry: bool = False,
) -> Known:
    """Store a round's outcomes and the decision from them, in one transaction.

    Outputs that the round had pinned are then protected by its comparisons and judgments; see `generations`.
    Pass the returned values as `before` of the next round to save reading them. That is valid only if no
    other process stored rounds of the campaign meanwhile and the transaction was committed. `is_retry` says
    whether the comparisons replace earlier ones without an outcome.
    """
    connection = session.connection()
    rows = ((round_id, *_comparison_fields(row)) for row in comparisons)
    insert_rows(connection, table_of(Comparison), ("round_id", *COMPARISON_FIELDS), rows)
    _add_parts(connection, round_id, comparisons)
    add_to_tallies(connection, round_id, comparisons)
    unpin_recorded(connection, round_id)
    add_to_stats(connection, round_id, {each.candidate_a_id for each in comparisons} if is_retry else ())
    known = decide(connection, round_id, comparisons, decision, now, before, is_retry=is_retry)
    run(connection, _TOTALS, (round_id,))
    return known


@once_a_look
def latest_decision(
    session: Session, campaign_id: int, until: dt.datetime | int | None = None
) -> DecisionRecord | None:
    """Last decision of a campaign; None before the first round is finished.

    Except in routing, the decision is reopened if candidates were added after it, or if it stops the campaign
    while other rounds are in flight.

    Args:
        session: Reads the results.
        campaign_id: The campaign.
        until: Latest time of the decision, or largest number of its round; None for no limit.
    """
    stored = decision_as_stored(session, campaign_id, until)
    if stored is None:
        return None
    found, objective = stored
    is_final = not (found.n_joined or (found.stop and unfinished_rounds(session, campaign_id)))
    return found if traits_of(objective).is_stream or is_final else _reopen(found)


def decision_as_stored(
    session: Session, campaign_id: int, until: dt.datetime | int | None = None
) -> tuple[DecisionRecord, str] | None:
    """Same as `latest_decision` without reopening, with the campaign's objective.

    None before the first round.
    """
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


def _reopen(decision: DecisionRecord) -> DecisionRecord:
    """The part of a decision that still holds for a reopened campaign.

    A campaign reopens after candidates were added, or while rounds are in flight. Once another candidate is
    added, or another round is observed, the named candidate may no longer be the best.
    """
    claim = dict(decision.claim)
    if decision.n_joined:  # added candidates can be better by more than the excess
        claim.pop("excess", None)
    return replace(
        decision,
        status=["active" if each in BY_THE_BEST else each for each in decision.status],
        claim={**claim, "kind": "none", "delta": None, "raised_by": [], "assumptions": []},
        stop=False,
        reason="running",
    )


def _add_parts(connection: Connection, round_id: int, comparisons: Sequence[NewComparison]) -> None:
    """Insert the judgments, outputs and metrics of comparisons."""
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

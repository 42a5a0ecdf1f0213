"""Counts of rounds and candidates, computed by the database from a round's rows when they are stored.

A leaderboard of ten million comparisons cannot count them for every query. So each round updates its
candidates' stats and stores its own counts with its decision, in the same transaction. All of them become
visible together, and `storage.admin.check.problems` recounts them.
"""

import datetime as dt
from collections.abc import Sequence
from operator import attrgetter

from sqlalchemy import Connection

from winnow.storage.engine.raw_sql import insert_row, run
from winnow.storage.errors import ConflictingRecord
from winnow.storage.models import Comparison, Decision, table_of
from winnow.storage.records.candidates.states import Known, add_changes
from winnow.storage.records.record_types import NewComparison, NewDecision
from winnow.storage.records.rounds import OF_COMPARISONS, round_digest

SIDES = """
    SELECT round_id, candidate_a_id AS candidate_id, generation_a_id AS generation_id, outcome,
        reason, detail, no_answer, 1 AS counted
    FROM comparisons
    UNION ALL
    SELECT round_id, candidate_b_id, generation_b_id, 1 - outcome, reason, detail, no_answer, 1
    FROM comparisons WHERE candidate_b_id IS NOT NULL
    UNION ALL
    SELECT x.round_id, x.candidate_a_id, o.generation_id, NULL, x.reason, x.detail, o.no_answer, 0
    FROM outputs o JOIN comparisons x ON x.id = o.comparison_id
    WHERE x.generation_a_id IS NULL OR x.generation_a_id <> o.generation_id
"""
"""Comparisons from the side of each candidate: one row for a score, two for a duel. A comparison of several
outputs has one more row for each output after the first, in which only the output counts."""

_INPUT, _OUTPUT = (f"CAST(g.{name}_tokens AS DOUBLE PRECISION)" for name in ("input", "output"))

PRODUCTS = {
    "input_squares": f"{_INPUT} * {_INPUT}",
    "output_squares": f"{_OUTPUT} * {_OUTPUT}",
    "second_squares": "g.seconds * g.seconds",
    "input_by_output": f"{_INPUT} * {_OUTPUT}",
    "input_by_seconds": f"{_INPUT} * g.seconds",
    "output_by_seconds": f"{_OUTPUT} * g.seconds",
}
"""Products of a generation `g` that give the variance of any weighted sum of its tokens and seconds."""

SUMMED = {**PRODUCTS, "latency": "g.latency", "latency_squares": "g.latency * g.latency"}
"""These products, and terms for the mean and variance of latencies, if engines reported them."""

COUNTED = f"""
    SELECT s.candidate_id, coalesce(s.reason, ''), sum(s.counted), coalesce(sum(s.outcome), 0),
        min(s.outcome), max(s.outcome), count(g.id), sum(CASE WHEN s.no_answer THEN 1 ELSE 0 END),
        sum(CASE WHEN g.finish_reason = 'length' THEN 1 ELSE 0 END),
        coalesce(sum(g.input_tokens), 0), coalesce(sum(g.output_tokens), 0), coalesce(sum(g.seconds), 0),
        {", ".join(f"coalesce(sum({each}), 0)" for each in SUMMED.values())}, count(g.latency), min(s.detail)
    FROM ({SIDES}) s LEFT JOIN generations g ON g.id = s.generation_id
    WHERE {{where}}
    GROUP BY s.candidate_id, coalesce(s.reason, '')
"""
"""Sums over the sides `s` that satisfy a condition, by candidate and reason, with the columns of `STATS`."""

STATS = (
    "candidate_id", "reason", "comparisons", "outcome_sum", "lowest", "highest", "texts", "no_answer",
    "truncated", "input_tokens", "output_tokens", "seconds", *SUMMED, "timed", "detail",
)  # fmt: skip

_ADD_ROUND = f"""
    INSERT INTO candidate_stats ({", ".join(STATS)}) {COUNTED.format(where="s.round_id = ?")}
    ON CONFLICT (candidate_id, reason) DO UPDATE SET
        comparisons = candidate_stats.comparisons + excluded.comparisons,
        outcome_sum = candidate_stats.outcome_sum + excluded.outcome_sum,
        lowest = CASE WHEN excluded.lowest < candidate_stats.lowest
            THEN excluded.lowest ELSE candidate_stats.lowest END,
        highest = CASE WHEN excluded.highest > candidate_stats.highest
            THEN excluded.highest ELSE candidate_stats.highest END,
        texts = candidate_stats.texts + excluded.texts,
        no_answer = candidate_stats.no_answer + excluded.no_answer,
        truncated = candidate_stats.truncated + excluded.truncated,
        input_tokens = candidate_stats.input_tokens + excluded.input_tokens,
        output_tokens = candidate_stats.output_tokens + excluded.output_tokens,
        seconds = candidate_stats.seconds + excluded.seconds,
        {", ".join(f"{name} = candidate_stats.{name} + excluded.{name}" for name in SUMMED)},
        timed = candidate_stats.timed + excluded.timed,
        detail = coalesce(candidate_stats.detail, excluded.detail)
"""


def add_to_stats(connection: Connection, round_id: int) -> None:
    """Add a round's comparisons, just stored, to the stats of its candidates."""
    run(connection, _ADD_ROUND, (round_id,))


def decide(
    connection: Connection,
    round_id: int,
    comparisons: Sequence[NewComparison],
    decision: NewDecision,
    now: dt.datetime,
    before: Known | None,
) -> Known:
    """Store the decision after a round, with the sums over the round.

    Returns:
        The current values of each candidate; `before` is the same after the previous round, see
        `add_changes`.
    """
    known, written = add_changes(connection, round_id, decision, before)
    ((position, *paid),) = run(connection, _POSITION_AND_PAID, (decision.best_candidate_id, round_id))
    first = {each.candidate_a_id for each in comparisons}
    second = {each.candidate_b_id for each in comparisons if each.candidate_b_id is not None}
    differences = decision.differences
    values = {
        "round_id": round_id,
        "best_candidate_id": decision.best_candidate_id,
        "against_candidate_id": differences and known.candidate_ids[differences["against"]],
        "differences_delta": differences and differences["delta"],
        "has_ranking": decision.ranking is not None,
        "has_bets": decision.bets is not None,
        "changes": sum(map(len, written.values())),
        "claim": decision.claim,
        "stop": decision.stop,
        "reason": decision.reason,
        "decided_at": now,
        **_of_the_best(decision, position),
        "comparisons": len(comparisons),
        "answered": sum(each.is_answered for each in comparisons),
        "scored": sum(each.outcome is not None for each in comparisons),
        "candidates": len(first | second),
        **dict(zip(PAID, paid, strict=True)),
    }
    values["digest"] = round_digest(
        connection, round_id, values, written | _written(connection, round_id, comparisons)
    )
    insert_row(connection, table_of(Decision), tuple(values), tuple(values.values()))
    return known


def _written(
    connection: Connection, round_id: int, comparisons: Sequence[NewComparison]
) -> dict[str, list[tuple[object, ...]]]:
    """Rows of a round's comparisons as just written, and an empty list per dependent table without rows."""
    ids = run(connection, "SELECT id FROM comparisons WHERE round_id = ? ORDER BY position", (round_id,))
    in_order = sorted(comparisons, key=attrgetter("position"))
    rows = [(id_, round_id, *_fields(each)) for (id_,), each in zip(ids, in_order, strict=True)]
    lacking = [name for name in OF_COMPARISONS if not any(getattr(each, name) for each in comparisons)]
    return {"comparisons": rows, **{name: [] for name in lacking}}


_fields = attrgetter(
    *(each.name for each in table_of(Comparison).columns if each.name not in ("id", "round_id"))
)

PAID = ("generations", "input_tokens", "output_tokens", "seconds")
"""Columns of a decision on the outputs that its round paid for."""

_POSITION_AND_PAID = """
    SELECT (SELECT position FROM candidates WHERE id = ?), count(*), coalesce(sum(input_tokens), 0),
        coalesce(sum(output_tokens), 0), coalesce(sum(seconds), 0.0)
    FROM generations WHERE round_id = ?
"""


def _of_the_best(decision: NewDecision, position: int | None) -> dict[str, float | None]:
    if decision.best_candidate_id is None:
        return {"best_estimate": None, "best_lower": None, "best_upper": None}
    if position is None:
        raise ConflictingRecord(f"the best candidate {decision.best_candidate_id} is none of any campaign")
    return {
        "best_estimate": decision.estimates[position],
        "best_lower": decision.lower[position],
        "best_upper": decision.upper[position],
    }

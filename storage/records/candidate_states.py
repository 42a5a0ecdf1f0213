"""Per-candidate values of decisions and counts of comparisons.

They are stored with each observed round. A decision has up to a dozen values for every candidate, and a round
changes a few of them. Storing all values after each round took nine tenths of a database with ten thousand
candidates, so a round stores only the rows that differ from the previous ones. Rounds are observed in the
order of their ids, so a decision's values for a candidate are the candidate's last row up to that decision's
round. An index finds it, for any number of rounds.

A leaderboard of ten million comparisons cannot count them for every query. So the database adds each round's
rows to its candidates' stats, and stores the round's own counts with its decision, in the same transaction.
All of them become visible together, and `storage.admin.check.problems` counts them again.
"""

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter, ne
from typing import NamedTuple

from sqlalchemy import Connection

from winnow.storage.engine.raw_sql import DriverRow, insert_row, insert_rows, run
from winnow.storage.errors import ConflictingRecord
from winnow.storage.json_types import JsonObject
from winnow.storage.models import Base, Bet, Comparison, Decision, Difference, Ranking, Standing, table_of
from winnow.storage.records.record_types import NewComparison, NewDecision
from winnow.storage.records.rounds import OF_COMPARISONS, round_digest

Column = Sequence[object]
"""Values of one column, by candidate position; None if a candidate has no row."""


class Part(NamedTuple):
    """A table of decisions' values for candidates, with its columns."""

    model: type[Base]
    columns: tuple[str, ...]
    """All columns except the key."""


KEY = ("candidate_id", "round_id")
INTERVAL = ("estimate", "lower", "upper")
STANDINGS = Part(Standing, (*INTERVAL, "status"))
RANKINGS = Part(Ranking, ("score",))
DIFFERENCES = Part(Difference, INTERVAL)
BETS = Part(Bet, ("wealth", "level", "out_in_round", "out_at"))
PARTS = (STANDINGS, RANKINGS, DIFFERENCES, BETS)

DIFFERENCE_LISTS = ("estimates", "lower", "upper")
BET_LISTS = ("wealths", "levels", "out_in_round", "out_at")
"""Names of these columns' lists in a decision, by candidate position."""

_TOLD_LAST = """
    SELECT c.campaign_id, (
        SELECT r.id FROM rounds r JOIN decisions d ON d.round_id = r.id
        WHERE r.campaign_id = c.campaign_id ORDER BY r.number DESC LIMIT 1)
    FROM rounds c WHERE c.id = ?
"""

_CANDIDATES = "SELECT id FROM candidates WHERE campaign_id = ? ORDER BY position"

_KNOWN_AFTER = """
    SELECT {columns} FROM candidates k
    LEFT JOIN {last_row} WHERE k.campaign_id = ? ORDER BY k.position
"""

_LAST_ROW = {
    "sqlite": """{table} x ON x.candidate_id = k.id AND x.round_id = (
        SELECT max(round_id) FROM {table} WHERE candidate_id = k.id AND round_id <= ?)""",
    # PostgreSQL would turn SQLite's form into a join that reads the whole table.
    "postgresql": """LATERAL (SELECT * FROM {table} WHERE candidate_id = k.id AND round_id <= ?
        ORDER BY round_id DESC LIMIT 1) x ON TRUE""",
}


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Values of a campaign's decisions up to a round, by candidate position."""

    round_id: int | None
    """Last round included; None before the first observed round."""
    candidate_ids: Sequence[int]
    columns: Mapping[Part, Sequence[Column]]


def known_after(
    connection: Connection, campaign_id: int, round_id: int | None, parts: Iterable[Part] = PARTS
) -> Known:
    """Values after a round of a campaign was observed; all None if `round_id` is None."""
    ids = [id_ for (id_,) in run(connection, _CANDIDATES, (campaign_id,))]
    columns = {part: _columns_of(connection, part, campaign_id, round_id or 0) for part in parts}
    return Known(round_id, ids, columns)


def add_changes(
    connection: Connection, round_id: int, decision: NewDecision, before: Known | None
) -> tuple[Known, dict[str, list[DriverRow]]]:
    """Store those values of a decision that differ from the previous decision.

    Args:
        connection: In the transaction that stores the round.
        round_id: The observed round.
        decision: The decision after this round.
        before: The values returned for the previous round. The values are read from the database if this is
            None, belongs to another round, or has fewer candidates than the decision.

    Returns:
        The current values, and the stored rows, by table and in key order.

    Raises:
        ConflictingRecord: If a later round was already observed, or the decision has more candidates than the
            campaign.
    """
    ((campaign_id, last),) = run(connection, _TOLD_LAST, (round_id,))
    n_candidates = len(decision.status)
    if before is None or before.round_id != last or len(before.candidate_ids) < n_candidates:
        before = known_after(connection, campaign_id, last)
    if last is not None and last >= round_id:
        raise ConflictingRecord(f"round {round_id} was observed after round {last}, out of order")
    if len(before.candidate_ids) < n_candidates:
        raise ConflictingRecord(
            f"a decision has {n_candidates} candidates, but its campaign has {len(before.candidate_ids)}"
        )
    known = dict(before.columns)
    stored: dict[str, list[DriverRow]] = {part.model.__tablename__: [] for part in PARTS}
    for part, said in _columns_by_part(decision).items():
        changed = _changed_positions(said, known[part])
        if changed:
            rows = [(before.candidate_ids[at], round_id, *(values[at] for values in said)) for at in changed]
            stored[part.model.__tablename__] = sorted(rows, key=itemgetter(0))
            insert_rows(connection, table_of(part.model), (*KEY, *part.columns), rows)
        known[part] = [
            [*values, *last[len(values) :]] for values, last in zip(said, known[part], strict=True)
        ]
    return Known(round_id, before.candidate_ids, known), stored


def said_of_candidates(
    connection: Connection, campaign_id: int, decision: Decision, against: int | None
) -> tuple[JsonObject, int]:
    """Values of a stored decision for each candidate.

    The keys are the fields of a `DecisionRecord`.

    Args:
        connection: Reads.
        campaign_id: The campaign of the decision.
        decision: Any decision of the campaign.
        against: Position of the candidate that the others are compared with; None without differences.

    Returns:
        The fields, and the number of candidates added to the campaign after the decision.
    """
    spoken_of = {RANKINGS: decision.has_ranking, DIFFERENCES: against is not None, BETS: decision.has_bets}
    parts = [part for part in PARTS if spoken_of.get(part, True)]
    known = known_after(connection, campaign_id, decision.round_id, parts)
    estimates, lower, upper, status = known.columns[STANDINGS]
    n_joined = status.count(None)
    said: JsonObject = {
        "estimates": estimates,
        "lower": lower,
        "upper": upper,
        "status": ["active" if each is None else each for each in status],
    }
    if decision.has_ranking:
        (said["ranking"],) = known.columns[RANKINGS]
    if decision.has_bets:
        said["bets"] = dict(zip(BET_LISTS, known.columns[BETS], strict=True))
    if against is not None:
        told = (values[: len(status) - n_joined] for values in known.columns[DIFFERENCES])
        ends = zip(DIFFERENCE_LISTS, told, strict=True)
        said["differences"] = {"against": against, "delta": decision.differences_delta, **dict(ends)}
    return said, n_joined


def _columns_by_part(decision: NewDecision) -> dict[Part, Sequence[Column]]:
    """Columns of each part that a decision contains."""
    said: dict[Part, Sequence[Column]] = {
        STANDINGS: (decision.estimates, decision.lower, decision.upper, decision.status)
    }
    if decision.ranking is not None:
        said[RANKINGS] = (decision.ranking,)
    if decision.differences is not None:
        said[DIFFERENCES] = [decision.differences[name] for name in DIFFERENCE_LISTS]
    if decision.bets is not None:
        said[BETS] = [decision.bets[name] for name in BET_LISTS]
    return said


def _changed_positions(said: Sequence[Column], known: Sequence[Column]) -> list[int]:
    """Positions of the candidates with new values; `known` can have more candidates."""
    found: set[int] = set()
    for new, old in zip(said, known, strict=True):
        found.update(at for at, differs in enumerate(map(ne, new, old)) if differs)
    return sorted(found)


def _columns_of(connection: Connection, part: Part, campaign_id: int, round_id: int) -> list[Column]:
    names = ", ".join(f"x.{name}" for name in part.columns)
    last_row = _LAST_ROW[connection.dialect.name].format(table=part.model.__tablename__)
    query = _KNOWN_AFTER.format(columns=names, last_row=last_row)
    return [list(values) for values in zip(*run(connection, query, (round_id, campaign_id)), strict=True)]


IS_LAST = """(x.outcome IS NOT NULL OR x.candidate_b_id IS NOT NULL OR NOT EXISTS (
        SELECT 1 FROM comparisons later WHERE later.candidate_a_id = x.candidate_a_id
        AND later.example_id = x.example_id AND later.candidate_b_id IS NULL AND later.id > x.id))"""
"""Whether a comparison `x` is the last one of its pair: one without an outcome can have been asked again."""

SIDES = f"""
    SELECT round_id, candidate_a_id AS candidate_id, generation_a_id AS generation_id, outcome,
        reason, detail, no_answer, 1 AS counted
    FROM comparisons x WHERE {IS_LAST}
    UNION ALL
    SELECT round_id, candidate_b_id, generation_b_id, 1 - outcome, reason, detail, no_answer, 1
    FROM comparisons WHERE candidate_b_id IS NOT NULL
    UNION ALL
    SELECT x.round_id, x.candidate_a_id, o.generation_id, NULL, x.reason, x.detail, o.no_answer, 0
    FROM outputs o JOIN comparisons x ON x.id = o.comparison_id
    WHERE (x.generation_a_id IS NULL OR x.generation_a_id <> o.generation_id) AND {IS_LAST}
"""
"""Comparisons from the side of each candidate.
A score has one row, a duel has two. A comparison of several outputs has one more row for each output after
the first, which counts only as an output. A comparison that a retry replaced has none."""

_INPUT, _OUTPUT = (f"CAST(g.{name}_tokens AS DOUBLE PRECISION)" for name in ("input", "output"))

PRODUCTS = {
    "input_squares": f"{_INPUT} * {_INPUT}",
    "output_squares": f"{_OUTPUT} * {_OUTPUT}",
    "second_squares": "g.seconds * g.seconds",
    "input_by_output": f"{_INPUT} * {_OUTPUT}",
    "input_by_seconds": f"{_INPUT} * g.seconds",
    "output_by_seconds": f"{_OUTPUT} * g.seconds",
}
"""Products of a generation `g` for variances of its tokens and seconds.
They determine the variance of any weighted sum of these."""

SUMMED = {**PRODUCTS, "latency": "g.latency", "latency_squares": "g.latency * g.latency"}
"""`PRODUCTS`, and terms for the mean and variance of latencies.
Engines may not report latencies."""

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
"""Sums over the sides `s` that satisfy a condition.
They are by candidate and reason, in the columns of `STATS`."""

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


_DELETE = "DELETE FROM candidate_stats WHERE candidate_id = ?"
_COUNT_AGAIN = f"""
    INSERT INTO candidate_stats ({", ".join(STATS)}) {COUNTED.format(where="s.candidate_id = ?")}
"""


def add_to_stats(connection: Connection, round_id: int, recounted: Iterable[int] = ()) -> None:
    """Add a round's comparisons to the stats of its candidates.

    The comparisons were just stored. For a retry round, whose comparisons replace earlier ones, the stats of
    the candidates `recounted` are computed again.
    """
    if not recounted:
        run(connection, _ADD_ROUND, (round_id,))
    for candidate_id in recounted:
        run(connection, _DELETE, (candidate_id,))
        run(connection, _COUNT_AGAIN, (candidate_id,))


def decide(
    connection: Connection,
    round_id: int,
    comparisons: Sequence[NewComparison],
    decision: NewDecision,
    now: dt.datetime,
    before: Known | None,
    *,
    is_retry: bool = False,
) -> Known:
    """Store the decision after a round, with the sums over the round; see `Decision.comparisons` for retries.

    Returns:
        The current values of each candidate; `before` has those after the previous round, see
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
        "comparisons": 0 if is_retry else len(comparisons),
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
    """Rows of a round's comparisons as just written, by table.

    A dependent table without rows has an empty list.
    """
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
        raise ConflictingRecord(
            f"the best candidate {decision.best_candidate_id} does not belong to any campaign"
        )
    return {
        "best_estimate": decision.estimates[position],
        "best_lower": decision.lower[position],
        "best_upper": decision.upper[position],
    }

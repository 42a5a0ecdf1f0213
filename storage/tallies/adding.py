"""Adding a round's duels, the texts that it paid for and those that it took from others to the tallies.

Called in the transaction that stores the round, before its pins go: all of it is there, or nothing.
"""

from collections.abc import Sequence
from functools import cache

from sqlalchemy import Connection

from winnow.storage.engine.raw_sql import run
from winnow.storage.records.values import NewComparison
from winnow.storage.tallies.counting import (
    BESIDE,
    DUELS,
    METRICS,
    REPLIES,
    SECOND,
    TOTALS,
    owners,
    paid,
    taken,
)

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
"""What each tally has one row of."""


def add_to_tallies(connection: Connection, round_id: int, comparisons: Sequence[NewComparison]) -> None:
    """Add a round, whose comparisons with their judgments and outputs have just been stored."""
    parts = _parts(comparisons)
    run(connection, _paid(parts), (round_id, round_id))
    if SECOND in parts:
        run(connection, _DUELS, (round_id,))
    if any(each.metrics for each in comparisons):
        run(connection, _METRICS, (round_id,))
    # What others paid for is pinned until now.
    if run(connection, "SELECT 1 FROM pins WHERE round_id = ? LIMIT 1", (round_id,)):
        run(connection, _taken(parts), (round_id,))
        run(connection, _remembered(parts), (round_id,))


def add_to_totals(connection: Connection, round_id: int) -> None:
    """Add what the decision on a round, which has just been stored, says of it to its campaign's totals."""
    run(connection, _TOTALS, (round_id,))


def _parts(comparisons: Sequence[NewComparison]) -> tuple[str, ...]:
    """What uses texts beside the first sides of these comparisons."""
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
    """A text that the campaign took before counts no second time."""
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

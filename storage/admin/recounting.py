"""Recount all sums over rounds from the rows of every observed round, and report differences."""

from math import isclose
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from winnow.storage.records.candidates.stats import COUNTED, SIDES, STATS
from winnow.storage.records.tallies import (
    DUEL_SUMS,
    DUELS,
    KEYS,
    METRIC_SUMS,
    METRICS,
    PAID_SUMS,
    ROUND_SUMS,
    TEXT_SUMS,
    TOTALS,
    USED,
    owners,
    paid,
    taken,
)

Key = tuple[object, ...]
Values = tuple[Any, ...]

SAME = 1e-9
"""Relative tolerance for sums of fractions, which depend on the order of addition."""

IS_TOLD = "EXISTS (SELECT 1 FROM decisions d WHERE d.round_id = r.id)"

_FIRST_USES = f"""
    SELECT round_id, generation_id, position, judge FROM (
        SELECT o.*, row_number() OVER (PARTITION BY r.campaign_id, o.generation_id ORDER BY r.number) AS use
        FROM ({owners(USED)}) o JOIN rounds r ON r.id = o.round_id
    ) uses WHERE use = 1
"""
_STORED_REUSE = f"""
    SELECT s.campaign_id, s.role, s.name, coalesce(c.id, 0), {", ".join(f"sum({each})" for each in TEXT_SUMS)}
    FROM reuse_stats s LEFT JOIN campaigns c ON c.id = s.taken_from_id
    GROUP BY s.campaign_id, s.role, s.name, coalesce(c.id, 0)
"""
_STRAY_DETAILS = f"""
    SELECT candidate_id, reason, detail FROM candidate_stats WHERE detail IS NOT NULL
    EXCEPT SELECT candidate_id, coalesce(reason, ''), detail FROM ({SIDES}) s
"""
_REMEMBERED = "SELECT campaign_id, count(*) FROM reused_texts GROUP BY campaign_id"
_REMEMBERED_IN_STATS = "SELECT campaign_id, sum(generations) FROM reuse_stats GROUP BY campaign_id"


def wrong_tallies(session: Session) -> list[str]:
    """A sentence for each candidate, pair and campaign whose tallies differ from the sums of its rows."""
    stats = _differing(session, 2, _stored(STATS[:-1], "candidate_stats"), COUNTED.format(where="1 = 1"))
    stats |= set(_by_key(session, 2, _STRAY_DETAILS))
    duels = (*KEYS["duel_stats"], *DUEL_SUMS)
    costs = (*KEYS["cost_stats"], *PAID_SUMS)
    totals = (*KEYS["campaign_stats"], *ROUND_SUMS)
    metrics = (*KEYS["metric_stats"], *METRIC_SUMS)
    taken_from = taken(_FIRST_USES, "paid.campaign_id IS NULL OR paid.campaign_id <> r.campaign_id")
    told = (
        ("the stats of candidate {} differ from the sums of its comparisons", _first(stats)),
        (
            "the totals of campaign {} differ from the sums of its decisions",
            _differing(session, 1, _stored(totals, "campaign_stats"), TOTALS.format(where="1 = 1")),
        ),
        (
            "the tally of the metrics of candidate {} differs from the sums of its comparisons",
            _first(_differing(session, 2, _stored(metrics, "metric_stats"), METRICS.format(where="1 = 1"))),
        ),
        (
            "the tally of the duels of candidates {} and {} differs from their sums",
            _differing(session, 2, _stored(duels, "duel_stats"), DUELS.format(where="1 = 1")),
        ),
        (
            "the paid outputs of campaign {} differ from the sums of its rounds",
            _first(_differing(session, 4, _stored(costs, "cost_stats"), paid(USED, where=IS_TOLD))),
        ),
        (
            "the reused outputs of campaign {} differ from the sums of its rounds",
            _first(
                _differing(session, 4, _STORED_REUSE, taken_from)
                | _differing(session, 1, _REMEMBERED, _REMEMBERED_IN_STATS)
            ),
        ),
    )
    return [sentence.format(*key) for sentence, keys in told for key in sorted(keys, key=str)]


def _first(keys: set[Key]) -> set[Key]:
    return {key[:1] for key in keys}


def _stored(columns: tuple[str, ...], table: str) -> str:
    return f"SELECT {', '.join(columns)} FROM {table}"


def _differing(session: Session, n_keys: int, stored: str, counted: str) -> set[Key]:
    """Keys, of `n_keys` columns, under which two statements have different rows."""
    kept, found = (_by_key(session, n_keys, statement) for statement in (stored, counted))
    return {key for key in kept | found if not _alike(kept.get(key), found.get(key))}


def _by_key(session: Session, n_keys: int, statement: str) -> dict[Key, Values]:
    # SQLAlchemy would treat a colon as a parameter.
    return {tuple(row[:n_keys]): tuple(row[n_keys:]) for row in session.execute(text(statement))}


def _alike(stored: Values | None, counted: Values | None) -> bool:
    if stored is None or counted is None:
        return False
    return all(map(_is_alike, stored, counted))


def _is_alike(stored: Any, counted: Any) -> bool:  # noqa: ANN401 -- a number of either driver, or None
    if stored is None or counted is None or isinstance(stored, int):
        return bool(stored == counted)
    return isclose(float(stored), float(counted), rel_tol=SAME, abs_tol=SAME)

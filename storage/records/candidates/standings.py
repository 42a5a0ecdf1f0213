"""Decisions' values for each candidate, stored where they changed: a row holds until its next one.

A decision has up to a dozen values of every candidate, of which a round changes a few. Stored whole after
each round, those of ten thousand candidates were nine tenths of a database; so a round stores only the rows
that differ from what was known before it. As rounds are told in the order of their ids, what a decision said
of a candidate is the candidate's last row up to that decision's round, found in an index however many rounds
there were.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter, ne
from typing import NamedTuple

from sqlalchemy import Connection

from winnow.storage.engine.raw_sql import DriverRow, insert_rows, run
from winnow.storage.errors import ConflictingRecord
from winnow.storage.json_types import JsonObject
from winnow.storage.models import Base, Bet, Decision, Difference, Ranking, Standing, table_of
from winnow.storage.records.values import NewDecision

Column = Sequence[object]
"""The values of one column, by the positions of the candidates; None where a candidate has no row."""


class Part(NamedTuple):
    """One table of what is known of candidates."""

    model: type[Base]
    columns: tuple[str, ...]
    """All but its key."""


KEY = ("candidate_id", "round_id")
INTERVAL = ("estimate", "lower", "upper")
STANDINGS = Part(Standing, (*INTERVAL, "status"))
RANKINGS = Part(Ranking, ("score",))
DIFFERENCES = Part(Difference, INTERVAL)
BETS = Part(Bet, ("wealth", "level", "out_in_round", "out_at"))
PARTS = (STANDINGS, RANKINGS, DIFFERENCES, BETS)

DIFFERENCE_LISTS = ("estimates", "lower", "upper")
BET_LISTS = ("wealths", "levels", "out_in_round", "out_at")
"""Names of the lists of those columns in a decision, by candidate position."""

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
    # Of the other form the planner makes a join that reads the whole table.
    "postgresql": """LATERAL (SELECT * FROM {table} WHERE candidate_id = k.id AND round_id <= ?
        ORDER BY round_id DESC LIMIT 1) x ON TRUE""",
}


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """The values for the candidates in a campaign's decisions up to a round, by their positions."""

    round_id: int | None
    """None before any round was told."""
    candidate_ids: Sequence[int]
    columns: Mapping[Part, Sequence[Column]]


def known_after(
    connection: Connection, campaign_id: int, round_id: int | None, parts: Iterable[Part] = PARTS
) -> Known:
    """The values known once a round of a campaign had been told; none are known where the round is None."""
    ids = [id_ for (id_,) in run(connection, _CANDIDATES, (campaign_id,))]
    columns = {part: _columns_of(connection, part, campaign_id, round_id or 0) for part in parts}
    return Known(round_id, ids, columns)


def add_changes(
    connection: Connection, round_id: int, decision: NewDecision, before: Known | None
) -> tuple[Known, dict[str, list[DriverRow]]]:
    """Store those values of a decision that differ from the decision before it.

    Args:
        connection: In the transaction that stores the round.
        round_id: The round that was told.
        decision: The decision after this round.
        before: The values that this returned for the round before; where it is None, not of that round, or
            knows fewer candidates than the decision, what was known is read.

    Returns:
        The values known now, and the rows that were stored, by table and in the order of their keys.

    Raises:
        ConflictingRecord: If a later round was told before, or it speaks of more candidates than there are.
    """
    ((campaign_id, last),) = run(connection, _TOLD_LAST, (round_id,))
    n_candidates = len(decision.status)
    if before is None or before.round_id != last or len(before.candidate_ids) < n_candidates:
        before = known_after(connection, campaign_id, last)
    if last is not None and last >= round_id:
        raise ConflictingRecord(f"round {last} of the decisions was told before round {round_id}")
    if len(before.candidate_ids) < n_candidates:
        raise ConflictingRecord(
            f"a decision speaks of {n_candidates} candidates, and its campaign has "
            f"{len(before.candidate_ids)}"
        )
    known = dict(before.columns)
    stored: dict[str, list[DriverRow]] = {part.model.__tablename__: [] for part in PARTS}
    for part, said in _said_by(decision).items():
        changed = _changed(said, known[part])
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
    """The values of a stored decision for each candidate, by the fields of a `DecisionRecord`.

    Args:
        connection: Reads.
        campaign_id: The campaign of the decision.
        decision: Any of the campaign's.
        against: Position of the candidate that it compares the others with; None where it does not.

    Returns:
        The fields, and how many candidates of the campaign joined after it.
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


def _said_by(decision: NewDecision) -> dict[Part, Sequence[Column]]:
    """The columns of each part that a decision speaks of."""
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


def _changed(said: Sequence[Column], known: Sequence[Column]) -> list[int]:
    """Positions of the candidates of which anything is said that was not known; `known` may have more."""
    found: set[int] = set()
    for new, old in zip(said, known, strict=True):
        found.update(at for at, differs in enumerate(map(ne, new, old)) if differs)
    return sorted(found)


def _columns_of(connection: Connection, part: Part, campaign_id: int, round_id: int) -> list[Column]:
    names = ", ".join(f"x.{name}" for name in part.columns)
    last_row = _LAST_ROW[connection.dialect.name].format(table=part.model.__tablename__)
    query = _KNOWN_AFTER.format(columns=names, last_row=last_row)
    return [list(values) for values in zip(*run(connection, query, (round_id, campaign_id)), strict=True)]

"""Values of decisions per candidate, stored when they change: a row is valid until the next one.

A decision has up to a dozen values for every candidate, and a round changes a few of them. Complete values
after each round were nine tenths of a database with ten thousand candidates, so a round stores only the rows
that differ from the previous ones. Rounds are observed in the order of their ids, so a decision's values for
a candidate are the candidate's last row up to that decision's round. An index finds it, for any number of
rounds.
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
from winnow.storage.records.record_types import NewDecision

Column = Sequence[object]
"""Values of one column, by candidate position; None if a candidate has no row."""


class Part(NamedTuple):
    """A table of decisions' values for candidates."""

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
    # The planner turns the other form into a join that reads the whole table.
    "postgresql": """LATERAL (SELECT * FROM {table} WHERE candidate_id = k.id AND round_id <= ?
        ORDER BY round_id DESC LIMIT 1) x ON TRUE""",
}


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """Values for candidates in a campaign's decisions up to a round, by candidate position."""

    round_id: int | None
    """None before the first observed round."""
    candidate_ids: Sequence[int]
    columns: Mapping[Part, Sequence[Column]]


def known_after(
    connection: Connection, campaign_id: int, round_id: int | None, parts: Iterable[Part] = PARTS
) -> Known:
    """Values after a round of a campaign was observed; all None if the round is None."""
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
        before: The values returned for the previous round. They are read if this is None, is not of that
            round, or has fewer candidates than the decision.

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
    """Values of a stored decision for each candidate, by the fields of a `DecisionRecord`.

    Args:
        connection: Reads.
        campaign_id: The campaign of the decision.
        decision: Any of the campaign's.
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


def _said_by(decision: NewDecision) -> dict[Part, Sequence[Column]]:
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


def _changed(said: Sequence[Column], known: Sequence[Column]) -> list[int]:
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

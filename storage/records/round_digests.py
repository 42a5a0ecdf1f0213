"""The digest of a round: over its plan, its outcomes, its decision and what was known then, and chained.

It is stored with the decision, in the round's transaction, and holds the digest of the round before. So a
round that is changed, lost or put in another's place is found. Rounds that were stored before there were
digests have none, and the first one after them holds none.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sqlalchemy import Connection, Table

from winnow.storage.engine.raw_sql import run
from winnow.storage.engine.row_digests import digest, values_of
from winnow.storage.models import Base

_TABLES = Base.metadata.tables

OF_COMPARISONS = {"outputs": "number", "metrics": "name", "judgments": "number"}
"""Tables whose rows belong to a comparison, and the column that orders them within it."""

OF_CANDIDATES = ("standings", "rankings", "differences", "bets")
"""Tables of what is known of candidates after a round, where that has changed."""


Rows = Sequence[Sequence[object]]
NOTHING: Mapping[str, Rows] = MappingProxyType({})


def round_digest(
    connection: Connection,
    round_id: int,
    decision: Mapping[str, object],
    written: Mapping[str, Rows] = NOTHING,
) -> str:
    """The digest of a round whose rows are stored, but perhaps for its decision.

    Args:
        connection: Reads the rows.
        round_id: The round.
        decision: The values of its row of `decisions`.
        written: The rows of some tables in the order of their keys, as they were just written with the values
            of all columns. To read them back would take longer than the digest. The others are read.
    """
    content: list[object] = [_before(connection, round_id)]
    for table, condition, order in _READ:
        columns = _COLUMNS[table.name]
        rows = written.get(table.name)
        if rows is None:
            names = ", ".join(f't."{each}"' for each in columns)
            query = f"SELECT {names} FROM {table.name} t WHERE {condition} ORDER BY {order}"
            rows = run(connection, query, (round_id,))
        content.append(values_of(table, columns, rows))
    table = _TABLES["decisions"]
    columns = decision_columns(table)
    content.append(values_of(table, columns, [[decision[name] for name in columns]]))
    return digest(content)


def decision_columns(table: Table) -> list[str]:
    """Names of the columns of `decisions` that the digest of a round is over."""
    return [each.name for each in table.columns if each.name not in ("id", "digest")]


def _before(connection: Connection, round_id: int) -> str | None:
    """The digest of the round that was told before; None where it has none, or there is no such round."""
    rows = run(connection, _DIGEST_BEFORE, (round_id,))
    found: str | None = rows[0][0] if rows else None
    return found


_DIGEST_BEFORE = """
    SELECT d.digest FROM decisions d JOIN rounds r ON r.id = d.round_id
    JOIN rounds this ON this.campaign_id = r.campaign_id
    WHERE this.id = ? AND r.number < this.number ORDER BY r.number DESC LIMIT 1
"""

_OF_ROUND = "t.comparison_id IN (SELECT id FROM comparisons WHERE round_id = ?)"
_READ = (
    (_TABLES["rounds"], "t.id = ?", "t.id"),
    (_TABLES["comparisons"], "t.round_id = ?", "t.position"),
    *((_TABLES[name], _OF_ROUND, f"t.comparison_id, t.{within}") for name, within in OF_COMPARISONS.items()),
    *((_TABLES[name], "t.round_id = ?", "t.candidate_id") for name in OF_CANDIDATES),
)
"""The tables of a round's rows: which rows are its own, and their order."""

_COLUMNS = {table.name: [each.name for each in table.columns] for table, _, _ in _READ}

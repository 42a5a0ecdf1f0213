"""Digest of a round: over its plan, outcomes, decision and candidates' values, chained.

It is stored with the decision, in the round's transaction, and includes the digest of the previous round. So
changed, lost or reordered rounds are detected. Rounds stored before digests were introduced have none, and
the first one after them includes none.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sqlalchemy import Connection, Table

from winnow.storage.engine.raw_sql import run
from winnow.storage.engine.row_digests import COLUMN, digest, values_of
from winnow.storage.models import Base

_TABLES = Base.metadata.tables

OF_COMPARISONS = {"outputs": "number", "metrics": "name", "judgments": "number"}
"""Tables whose rows belong to a comparison, with the column that orders them within it."""

OF_CANDIDATES = ("standings", "rankings", "differences", "bets")
"""Tables of the changed values of candidates after a round."""


Rows = Sequence[Sequence[object]]
NOTHING: Mapping[str, Rows] = MappingProxyType({})


def round_digest(
    connection: Connection,
    round_id: int,
    decision: Mapping[str, object],
    written: Mapping[str, Rows] = NOTHING,
) -> str:
    """Compute the digest of a round whose rows are stored, possibly except its decision.

    Args:
        connection: Reads the rows.
        round_id: The round.
        decision: The values of its row of `decisions`.
        written: Rows of some tables in key order, just written, with the values of all columns. Reading them
            back would take longer than the digest. The rows of other tables are read.
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
    """Names of the columns of `decisions` that the digest of a round covers."""
    return [each.name for each in table.columns if each.name not in ("id", "digest")]


def _before(connection: Connection, round_id: int) -> str | None:
    """Digest of the previously observed round; None if it has none, or there is no such round."""
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
"""Tables of a round's rows, with the condition for its own and their order."""

_COLUMNS = {table.name: [each.name for each in table.columns if each.name != COLUMN] for table, _, _ in _READ}

"""The digest of a round: over its plan, its outcomes, its decision and what was known then, and chained.

It is stored with the decision, in the round's transaction, and holds the digest of the round before. So a
round that is changed, lost or put in another's place is found. Rounds that were stored before there were
digests have none, and the first one after them holds none.
"""

from collections.abc import Mapping

from sqlalchemy import Connection, Table

from winnow.storage.engine.raw_sql import run
from winnow.storage.engine.row_digests import digest, values_of
from winnow.storage.models import Base

_TABLES = Base.metadata.tables

OF_COMPARISONS = {"outputs": "number", "metrics": "name", "judgments": "number"}
"""Tables whose rows belong to a comparison, and the column that orders them within it."""

OF_CANDIDATES = ("standings", "rankings", "differences", "bets")
"""Tables of what is known of candidates after a round, where that has changed."""


def round_digest(connection: Connection, round_id: int, decision: Mapping[str, object]) -> str:
    """The digest of a round whose rows are stored, but perhaps for its decision.

    Args:
        connection: Reads the rows.
        round_id: The round.
        decision: The values of its row of `decisions`.
    """
    content: list[object] = [_before(connection, round_id)]
    content.append(_rows(connection, _TABLES["rounds"], "t.id = ?", round_id, "t.id"))
    content.append(_rows(connection, _TABLES["comparisons"], "t.round_id = ?", round_id, "t.position"))
    for name, within in OF_COMPARISONS.items():
        of_round = "t.comparison_id IN (SELECT id FROM comparisons WHERE round_id = ?)"
        order = f"t.comparison_id, t.{within}"
        content.append(_rows(connection, _TABLES[name], of_round, round_id, order))
    for name in OF_CANDIDATES:
        content.append(_rows(connection, _TABLES[name], "t.round_id = ?", round_id, "t.candidate_id"))
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


def _rows(connection: Connection, table: Table, condition: str, round_id: int, order: str) -> list[object]:
    columns = [each.name for each in table.columns]
    names = ", ".join(f't."{each}"' for each in columns)
    query = f"SELECT {names} FROM {table.name} t WHERE {condition} ORDER BY {order}"
    return values_of(table, columns, run(connection, query, (round_id,)))

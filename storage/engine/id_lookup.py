"""Rows by many digests of one column at once, however many there are.

The digests travel as one parameter, so that neither their number nor their kind makes another statement: a
round asks this several times, and preparing a list of parameters took longer than finding the rows. They
are joined by commas, which no digest contains.
"""

import json
from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from winnow.storage.engine.raw_sql import DriverRow, run


def rows_with(
    connection: Connection, columns: str, table: str, column: str, digests: Sequence[str]
) -> list[DriverRow]:
    """The columns of the rows of a table in which one column has one of these digests."""
    if not digests:
        return []
    if connection.dialect.name == "postgresql":
        query = f"SELECT {columns} FROM {table} WHERE {column} = ANY(string_to_array(?, ','))"
        return run(connection, query, (",".join(digests),))
    query = f"SELECT {columns} FROM {table} WHERE {column} IN (SELECT value FROM json_each(?))"
    return run(connection, query, (json.dumps(list(digests)),))


def ids_with(
    connection: Connection, table: str, column: str, digests: Iterable[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """Ids of the rows that have one of these digests, and those that new rows of all other digests get.

    Whoever stores a row then knows its id without asking again. No id is one that a deleted row had. The
    transaction must be one that writes: nobody else stores any of them, or takes such an id, before it ends.
    """
    wanted = list(dict.fromkeys(digests))
    if not wanted:
        return {}, {}
    if connection.dialect.name == "postgresql":
        rows = run(connection, _IDS.format(table=table, column=column), (",".join(wanted),))
        found = {digest: id_ for digest, id_, _ in rows if id_ is not None}
        return found, {digest: new for digest, id_, new in rows if id_ is None}
    found = {digest: id_ for digest, id_ in rows_with(connection, f"{column}, id", table, column, wanted)}
    given = "SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?"
    ((last,),) = run(connection, given, (table,))
    others = (digest for digest in wanted if digest not in found)
    return found, {digest: id_ for id_, digest in enumerate(others, last + 1)}


_IDS = """
    WITH found AS MATERIALIZED (
        SELECT digest, (SELECT id FROM {table} WHERE {column} = wanted.digest) AS id
        FROM unnest(string_to_array(?, ',')) AS wanted(digest)
    )
    SELECT digest, id,
        CASE WHEN id IS NULL THEN nextval((SELECT pg_get_serial_sequence('{table}', 'id')::regclass)) END
    FROM found
"""
"""In PostgreSQL a sequence gives the ids, only as many as there are new rows.

The digests are looked up one by one: for a join the whole table was read as long as it was young.
"""

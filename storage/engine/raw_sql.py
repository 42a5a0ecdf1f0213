"""Statements passed directly to the driver, and bulk inserts.

The module also looks up rows by many digests. A round runs a dozen statements, and for most of them the
layers in between took longer than the database. Bulk inserts use COPY on PostgreSQL, otherwise a prepared
INSERT. Digests are passed as one parameter, joined by commas, which no digest contains. So the statement does
not depend on their number: a round runs it several times, and preparing a list of parameters took longer than
finding the rows.
"""

import json
import sqlite3
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import JSON, Connection, Dialect, Table
from sqlalchemy.exc import DBAPIError

from winnow.storage.columns import AnyText
from winnow.storage.engine import row_digests
from winnow.storage.text import storable

DriverRow = tuple[Any, ...]


def driver_of(connection: Connection) -> Any:  # noqa: ANN401 -- of sqlite3 or psycopg
    """The driver's own connection object."""
    return connection.connection.driver_connection


def run(connection: Connection, statement: str, values: Sequence[object] = ()) -> list[DriverRow]:
    """Run a statement with a `?` for each value, in the connection's transaction.

    Return its rows. Values and rows are in the driver's types, without conversion.
    """
    if connection.dialect.name == "postgresql":
        statement = statement.replace("?", "%s")
    with errors_of(connection, statement):
        cursor = connection.connection.driver_connection.execute(statement, values)  # type: ignore[union-attr]
        return cursor.fetchall() if cursor.description else []


def run_many(connection: Connection, statement: str, rows: Sequence[Sequence[object]]) -> None:
    """Run a SQLite statement once for each row of values."""
    with errors_of(connection, statement):
        connection.connection.driver_connection.executemany(statement, rows)  # type: ignore[union-attr]


@contextmanager
def errors_of(connection: Connection, statement: str) -> Generator[None, None, None]:
    """Wrap the driver's errors in the same way as SQLAlchemy.

    `storage.engine.database` can then translate them. A broken connection is not returned to the pool;
    neither is a connection on which a signal handler interrupted a statement, because it could not be rolled
    back.
    """
    driver = connection.dialect.loaded_dbapi
    try:
        yield
    except driver.Error as error:
        if connection.dialect.is_disconnect(error, connection.connection.dbapi_connection, None):
            connection.invalidate(error)
        raise DBAPIError.instance(statement, None, error, driver.Error, dialect=connection.dialect) from error
    except UnicodeDecodeError as error:
        raise undecodable(statement) from error
    except BaseException as error:
        if not isinstance(error, Exception):
            connection.invalidate(error)
        raise


def undecodable(statement: str) -> DBAPIError:
    """The error for a file whose schema contains invalid UTF-8.

    For such a file sqlite3 fails to decode its own error message, and raises no database error.
    """
    return DBAPIError(statement, None, sqlite3.DatabaseError("malformed database schema"))


def rows_with(
    connection: Connection, columns: str, table: str, column: str, digests: Sequence[str]
) -> list[DriverRow]:
    """Columns of the rows of a table whose `column` has one of these digests."""
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
    """Ids of existing rows with these digests, and ids of rows still to be stored.

    The second mapping has the ids that new rows of the other digests will get. So a caller that stores a row
    knows its id without another query. Ids of deleted rows are not reused. The transaction must be a writing
    one: no other process can store such a row, or take such an id, before it ends.
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
"""On PostgreSQL a sequence provides the ids, exactly as many as there are new rows.
The digests are looked up one by one, because a join read the whole table while the table was small."""


Convert = Callable[[Sequence[Any]], Sequence[object]]
"""Converts a column's values to the driver's types."""

RowT = TypeVar("RowT")

ROWS_AT_ONCE = 10_000
"""Number of rows converted together, and passed to SQLite together."""


def insert_rows(
    connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Insert rows of values in column order, in the connection's transaction.

    Values have the types of the model's attributes and are converted here.
    """
    columns, rows = _with_digests(table, columns, rows)
    portions = _converted(rows, _converts(table, tuple(columns), connection.dialect))
    names = ", ".join(f'"{name}"' for name in columns)
    if connection.dialect.name == "postgresql":
        _copy(connection, f'COPY "{table.name}" ({names}) FROM STDIN', portions)
        return
    statement = f'INSERT INTO "{table.name}" ({names}) VALUES ({", ".join("?" * len(columns))})'
    for portion in portions:
        run_many(connection, statement, portion)


def insert_row(connection: Connection, table: Table, columns: Sequence[str], row: Sequence[object]) -> int:
    """Insert one row of values in column order; return its id."""
    columns, (row,) = _with_digests(table, columns, [row])
    ((values,),) = _converted([row], _converts(table, tuple(columns), connection.dialect))
    names = ", ".join(f'"{name}"' for name in columns)
    statement = f'INSERT INTO "{table.name}" ({names}) VALUES ({", ".join("?" * len(columns))}) RETURNING id'
    ((id_,),) = run(connection, statement, values)
    return int(id_)


def _with_digests(
    table: Table, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> tuple[Sequence[str], Iterable[Sequence[object]]]:
    """Append digests to the rows.

    Rows are unchanged if they already have digests, or if their table has no column for digests.
    """
    if row_digests.COLUMN not in table.c or row_digests.COLUMN in columns:
        return columns, rows
    digested = (
        (*row, digest)
        for portion in in_portions(rows, ROWS_AT_ONCE)
        for row, digest in zip(portion, row_digests.digests_of_rows(table, columns, portion), strict=True)
    )
    return (*columns, row_digests.COLUMN), digested


PARAMETERS_AT_ONCE = 500
"""Maximum number of parameters in one statement; SQLite has a limit."""


def in_portions(rows: Iterable[RowT], size: int) -> Iterator[list[RowT]]:
    """Yield the rows in lists of at most this size."""
    remaining = iter(rows)
    while some := list(islice(remaining, size)):
        yield some


def _copy(connection: Connection, statement: str, portions: Iterable[Sequence[Sequence[object]]]) -> None:
    driver = driver_of(connection)
    with errors_of(connection, statement), driver.cursor() as cursor, cursor.copy(statement) as copy:
        for portion in portions:
            for row in portion:
                copy.write_row(row)


def _converted(
    rows: Iterable[Sequence[object]], converts: Mapping[int, Convert]
) -> Iterator[list[tuple[object, ...]]]:
    for portion in in_portions(rows, ROWS_AT_ONCE):
        columns: list[Sequence[object]] = list(zip(*portion, strict=True))
        for position, convert in converts.items():
            columns[position] = convert(columns[position])
        yield list(zip(*columns, strict=True))


@cache
def _converts(table: Table, columns: tuple[str, ...], dialect: Dialect) -> dict[int, Convert]:
    """Conversions of the columns that need one, by position of the column."""
    found: dict[int, Convert] = {}
    for position, name in enumerate(columns):
        type_ = table.c[name].type
        if isinstance(type_, JSON):
            found[position] = partial(_each, _as_json)
        elif isinstance(type_, AnyText):
            found[position] = _as_texts
        elif (convert := type_.dialect_impl(dialect).bind_processor(dialect)) is not None:
            found[position] = partial(_each, convert)
    return found


def _each(convert: Callable[[Any], object], values: Sequence[object]) -> list[object]:
    # All rows of a group share one time object, which is converted once.
    stored, last, last_stored = [], None, convert(None)
    for value in values:
        if value is not last:
            last, last_stored = value, convert(value)
        stored.append(last_stored)
    return stored


def _as_json(value: object) -> str | None:
    return None if value is None else json.dumps(value)


def _as_texts(values: Sequence[str | None]) -> list[str | None]:
    return [None if each is None else storable(each) for each in values]

"""Many rows into one table, as fast as a database takes them: COPY on PostgreSQL, else a prepared INSERT."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from sqlalchemy import JSON, Connection, Dialect, Table
from sqlalchemy.orm import Session

from storage.driving import errors_of, run, run_many

Convert = Callable[[Any], Any]

ROWS_AT_ONCE = 10_000
"""Rows handed to SQLite together."""


def insert_rows(
    session: Session, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Insert rows, each with the values of these columns in their order, in the session's transaction.

    The values are those that the model's attributes take: what the columns' types do to them is done here.
    """
    connection = session.connection()
    stored = _converted(rows, _converts(table, tuple(columns), connection.dialect))
    names = ", ".join(f'"{name}"' for name in columns)
    if connection.dialect.name == "postgresql":
        statement = f'COPY "{table.name}" ({names}) FROM STDIN'
        _copy(connection, statement, stored)
        return
    statement = f'INSERT INTO "{table.name}" ({names}) VALUES ({", ".join("?" * len(columns))})'
    for some in in_portions(stored, ROWS_AT_ONCE):
        run_many(session, statement, some)


def insert_row(session: Session, table: Table, columns: Sequence[str], row: Sequence[Any]) -> int:
    """Insert one row, with the values of these columns in their order; its id."""
    converts = _converts(table, tuple(columns), session.connection().dialect)
    names = ", ".join(f'"{name}"' for name in columns)
    statement = f'INSERT INTO "{table.name}" ({names}) VALUES ({", ".join("?" * len(columns))}) RETURNING id'
    ((id_,),) = run(session, statement, next(_converted([row], converts)))
    return int(id_)


def in_portions(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """The rows in lists of at most this size."""
    some: list[Any] = []
    for row in rows:
        some.append(row)
        if len(some) == size:
            yield some
            some = []
    if some:
        yield some


def _copy(connection: Connection, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    driver: Any = connection.connection.driver_connection
    with errors_of(connection, statement), driver.cursor() as cursor, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row(row)


def _converted(rows: Iterable[Sequence[Any]], converts: Mapping[int, Convert]) -> Iterator[tuple[Any, ...]]:
    # One moment is written to every row of a group: what is the very same value is converted once.
    last: dict[int, tuple[Any, Any]] = dict.fromkeys(converts, (None, None))
    for row in rows:
        values = list(row)
        for position, convert in converts.items():
            given = values[position]
            if given is not last[position][0]:
                last[position] = given, convert(given)
            values[position] = last[position][1]
        yield tuple(values)


@cache
def _converts(table: Table, columns: tuple[str, ...], dialect: Dialect) -> dict[int, Convert]:
    """What has to be done to the values at some positions."""
    found: dict[int, Convert] = {}
    for position, name in enumerate(columns):
        type_ = table.c[name].type
        if isinstance(type_, JSON):
            found[position] = _as_json
        elif (convert := type_.dialect_impl(dialect).bind_processor(dialect)) is not None:
            found[position] = convert
    return found


def _as_json(value: Any) -> str | None:  # noqa: ANN401 -- any JSON value
    return None if value is None else json.dumps(value)

"""Many rows into one table, as fast as a database takes them: COPY on PostgreSQL, else a prepared INSERT."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import JSON, Connection, Dialect, Table

from winnow.storage.columns import AnyText
from winnow.storage.engine.raw_sql import driver_of, errors_of, run, run_many
from winnow.storage.text import storable

Convert = Callable[[Any], object]

RowT = TypeVar("RowT")

ROWS_AT_ONCE = 10_000
"""Rows converted together, and handed to SQLite together."""


def insert_rows(
    connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> None:
    """Insert rows, each with the values of these columns in their order, in the connection's transaction.

    The values are those that the model's attributes take: what the columns' types do to them is done here.
    """
    portions = _converted(rows, _converts(table, tuple(columns), connection.dialect))
    names = ", ".join(f'"{name}"' for name in columns)
    if connection.dialect.name == "postgresql":
        _copy(connection, f'COPY "{table.name}" ({names}) FROM STDIN', portions)
        return
    statement = f'INSERT INTO "{table.name}" ({names}) VALUES ({", ".join("?" * len(columns))})'
    for portion in portions:
        run_many(connection, statement, portion)


def insert_row(connection: Connection, table: Table, columns: Sequence[str], row: Sequence[object]) -> int:
    """Insert one row, with the values of these columns in their order; its id."""
    ((values,),) = _converted([row], _converts(table, tuple(columns), connection.dialect))
    names = ", ".join(f'"{name}"' for name in columns)
    statement = f'INSERT INTO "{table.name}" ({names}) VALUES ({", ".join("?" * len(columns))}) RETURNING id'
    ((id_,),) = run(connection, statement, values)
    return int(id_)


def in_portions(rows: Iterable[RowT], size: int) -> Iterator[list[RowT]]:
    """The rows in lists of at most this size."""
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
            columns[position] = _converted_column(columns[position], convert)
        yield list(zip(*columns, strict=True))


def _converted_column(values: Sequence[object], convert: Convert) -> list[object]:
    # One moment is written to every row of a group: what is the very same value is converted once.
    stored, last, last_stored = [], None, convert(None)
    for value in values:
        if value is not last:
            last, last_stored = value, convert(value)
        stored.append(last_stored)
    return stored


@cache
def _converts(table: Table, columns: tuple[str, ...], dialect: Dialect) -> dict[int, Convert]:
    """What has to be done to the values at some positions."""
    found: dict[int, Convert] = {}
    for position, name in enumerate(columns):
        type_ = table.c[name].type
        if isinstance(type_, JSON):
            found[position] = _as_json
        elif isinstance(type_, AnyText):
            found[position] = _as_text
        elif (convert := type_.dialect_impl(dialect).bind_processor(dialect)) is not None:
            found[position] = convert
    return found


def _as_json(value: object) -> str | None:
    return None if value is None else json.dumps(value)


def _as_text(value: str | None) -> str | None:
    return None if value is None else storable(value)

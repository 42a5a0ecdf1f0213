"""Integrity of stored values: unreadable values, and digests that do not match.

See `storage.engine.row_digests` and `storage.records.rounds`.
"""

import datetime as dt
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from typing import Any

from sqlalchemy import JSON, Boolean, DateTime, Float, Integer, LargeBinary, Table, select
from sqlalchemy.orm import Session

from winnow.storage.engine.raw_sql import driver_of, errors_of
from winnow.storage.engine.row_digests import COLUMN, digested_columns, is_own, row_digest
from winnow.storage.migrations.views_0001 import VIEWS
from winnow.storage.models import Base, Decision, Prompt, Round, table_of
from winnow.storage.records.rounds import decision_columns, round_digest

ROWS_AT_ONCE = 1_000

MOST_OF_A_TABLE = 5
"""Number of rows named per table; further rows are only counted."""


def unreadable_values(session: Session) -> list[str]:
    """Values of a SQLite file that do not match their column's type.

    One sentence for each. SQLite accepts any bytes in any column. Reading such a row raises an error, so no
    further check is then possible. PostgreSQL enforces the types of columns.
    """
    connection = session.connection()
    if connection.dialect.name != "sqlite":
        return []
    driver: sqlite3.Connection = driver_of(connection)
    with errors_of(connection, "reading every value"):
        found = _schema_problems(driver)
        with _as_bytes(driver):
            for table in Base.metadata.sorted_tables:
                found += _first(list(_unreadable(driver, table)), table.name, "values cannot be read")
    return found


def _unreadable(driver: sqlite3.Connection, table: Table) -> Iterator[str]:
    names = [column.name for column in table.columns]
    keys = [names.index(column.name) for column in table.primary_key]
    reads = [(place, each.name, _reader(each.type)) for place, each in enumerate(table.columns)]
    quoted = ", ".join(f'"{name}"' for name in names)
    for row in driver.execute(f'SELECT {quoted} FROM "{table.name}"'):
        for place, name, read in reads:
            if row[place] is not None and not _can(read, row[place]):
                which = ", ".join(str(row[key]) for key in keys)
                yield f"row {which} of {table.name}: its {name} cannot be read"


def _schema_problems(driver: sqlite3.Connection) -> list[str]:
    """Sentences about errors in the statements that define tables, indexes and views.

    A reader's connection ignores some of these errors. SQLite checks a view only when it is read, so views
    are compared with those of the migrations.
    """
    query = (
        "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL AND tbl_name NOT LIKE 'search%' "
        "AND name NOT LIKE 'sqlite%' ORDER BY type = 'view', type = 'index'"
    )
    with closing(sqlite3.connect(":memory:")) as empty:
        for (statement,) in driver.execute(query).fetchall():
            try:
                empty.execute(statement)
            except sqlite3.Error as error:
                return [f"the schema is not as it was stored: {error}"]
    views = dict(driver.execute("SELECT name, sql FROM sqlite_master WHERE type = 'view'").fetchall())
    return [
        f"the view {name} is not as it was stored"
        for name, query in VIEWS["sqlite"].items()
        if views.get(name) != f"CREATE VIEW {name} AS {query}".strip()
    ]


class _Text(bytes):
    """Bytes of a stored text, as distinct from the bytes of a BLOB."""


@contextmanager
def _as_bytes(driver: sqlite3.Connection) -> Iterator[None]:
    """Make the driver return texts as `_Text`.

    With ordinary texts, invalid UTF-8 would abort the whole query.
    """
    before = driver.text_factory
    driver.text_factory = _Text
    try:
        yield
    finally:
        driver.text_factory = before


def _can(read: Callable[[Any], object], value: object) -> bool:
    try:
        read(value)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _reader(type_: object) -> Callable[[Any], object]:
    """Function that parses a stored value of a column.

    The function raises if the value is invalid. Values are as the driver returns them.
    """
    kind = getattr(type_, "impl", type_)
    if isinstance(kind, JSON):
        return lambda value: json.loads(_text(value))
    if isinstance(kind, DateTime):
        return _moment
    if isinstance(kind, Boolean):
        return lambda value: (0, 1).index(_of(value, int))
    if isinstance(kind, Integer):
        return lambda value: _of(value, int)
    if isinstance(kind, Float):
        return lambda value: _of(value, int, float)
    return _blob if isinstance(kind, LargeBinary) else _text


def _text(value: object) -> str:
    text: bytes = _of(value, _Text)
    return text.decode("utf-8")


def _moment(value: object) -> None:
    """Raise unless a text is a time in the format in which SQLite stores times.

    Python also parses other formats, but SQL does not compare them correctly.
    """
    text = _text(value)
    if dt.datetime.fromisoformat(text).isoformat(" ", "microseconds") != text:
        raise ValueError(text)


def _blob(value: object) -> bytes:
    if type(value) is not bytes:
        raise TypeError(type(value).__name__)
    return value


def _of(value: Any, *types: type) -> Any:  # noqa: ANN401 -- a value of any column
    if not isinstance(value, types):
        raise TypeError(type(value).__name__)
    return value


def changed_rows(session: Session) -> list[str]:
    """Rows and rounds changed since they were stored, one sentence each."""
    found: list[str] = []
    for table in Base.metadata.sorted_tables:
        if COLUMN in table.c:
            found += _first(_changed_rows_of(session, table), table.name, "rows are not as they were stored")
    return found + _changed_prompts(session) + _changed_rounds(session)


def _changed_rows_of(session: Session, table: Table) -> list[str]:
    columns = digested_columns(table)
    key = next(iter(table.primary_key))
    digested = (table.c[name] for name in columns)
    query = select(key, table.c[COLUMN], *digested).where(table.c[COLUMN].is_not(None))
    rows = session.connection().execute(query.execution_options(yield_per=ROWS_AT_ONCE))
    with rows:
        return [
            f"row {id_} of {table.name} is not as it was stored"
            for id_, stored, *values in rows
            if not is_own(stored, row_digest(table, columns, values))
        ]


def _changed_prompts(session: Session) -> list[str]:
    query = select(Prompt.id, Prompt.digest, Prompt.text).execution_options(yield_per=ROWS_AT_ONCE)
    with session.execute(query) as rows:
        wrong = [
            f"row {id_} of prompts is not as it was stored"
            for id_, digest, text in rows
            if sha256(text.encode()).hexdigest() != digest
        ]
    return _first(wrong, "prompts", "rows are not as they were stored")


def _changed_rounds(session: Session) -> list[str]:
    """Sentences about rounds that were changed after they were stored.

    Their rows, or their links to the previous round, differ from the stored digests.
    """
    connection = session.connection()
    table = table_of(Decision)
    columns = decision_columns(table)
    decided = [table.c[name] for name in columns]
    query = (
        select(Round.id, Round.campaign_id, Round.number, Decision.digest, *decided)
        .join(Decision, Decision.round_id == Round.id)
        .order_by(Round.campaign_id, Round.number)
    )
    found: list[str] = []
    covered: set[int] = set()
    with connection.execute(query.execution_options(yield_per=ROWS_AT_ONCE)) as rows:
        for id_, campaign_id, number, stored, *values in rows:
            if stored is None:
                if campaign_id in covered:
                    found.append(f"the digest of round {number + 1} of campaign {campaign_id} is missing")
                continue
            covered.add(campaign_id)
            if round_digest(connection, id_, dict(zip(columns, values, strict=True))) != stored:
                found.append(
                    f"round {number + 1} of campaign {campaign_id} is not as it was stored: its outcomes, "
                    "its decision, or the values of its candidates were changed"
                )
    return found


def _first(sentences: list[str], table: str, what: str) -> list[str]:
    """The first sentences about the rows of a table.

    The number of further sentences follows them.
    """
    more = len(sentences) - MOST_OF_A_TABLE
    return sentences if more <= 0 else [*sentences[:MOST_OF_A_TABLE], f"{more:,} more {what} in {table}"]


def uncovered_rounds(session: Session) -> int:
    """Number of rounds stored before digests were introduced."""
    query = select(Decision.id).where(Decision.digest.is_(None))
    return len(session.scalars(query).all())

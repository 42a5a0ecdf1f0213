"""Statements of the user, with a time limit.

This module imports no table, because a process that answers one statement must start quickly.
"""

import re
import sqlite3
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from sqlalchemy import Result, text
from sqlalchemy.exc import DBAPIError, ResourceClosedError
from sqlalchemy.orm import Session

from winnow.storage.engine.database import cause
from winnow.storage.engine.raw_sql import driver_of
from winnow.storage.errors import QueryRefused

ROWS_AT_ONCE = 100
"""Number of rows fetched together; each can be large."""

LIMIT = "limit of time"
"""Key of a PostgreSQL session's `info`: the SET statement of the current time limit.
The statement is executed again after each fetched group of rows, because a function in the user's statement
can lift the limit. SQLite uses a progress handler instead."""

STEPS_BETWEEN_CLOCKS = 10_000
"""Number of SQLite instructions between two checks of the clock.
They take less than a millisecond."""


def run_sql(session: Session, statement: str) -> tuple[list[str], Iterator[tuple[object, ...]]]:
    """Run a user's statement.

    The session's connection must be read-only; the statement is not inspected.

    Raises:
        DBAPIError: If the connection breaks; the owner of the session translates it.
        QueryRefused: If the database refuses the statement, for example because it writes. Also while the
            rows are read, because some are computed only then.
    """
    try:
        # On PostgreSQL a streamed statement becomes the query of a cursor, which must be a single SELECT.
        streamed = {"yield_per": ROWS_AT_ONCE}
        result = session.execute(text(statement.replace(":", r"\:")), execution_options=streamed)
        return list(result.keys()), _rows(session, result)
    except DBAPIError as error:
        if error.connection_invalidated:  # the connection is broken; nothing was refused
            raise
        raise _refusal(session, error) from error
    except ResourceClosedError:
        raise QueryRefused("the statement returns no rows; only SELECT statements answer questions") from None


def _rows(session: Session, result: Result[Any]) -> Iterator[tuple[object, ...]]:
    try:
        with result:
            while rows := result.fetchmany(ROWS_AT_ONCE):
                yield from map(tuple, rows)
                if limit := session.info.get(LIMIT):  # set again: a function in the statement can lift it
                    session.execute(text(limit))
    except DBAPIError as error:
        if error.connection_invalidated:
            raise
        raise _refusal(session, error) from error


def _refusal(session: Session, error: DBAPIError) -> QueryRefused:
    said = cause(error)
    if missing := _NO_TABLE.search(said):
        remedy = _near(session, missing[1] or missing[2])
    elif _NO_COLUMN.search(said):
        remedy = "SELECT * FROM VIEW LIMIT 1 shows the columns of a view"
    else:
        remedy = "statements can only read: write one SELECT"
    return QueryRefused(f"the statement was refused: {said}; {remedy}")


_NO_TABLE = re.compile(r'no such table: (?:main\.)?(\S+)|relation "([^"]+)" does not exist')
_NO_COLUMN = re.compile(r"no such column|column \S+ does not exist")


def _near(session: Session, name: str) -> str:
    """The view whose name is nearest to a missing one, and all views, as a clause."""
    is_sqlite = session.connection().dialect.name == "sqlite"
    if not is_sqlite:
        session.rollback()  # PostgreSQL runs no statement in a failed transaction
    views = (
        "SELECT name FROM sqlite_master WHERE type = 'view'"
        if is_sqlite
        else "SELECT table_name FROM information_schema.views WHERE table_schema = current_schema()"
    )
    known = sorted(str(row[0]) for row in session.execute(text(views)))
    near = next((each for each in known if each == f"v_{name.replace('-', '_')}"), None)
    near = near or next(iter(get_close_matches(name, known, n=1)), None)
    question = f"did you mean {near!r}? " if near else ""
    return f"{question}views: {', '.join(known) or 'none'}"


@contextmanager
def give_up_after(session: Session, seconds: float) -> Generator[None, None, None]:
    """Abort the block's statements after a time limit.

    PostgreSQL measures each statement separately, and keeps the limit until the transaction ends.
    """
    connection = session.connection()
    if connection.dialect.name == "postgresql":
        session.info[LIMIT] = f"SET LOCAL statement_timeout = {round(seconds * 1_000)}"
        session.execute(text(session.info[LIMIT]))
        yield
        return
    until = time.monotonic() + seconds
    driver = driver_of(connection)
    driver.set_progress_handler(lambda: time.monotonic() > until, STEPS_BETWEEN_CLOCKS)
    try:
        yield
    finally:
        driver.set_progress_handler(None, 0)


def bound_cells(session: Session, most: int) -> None:
    """Limit the size of a text or blob that a statement can create in SQLite.

    PostgreSQL has its own limits.
    """
    driver = driver_of(session.connection())
    if isinstance(driver, sqlite3.Connection):
        driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(most, 1_000_000_000))

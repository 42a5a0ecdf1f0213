"""Statements handed to the driver as they are.

A round runs a dozen, and for most of them the layers between took longer than the database.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

DriverRow = tuple[Any, ...]


def driver_of(connection: Connection) -> Any:  # noqa: ANN401 -- sqlite3's or psycopg's
    """The driver's own connection."""
    return connection.connection.driver_connection


def run(connection: Connection, statement: str, values: Sequence[object] = ()) -> list[DriverRow]:
    """Run a statement with a `?` for each value, in the connection's transaction; the rows that it returns.

    The values are those that the driver takes, and the rows are as it gives them: no type converts them.
    """
    if connection.dialect.name == "postgresql":
        statement = statement.replace("?", "%s")
    with errors_of(connection, statement):
        cursor = connection.connection.driver_connection.execute(statement, values)  # type: ignore[union-attr]
        return cursor.fetchall() if cursor.description else []


def run_many(connection: Connection, statement: str, rows: Sequence[Sequence[object]]) -> None:
    """Run a statement of SQLite's once for each row of values."""
    with errors_of(connection, statement):
        connection.connection.driver_connection.executemany(statement, rows)  # type: ignore[union-attr]


@contextmanager
def errors_of(connection: Connection, statement: str) -> Generator[None, None, None]:
    """Wrap the driver's errors as SQLAlchemy does, which `storage.engine.database` then renames.

    A connection that was cut goes back to no pool.
    """
    driver = connection.dialect.loaded_dbapi
    try:
        yield
    except driver.Error as error:
        if connection.dialect.is_disconnect(error, connection.connection.dbapi_connection, None):
            connection.invalidate(error)
        raise DBAPIError.instance(statement, None, error, driver.Error, dialect=connection.dialect) from error

"""Alembic settings without an ini file: the migrations are part of the package."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from alembic.config import Config
from sqlalchemy import Connection, inspect
from sqlalchemy.exc import DBAPIError

from winnow.storage.engine.database import Database
from winnow.storage.engine.sqlite import WRITES
from winnow.storage.engine.write_lock import LOCKED_BY_WRITERS
from winnow.storage.errors import ConflictingRecord


def alembic_config(database: Database) -> Config:
    """Settings for migrating an open database."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["database"] = database
    return config


@contextmanager
def rewriting(database: Database) -> Generator[Connection, None, None]:
    """Open a connection that can rewrite tables to which other tables refer.

    Raises:
        ConflictingRecord: If a row refers to a missing row afterwards; the changes are kept.
    """
    if database.is_postgresql:
        _ensure_lockable(database)
    with database.engine.execution_options(**{WRITES: True}).connect() as connection:
        if database.is_postgresql:
            yield connection
            return
        # SQLite rewrites a table by dropping it, which enforced foreign keys would forbid. They cannot be
        # switched off within a transaction, so this is done outside SQLAlchemy's transaction.
        driver = connection.connection.driver_connection
        assert driver is not None
        driver.execute("PRAGMA foreign_keys=OFF")
        try:
            yield connection
            if driver.execute("PRAGMA foreign_key_check").fetchone() is not None:
                raise ConflictingRecord("a row refers to a row that is not there; run: winnow db check")
        finally:
            if not connection.invalidated:  # as it is by Ctrl-C, which closes it
                driver.execute("PRAGMA foreign_keys=ON")


def _ensure_lockable(database: Database) -> None:
    """Create the table that writers lock.

    Otherwise Alembic would create it within the first migration.
    """
    key = f"CONSTRAINT {LOCKED_BY_WRITERS}_pkc PRIMARY KEY (version_num)"
    create = f"CREATE TABLE IF NOT EXISTS {LOCKED_BY_WRITERS} (version_num VARCHAR(32) NOT NULL, {key})"
    try:
        with database.engine.begin() as connection:
            connection.exec_driver_sql(create)
    except DBAPIError:
        # If several processes create it at the same time, the server lets all but one fail.
        with database.engine.connect() as connection:
            if not inspect(connection).has_table(LOCKED_BY_WRITERS):
                raise

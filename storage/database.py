"""Opening a results database, and the one place where transactions begin, end and fail."""

import re
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DatabaseError, IntegrityError, NoSuchModuleError
from sqlalchemy.orm import Session
from sqlalchemy.pool import NullPool, QueuePool

from storage.errors import ConflictingRecord, StorageUnavailable

BUSY_TIMEOUT_MS = 30_000
"""How long a writer waits for another one before it gives up."""

_WRITES = "winnow_writes"

_READING_PRAGMAS = {
    "foreign_key_check",
    "foreign_key_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "page_count",
    "page_size",
    "read_uncommitted",
    "table_info",
    "table_list",
    "table_xinfo",
}


@dataclass(frozen=True, slots=True)
class Database:
    """An open results database.

    Reading and writing are told apart because SQLite must take the write lock when a transaction begins:
    a transaction that first reads and then writes can otherwise fail half-way, however long it would wait.
    """

    url: str
    """As given, with the password hidden: safe to print."""
    engine: Engine

    @contextmanager
    def reading(self) -> Generator[Session, None, None]:
        """A session that sees one consistent state and writes nothing."""
        with _named_errors(self.url), Session(self.engine) as session:
            yield session
            session.rollback()

    @contextmanager
    def writing(self) -> Generator[Session, None, None]:
        """A unit of work: commits on success, rolls back on any error.

        Raises:
            ConflictingRecord: If a row breaks a constraint.
            StorageUnavailable: If the database cannot be reached, locked or written.
        """
        with (
            _named_errors(self.url),
            Session(self.engine.execution_options(**{_WRITES: True})) as session,
            session.begin(),
        ):
            yield session

    def close(self) -> None:
        """Give all connections back."""
        self.engine.dispose()


def open_database(url: str, *, read_only: bool = False) -> Database:
    """Open a database by SQLAlchemy URL; SQLite files are created unless `read_only`.

    Raises:
        StorageUnavailable: If the URL cannot be read, names no place that lasts, or its driver is not
            installed.
    """
    shown = re.sub(r"(://[^:/@]*):.*@", r"\1:***@", url)
    try:
        parsed = make_url(url)
        shown = parsed.render_as_string(hide_password=True)
        if parsed.get_backend_name() == "sqlite":
            if parsed.database in (None, "", ":memory:"):
                raise StorageUnavailable(
                    shown, "results in memory would be lost; name a file: sqlite:///FILE"
                )
            return Database(shown, _sqlite_engine(str(parsed.database), read_only))
        engine = create_engine(parsed, pool_pre_ping=True)
    except (ArgumentError, NoSuchModuleError, ModuleNotFoundError, ValueError) as error:
        raise StorageUnavailable(shown, f"not a database URL this installation can open ({error})") from error
    if read_only:
        engine = engine.execution_options(postgresql_readonly=True)
    return Database(shown, engine)


def _sqlite_engine(path: str, read_only: bool) -> Engine:
    mode = "ro" if read_only else "rwc"

    def connect() -> sqlite3.Connection:
        quoted = path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
        return sqlite3.connect(
            f"file:{quoted}?mode={mode}",
            uri=True,
            isolation_level=None,  # transactions are begun below, not guessed by the driver
            check_same_thread=False,
            timeout=BUSY_TIMEOUT_MS / 1000,
        )

    # Named here, since for a URL without a file SQLAlchemy would choose a pool that closes what is in use.
    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool if read_only else QueuePool)

    @event.listens_for(engine, "connect")
    def configure(connection: sqlite3.Connection, _: Any) -> None:  # noqa: ANN401 -- SQLAlchemy's own type is private
        if read_only:
            connection.execute("PRAGMA query_only=ON")
            connection.set_authorizer(_refuse_other_files)
            return
        _enter_wal_mode(connection)
        # In WAL mode a killed process loses nothing committed; only a power cut may cost the last commits.
        connection.execute("PRAGMA synchronous=NORMAL")
        connection.execute("PRAGMA foreign_keys=ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        writes = connection.get_execution_options().get(_WRITES, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _enter_wal_mode(connection: sqlite3.Connection) -> None:
    """Switch to the write-ahead log, once per file; for this one statement SQLite itself does not wait."""
    give_up = time.monotonic() + BUSY_TIMEOUT_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up:
                raise
        time.sleep(0.01)


def _refuse_other_files(action: int, subject: str | None, *_: str | None) -> int:
    """Close what a read-only SQLite connection leaves open.

    ATTACH and VACUUM INTO (which attaches too) would write other files, and a PRAGMA could lift `query_only`.
    """
    refused = action == sqlite3.SQLITE_ATTACH or (
        action == sqlite3.SQLITE_PRAGMA and subject not in _READING_PRAGMAS
    )
    return sqlite3.SQLITE_DENY if refused else sqlite3.SQLITE_OK


@contextmanager
def _named_errors(url: str) -> Generator[None, None, None]:
    """Rename the driver's errors at this one border, keeping the cause."""
    try:
        yield
    except IntegrityError as error:
        raise ConflictingRecord(str(error.orig)) from error
    except DatabaseError as error:
        raise StorageUnavailable(url, str(error.orig)) from error

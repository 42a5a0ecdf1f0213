"""Opening PostgreSQL: one writer at a time as in SQLite, and readers on one unchanging snapshot.

Every writing transaction first locks one table that no campaign writes to. What holds in SQLite, that nothing
changes between what a writer reads and what it then writes, so holds here too, and no two writers deadlock.
Readers take no lock that conflicts: they neither wait for a writer nor make it wait. Nor can a role stop
writers that may only SELECT: to lock a table in a mode that conflicts takes the right to change its rows (an
advisory lock, in contrast, is free to every role).

A read-only engine opens each transaction READ ONLY, and `run_sql` sends a user's statement
as the query of a server-side cursor: the server then accepts one statement that returns rows, nothing else,
so no SET, COMMIT, COPY or second statement, and refuses to lift READ ONLY by a function once a snapshot is
taken. What functions reach outside the tables (files, programs, other servers, other sessions) is a question
of the role's rights: pg_read_file, lo_export and the like are refused to every role that is no superuser.
Whoever lets strangers ask in SQL does it with a role that may only SELECT.
"""

import os
import socket
import time
from collections.abc import Mapping
from urllib.parse import unquote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool, QueuePool

from winnow.storage.engine.raw_sql import run
from winnow.storage.engine.sqlite import WRITES
from winnow.storage.engine.write_lock import LOCKED_BY_WRITERS
from winnow.storage.errors import StorageUnavailable

READS = "winnow_reads"
"""Execution option of a connection whose transactions read: one snapshot for the whole of each."""

# Said of each transaction, as are the settings: a pooler such as PgBouncer may give it a session of others.
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
LOCK = f"LOCK TABLE {LOCKED_BY_WRITERS} IN SHARE UPDATE EXCLUSIVE MODE"
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

IDLE_SINCE = "winnow_idle_since"
IDLE_UNSEEN_S = 5.0
"""An idle connection is trusted for as long; asking each time would cost a round's transactions a tenth."""

IDLE_WRITER = "60s"
"""Longest lock-out of all others by a writer that is frozen in a transaction, or whose machine is gone."""

SILENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Waits for a server whose machine or network is gone, in s, the last in ms; a URL may set others.

Left to the system, a connection to it breaks two hours later, or 15 min after something was sent.
"""

SETTINGS = {
    # A role or a database may have others, by which numbers come rounded, and times as no driver reads them.
    "DateStyle": "ISO",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}


def postgresql_engine(url: URL, *, shown: str, read_only: bool, wait_ms: int) -> Engine:
    """An engine on a server; a writer waits `wait_ms` for another one, and `shown` names it in errors."""
    engine = create_engine(
        # What libpq reads with percent codes, a socket's folder as the host among it, SQLAlchemy passes on.
        url.set(
            drivername="postgresql+psycopg",
            host=url.host and unquote(url.host),
            database=url.database and unquote(url.database),
        ),
        connect_args={
            **{name: url.query.get(name, value) for name, value in SILENCE.items()},
            "client_encoding": "UTF8",
            # A plan made for the few rows of a young campaign must not serve the millions of an old one.
            "prepare_threshold": None,
            # Transactions are begun below, in one exchange with all that belongs to their beginning.
            "autocommit": True,
        },
        # Nothing that a reader's statement set lives on in a connection of the next one.
        poolclass=NullPool if read_only else QueuePool,
    )
    settings = SETTINGS | {
        "lock_timeout": f"{wait_ms}ms",
        "application_name": f"winnow, process {os.getpid()} on {socket.gethostname()}",
        "idle_in_transaction_session_timeout": "0" if read_only else IDLE_WRITER,
    }

    @event.listens_for(engine, "connect")
    def configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StorageUnavailable(
                shown,
                f"its encoding {encoding} cannot hold every text: create it with ENCODING 'UTF8'",
                "CREATE DATABASE ... TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' does on every server",
            )
        connection.execute("; ".join(set_as("SESSION", settings)))  # for what runs outside of transactions

    @event.listens_for(engine, "checkin")
    def note_when(_: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        record.info[IDLE_SINCE] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def look_after_idle(connection: DBAPIConnection, record: ConnectionPoolEntry, _: object) -> None:
        # Models may generate for minutes between two transactions, in which a server or a firewall forgets.
        if time.monotonic() - record.info.get(IDLE_SINCE, time.monotonic()) > IDLE_UNSEEN_S:
            _require_alive(connection)

    local = set_as("LOCAL", settings)
    begin_writing = "; ".join([BEGIN, *local, LOCK])
    begin_reading = "; ".join([BEGIN_READING, *local])
    begin_either = "; ".join([BEGIN, *local])

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        options = connection.get_execution_options()
        if options.get(WRITES, False) and not read_only:
            run(connection, begin_writing)
        else:
            run(connection, begin_reading if options.get(READS, False) or read_only else begin_either)

    return engine


def set_as(scope: str, settings: Mapping[str, str]) -> list[str]:
    """Statements that set these for a "SESSION", or for the transaction ("LOCAL")."""
    import psycopg.sql as sql

    return [
        sql.SQL("SET " + scope + " {} = {}").format(sql.Identifier(name), sql.Literal(value)).as_string()
        for name, value in settings.items()
    ]


def _require_alive(connection: DBAPIConnection) -> None:
    import psycopg

    try:
        connection.execute("SELECT 1")
    except psycopg.Error as error:
        raise DisconnectionError from error  # the pool then opens another

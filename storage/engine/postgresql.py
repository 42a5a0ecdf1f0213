"""Open PostgreSQL with one writer at a time, as in SQLite.

Each reader sees one unchanging snapshot. Every writing transaction first locks one table that no campaign
writes to. So, as in SQLite, nothing changes between the reads and the writes of a writer, and no two writers
deadlock. Readers take no conflicting lock: they neither wait for a writer nor block it. A role that can only
SELECT cannot block writers, because locking a table in a conflicting mode requires the right to change its
rows. (Any role can take an advisory lock.)

A read-only engine opens each transaction READ ONLY, and `run_sql` sends a user's statement as the query of a
server-side cursor. The server then accepts only one statement that returns rows: no SET, COMMIT, COPY or
second statement. It also refuses to lift READ ONLY by a function once a snapshot is taken. Access of
functions outside the tables (files, programs, other servers, other sessions) depends on the role's rights:
pg_read_file, lo_export and the like are refused to every role that is not a superuser. To let strangers query
in SQL, use a role that can only SELECT.
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
"""Execution option of a connection whose transactions only read.
Each transaction sees one snapshot."""

# Sent in each transaction, like the settings, because a pooler such as PgBouncer can change the session.
BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
LOCK = f"LOCK TABLE {LOCKED_BY_WRITERS} IN SHARE UPDATE EXCLUSIVE MODE"
BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

IDLE_SINCE = "winnow_idle_since"
IDLE_UNSEEN_S = 5.0
"""Seconds for which an idle connection is used without a check.
Checking each time would cost a tenth of the time of a round's transactions."""

IDLE_WRITER = "60s"
"""Maximum time that a frozen writer blocks others.
It applies if a writer is frozen in a transaction, or its machine failed."""

SILENCE = {
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""Timeouts for a server whose machine or network has failed.
A URL can override them. All are in seconds, except the last in milliseconds. With the system's defaults,
such a connection breaks after two hours, or 15 minutes after something was sent."""

SETTINGS = {
    # The defaults of a role or database can round numbers, and format times so that no driver parses them.
    "DateStyle": "ISO",
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "tcp_keepalives_idle": "15",
    "tcp_keepalives_interval": "5",
    "tcp_keepalives_count": "3",
}

LOOKALIKES = """\
WITH place AS (
    SELECT oid, nspname FROM pg_catalog.pg_namespace
    WHERE nspname OPERATOR(pg_catalog.=) ANY (pg_catalog.current_schemas(false))
    AND nspname OPERATOR(pg_catalog.<>) 'pg_catalog'
), other AS (
    SELECT oid, rolname, rolcanlogin FROM pg_catalog.pg_roles
    WHERE NOT rolsuper AND rolname OPERATOR(pg_catalog.<>) CURRENT_USER
), named AS (
    SELECT 'function' AS kind, proname AS name, pronamespace AS place, proowner AS owner
    FROM pg_catalog.pg_proc
    UNION ALL SELECT 'operator', oprname, oprnamespace, oprowner FROM pg_catalog.pg_operator
)
(
    SELECT named.kind, named.name, other.rolname FROM named
    JOIN place ON place.oid OPERATOR(pg_catalog.=) named.place
    JOIN other ON other.oid OPERATOR(pg_catalog.=) named.owner
    WHERE EXISTS (
        SELECT FROM named AS own WHERE own.kind OPERATOR(pg_catalog.=) named.kind
        AND own.name OPERATOR(pg_catalog.=) named.name
        AND own.place OPERATOR(pg_catalog.=) 'pg_catalog'::pg_catalog.regnamespace
    )
    LIMIT 1
)
UNION ALL
(
    SELECT 'schema', place.nspname, other.rolname FROM place CROSS JOIN other
    WHERE pg_catalog.has_schema_privilege(other.oid, place.oid, 'CREATE')
    AND (other.rolcanlogin OR EXISTS (
        SELECT FROM pg_catalog.pg_auth_members AS held WHERE held.roleid OPERATOR(pg_catalog.=) other.oid
    ))
    AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_database AS own
        WHERE own.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
        AND pg_catalog.pg_has_role(other.oid, own.datdba, 'USAGE')
    )
    AND NOT EXISTS (
        SELECT FROM pg_catalog.pg_class AS own WHERE own.relnamespace OPERATOR(pg_catalog.=) place.oid
        AND own.relname OPERATOR(pg_catalog.=) 'alembic_version'
        AND pg_catalog.pg_has_role(other.oid, own.relowner, 'USAGE')
    )
    LIMIT 1
)"""
"""Query for functions and operators of other roles that PostgreSQL could use.
It would use them in a statement instead of its own if their types fit better, with the rights of this role.
The query also finds schemas in which roles other than the owners of the database and of the tables can create
functions. The names in this query are qualified so that they cannot be replaced this way."""


def postgresql_engine(url: URL, *, shown: str, read_only: bool, wait_ms: int) -> Engine:
    """Create an engine on a server.

    A writer waits `wait_ms` for another writer; errors show `shown` as the URL.
    """
    engine = create_engine(
        # libpq decodes percent codes, including in the host, which can be a socket's folder; SQLAlchemy does
        # not.
        url.set(
            drivername="postgresql+psycopg",
            host=url.host and unquote(url.host),
            database=url.database and unquote(url.database),
        ),
        connect_args={
            **{name: url.query.get(name, value) for name, value in SILENCE.items()},
            "client_encoding": "UTF8",
            # A plan made for the few rows of a new campaign would be slow for the millions of a large one.
            "prepare_threshold": None,
            # Transactions begin below, in one exchange with their settings.
            "autocommit": True,
        },
        use_native_hstore=False,  # nothing here has that type, and asking for it names operators
        # Settings of a reader's statement must not persist in the connection of the next reader.
        poolclass=NullPool if read_only else QueuePool,
    )
    settings = SETTINGS | {
        "lock_timeout": f"{wait_ms}ms",
        "application_name": f"winnow, process {os.getpid()} on {socket.gethostname()}",
        "idle_in_transaction_session_timeout": "0" if read_only else IDLE_WRITER,
    }

    @event.listens_for(engine, "connect", insert=True)  # before SQLAlchemy's own statements
    def configure(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        encoding = connection.info.parameter_status("server_encoding")
        if encoding != "UTF8":
            raise StorageUnavailable(
                shown,
                f"its encoding {encoding} cannot hold every text: create it with ENCODING 'UTF8'",
                "CREATE DATABASE ... TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C' works on every server",
            )
        # The settings are for statements outside transactions.
        cursor = connection.execute("; ".join([*set_as("SESSION", settings), LOOKALIKES]))
        while cursor.nextset():
            pass
        if found := cursor.fetchone():
            raise StorageUnavailable(shown, *_lookalike_message(*found))

    @event.listens_for(engine, "checkin")
    def note_when(_: DBAPIConnection, record: ConnectionPoolEntry) -> None:
        record.info[IDLE_SINCE] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def look_after_idle(connection: DBAPIConnection, record: ConnectionPoolEntry, _: object) -> None:
        # Models can generate for minutes between two transactions, and a firewall may drop idle connections.
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


def _lookalike_message(kind: str, name: str, role: str) -> tuple[str, str]:
    """Cause and remedy for a row of `LOOKALIKES`, for an error message."""
    runs = "run with the rights of your role instead of PostgreSQL's own"
    elsewhere = "use a search_path in the URL with schemas in which only you can create objects"
    if kind == "schema":
        return (
            f"the role {role} can create functions in the schema {name} of its search_path, "
            f"which could {runs}",
            f"revoke that (REVOKE CREATE ON SCHEMA {name} FROM PUBLIC, {role}), or {elsewhere}",
        )
    return (
        f"the {kind} {name} of the role {role} is in its search_path, where it could {runs}",
        f"drop the {kind}, or {elsewhere}",
    )


def set_as(scope: str, settings: Mapping[str, str]) -> list[str]:
    """Statements that set these values for the session or the transaction.

    The scope is "SESSION" or "LOCAL" (the transaction).
    """
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
        raise DisconnectionError from error  # the pool then opens another connection

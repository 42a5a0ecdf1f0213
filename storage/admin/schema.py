"""Upgrade a database to this release's schema.

Databases of other releases are refused.
"""

import threading
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from winnow.storage.engine.database import Database, cause, open_database
from winnow.storage.engine.postgresql import READS
from winnow.storage.errors import (
    A_PLACE_OF_ITS_OWN,
    NotPermitted,
    SchemaDiffers,
    SchemaForeign,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    StorageError,
    StorageUnavailable,
)
from winnow.storage.models import Base, Campaign

MIGRATIONS = Path(__file__).parents[1] / "migrations"

REVISIONS = sorted(path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("[0-9]*.py"))
"""All revisions, oldest first.
Read from file names, because importing Alembic would slow every command."""

HEAD = REVISIONS[-1]

CLOSED = """\
SELECT quote_ident(nspname) FROM pg_namespace
WHERE quote_ident(nspname) = ANY (regexp_split_to_array(current_setting('search_path'), ' *, *'))
AND NOT has_schema_privilege(oid, 'USAGE')"""
"""Query for schemas of the search path that the server skips.
It skips a schema if the role lacks the USAGE privilege on it."""

PASSED_OVER = """\
SELECT name, current_schema() FROM (
    SELECT * FROM regexp_split_to_table(current_setting('search_path'), ' *, *')
    WITH ORDINALITY AS path(name, place) WHERE name <> '"$user"' ORDER BY place LIMIT 1
) AS first
WHERE name ~ '^[A-Za-z_][A-Za-z0-9_]*$' AND current_schema() IS NOT NULL
AND NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = lower(name))"""
"""Query for the first schema of the search path, if it does not exist.
The second column is the schema in which tables would be created instead."""

_MIGRATING = threading.Lock()
"""Lets only one thread migrate at a time.
Alembic's context is global to the process."""


def upgrade(database: Database) -> tuple[str | None, str]:
    """Migrate to the newest revision; return the revisions before and after.

    Raises:
        SchemaForeign: If the revision is that of another program's tables.
        SchemaTooNew: If a newer Winnow wrote the database.
        SchemaDiffers: If the database's tables do not match its revision.
        StorageUnavailable: If the database cannot be read or written, or the schema in its URL does not
            exist.
    """
    before = current_revision(database)
    if before is not None and before not in REVISIONS:
        raise SchemaTooNew(database.url, before, HEAD)
    if before is None:
        _require_named_schema(database)
    if before != HEAD:
        with _MIGRATING:
            if current_revision(database) != HEAD:  # another thread may have been faster
                _migrate(database)
    _require_columns(database)
    return before, HEAD


def ensure_schema(database: Database) -> bool:
    """Create the tables in an empty database; refuse a database of another release.

    Returns:
        Whether the database was empty.

    Raises:
        SchemaForeign: If the revision is that of another program's tables.
        SchemaOutdated: If an older Winnow wrote the database; the user must decide about an upgrade.
        SchemaTooNew: If a newer Winnow wrote the database.
        StorageUnavailable: If the database cannot be read or written.
    """
    if is_empty := current_revision(database) is None:
        upgrade(database)
    require_schema(database)
    return is_empty


def require_schema(database: Database) -> None:
    """Raise unless a database has exactly this release's schema.

    Raises:
        SchemaForeign: If the database's revision is that of another program's tables.
        SchemaMissing: If the database holds no Winnow tables.
        SchemaOutdated: If an older Winnow wrote the database.
        SchemaTooNew: If a newer Winnow wrote the database.
        SchemaDiffers: If the database's tables do not match its revision.
        StorageUnavailable: If the database cannot be read.
    """
    revision = current_revision(database)
    if revision is None:
        raise SchemaMissing(database.url)
    if revision not in REVISIONS:
        raise SchemaTooNew(database.url, revision, HEAD)
    if revision != HEAD:
        raise SchemaOutdated(database.url, revision, HEAD)
    _require_columns(database)


@contextmanager
def reading(url: str) -> Generator[Session, None, None]:
    """Open a read-only session on an existing database of this release.

    Closes the database at the end.

    Raises:
        StorageError: If the database does not exist, is of another release, or cannot be read.
    """
    with existing(url, read_only=True) as database, database.reading() as session:
        yield session


@contextmanager
def existing(url: str, *, read_only: bool = False) -> Generator[Database, None, None]:
    """Open an existing database of this release; closes it at the end.

    `read_only` forbids writes.

    Raises:
        StorageError: If the database does not exist, is of another release, or cannot be read.
    """
    with closing(open_database(url, read_only=read_only, creates=False)) as database:
        require_schema(database)
        with damage_named(database):
            yield database


@contextmanager
def damage_named(database: Database) -> Generator[None, None, None]:
    """Name the damage if values that Winnow cannot have stored make a query fail.

    Raises:
        StorageError: Instead of the original error, if a check finds damage. Otherwise the original error is
            raised, which is a bug.
    """
    try:
        yield
    except Exception as error:
        # Imported here, because a process that answers one statement must start quickly.
        from winnow.storage.admin.check import problems
        from winnow.storage.admin.integrity import unreadable_values
        from winnow.storage.records.campaigns import UNREADABLE

        if isinstance(error, StorageError) or not isinstance(error, UNREADABLE):
            raise
        with database.reading() as session:
            found = unreadable_values(session) or problems(session)
        if not found:
            raise
        raise StorageError(
            f"{database.url} is damaged, or was changed outside Winnow, so this stopped early: {found[0]}; "
            "run winnow db check for a full list, or restore a backup"
        ) from error


def current_revision(database: Database) -> str | None:
    """Schema revision of the database; None if it has no Winnow tables.

    Raises:
        NotPermitted: If the role has no access to a schema that can hold the tables.
        SchemaForeign: If the revision is that of another program's tables.
        StorageUnavailable: If the database cannot be read.
    """
    try:
        # In one snapshot, tables that another Winnow is creating are not mistaken for another program's.
        with database.engine.execution_options(**{READS: True}).connect() as connection:
            there = inspect(connection)
            revision: str | None = None
            if there.has_table("alembic_version"):
                revision = connection.scalar(text("SELECT version_num FROM alembic_version"))
            elif database.is_postgresql and (closed := connection.scalar(text(CLOSED))):
                raise NotPermitted(database.url, f"permission denied for schema {closed}")
            if revision is not None and not there.has_table(Campaign.__tablename__):
                raise SchemaForeign(database.url, revision)
            return revision
    except DBAPIError as error:
        raise database.unavailable(error.orig) from error


MOST_NAMED = 3
"""Number of missing or unknown columns that a message names."""

COLUMNS = {
    "sqlite": (
        "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'"
    ),
    "postgresql": (
        "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid "
        "WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'alembic_version'::regclass) "
        "AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped"
    ),
}
"""Query for all columns of all tables.
A server's catalogues are readable without rights on the tables."""


def _require_columns(database: Database) -> None:
    """Raise if the tables have other columns than the models.

    Databases of unreleased versions have such tables.
    """
    with database.named_errors(), database.engine.execution_options(**{READS: True}).connect() as connection:
        rows = connection.execute(text(COLUMNS[connection.dialect.name]))
        found = {(table, column) for table, column in rows if table in Base.metadata.tables}
    known = {(table.name, column.name) for table in Base.metadata.tables.values() for column in table.columns}
    gone = Base.metadata.tables.keys() - {table for table, _ in found}
    lacking, unknown = (
        [f"{table}.{column}" for table, column in sorted(some) if table not in gone]
        for some in (known - found, found - known)
    )
    if gone or lacking or unknown:
        raise SchemaDiffers(database.url, _few(sorted(gone)), _few(lacking), _few(unknown))


def _few(names: list[str]) -> list[str]:
    more = len(names) - MOST_NAMED
    return names if more <= 0 else [*names[:MOST_NAMED], f"{more} more"]


def _require_named_schema(database: Database) -> None:
    """Raise if the first schema in the URL does not exist.

    PostgreSQL would create tables in another schema.
    """
    if "search_path" not in str(database.engine.url.query.get("options", "")):
        return
    with database.named_errors(), database.engine.connect() as connection:
        found = connection.execute(text(PASSED_OVER)).first()
    if found is not None:
        raise StorageUnavailable(
            database.url,
            f"its search_path begins with the schema {found[0]}, which does not exist, so tables would be "
            f"created in {found[1]}",
            f"create it (CREATE SCHEMA {found[0]}), or correct the URL, then run the command again",
        )


def _migrate(database: Database) -> None:
    from alembic import command

    from winnow.storage.migrations.settings import alembic_config

    try:
        command.upgrade(alembic_config(database), "head")
    except DBAPIError as error:
        if "already exists" in (said := cause(error)):
            raise StorageUnavailable(database.url, said, A_PLACE_OF_ITS_OWN) from error
        raise database.unavailable(error.orig) from error

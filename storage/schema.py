"""Bringing a database to the schema of this release, and refusing those it cannot serve."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import inspect
from sqlalchemy.exc import DatabaseError

from storage.database import Database
from storage.errors import SchemaMissing, SchemaOutdated, SchemaTooNew, StorageUnavailable

MIGRATIONS = Path(__file__).parent / "migrations"


def upgrade(database: Database) -> tuple[str | None, str]:
    """Migrate to the newest revision; return the revisions before and after.

    Raises:
        SchemaTooNew: If a newer Winnow wrote the database.
        StorageUnavailable: If the database cannot be read or written.
    """
    before = current_revision(database)
    if before is not None and before not in known_revisions():
        raise SchemaTooNew(database.url, before, head_revision())
    if before != head_revision():
        config = alembic_config()
        config.attributes["database"] = database
        command.upgrade(config, "head")
    return before, head_revision()


def ensure_schema(database: Database) -> None:
    """Create the tables in an empty database; refuse one of another release.

    Raises:
        SchemaOutdated: If an older Winnow wrote it: an upgrade is the user's decision.
        SchemaTooNew: If a newer Winnow wrote it.
        StorageUnavailable: If the database cannot be read or written.
    """
    if current_revision(database) is None:
        upgrade(database)
    require_schema(database)


def require_schema(database: Database) -> None:
    """Refuse a database that is not of exactly this release's schema.

    Raises:
        SchemaMissing: If it holds no Winnow tables.
        SchemaOutdated: If an older Winnow wrote it.
        SchemaTooNew: If a newer Winnow wrote it.
        StorageUnavailable: If it cannot be read.
    """
    revision = current_revision(database)
    if revision is None:
        raise SchemaMissing(database.url)
    if revision not in known_revisions():
        raise SchemaTooNew(database.url, revision, head_revision())
    if revision != head_revision():
        raise SchemaOutdated(database.url, revision, head_revision())


def current_revision(database: Database) -> str | None:
    """The revision the database is at, or None where there are no Winnow tables."""
    try:
        with database.engine.connect() as connection:
            if not inspect(connection).has_table("alembic_version"):
                return None
            return MigrationContext.configure(connection).get_current_revision()
    except DatabaseError as error:
        raise StorageUnavailable(database.url, str(error.orig)) from error


def head_revision() -> str:
    """The newest revision this release knows."""
    head = ScriptDirectory.from_config(alembic_config()).get_current_head()
    assert head is not None, "the package ships at least one migration"
    return head


def known_revisions() -> set[str]:
    """All revisions this release can upgrade from."""
    return {script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions()}


def alembic_config() -> Config:
    """Alembic's settings, without an ini file: the migrations travel inside the package."""
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    return config

"""Reading a results database, as every command that only asks does."""

from collections.abc import Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@contextmanager
def reading(storage: str) -> "Generator[Session, None, None]":
    """A read-only session on a database that is there and of this release.

    Raises:
        StorageError: If there is none, or it is of another release.
    """
    # Imported here, so that `--help` of the commands that read need not wait for SQLAlchemy.
    from winnow.storage.admin.schema import require_schema
    from winnow.storage.engine.database import open_database

    with closing(open_database(storage, read_only=True)) as database:
        require_schema(database)
        with database.reading() as session:
            yield session

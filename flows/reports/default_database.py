"""Open the database of a reading command; by default the last one used in the working folder.

Commands that write take their database from the campaign's file or an option. Reading commands can also use a
note of the last databases, and print its URL. The note is in the user's state folder, because a note in the
working folder may come from a third party.
"""

import contextlib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from winnow.tasks.plugins.own_files import state_folder, write_whole
from winnow.tasks.spec.stored_spec import DEFAULT_STORAGE

if TYPE_CHECKING:
    from sqlalchemy.orm import Session


@contextmanager
def reading(storage: str) -> "Generator[Session, None, None]":
    """Open a read-only session on an existing database of this release.

    Raises:
        StorageError: If the database is missing or from another release.
    """
    # Imported here, so that `--help` of reading commands does not wait for SQLAlchemy.
    from winnow.storage.admin import schema

    with schema.reading(storage) as session:
        yield session


def tell_if_unreadable(storage: str) -> None:
    """Print why a page cannot show a database; print nothing if the database can be read.

    This is only a warning, because the database may be created later.
    """
    from winnow.flows.reports.output import tell
    from winnow.storage.engine.database import shown_url
    from winnow.storage.errors import StorageError
    from winnow.tasks.text.printable import one_line

    try:
        with reading(storage):
            return
    except StorageError as error:
        what = str(error)
    if not may_be_there(storage):
        place = shown_url(storage)
        what = f"there is no database {place}; the page stays empty until a campaign is stored there"
    tell(one_line(what))


DEFAULT_FILE = Path(DEFAULT_STORAGE.removeprefix("sqlite:///"))
NOTE = "last-database"
"""Name of the note, a file in the user's state folder."""

MOST_NOTED = 5
"""Maximum number of databases in the note."""


def remember(storage: str) -> None:
    """Add a database to the note as the last one used, unless its URL contains a password."""
    from winnow.storage.engine.database import shown_url

    if shown_url(storage) == storage:
        with contextlib.suppress(OSError, RuntimeError):  # the user has no writable state folder
            urls = dict.fromkeys([storage, *_read_note()])
            write_whole(state_folder() / NOTE, "".join(f"{each}\n" for each in list(urls)[:MOST_NOTED]))


def to_read(storage: str) -> str:
    """The database to read, see `last_used`; print a message if it is not the given one."""
    from winnow.flows.reports.output import tell
    from winnow.tasks.text.printable import one_line

    found = last_used(storage)
    if found != storage:
        tell(f"reading {one_line(found)}, the database last used here; choose another with --storage URL")
    return found


def last_used(storage: str) -> str:
    """URL of the given database; if it is the default one and does not exist, of the last one used.

    Databases whose file was deleted, such as that of a trial, are skipped.
    """
    if storage != DEFAULT_STORAGE or DEFAULT_FILE.exists():
        return storage
    return next((each for each in _read_note() if may_be_there(each)), storage)


def _read_note() -> list[str]:
    """URLs of the databases in the note, last used first; empty if the note cannot be read."""
    try:
        text = (state_folder() / NOTE).read_text(encoding="utf-8")
    except (OSError, RuntimeError, UnicodeDecodeError):
        return []
    return [line for line in text.split("\n") if line.strip()]


def may_be_there(storage: str) -> bool:
    """Whether a SQLite file exists; always True for servers, because this contacts none."""
    scheme, _, path = storage.partition(":///")
    return not scheme.startswith("sqlite") or Path(path.partition("?")[0]).exists()

"""The database of a reading command: opened read-only, by default the last one used in a folder.

Commands that write take their database from the campaign's file or an option. Only reading commands use a
note of the last database, and report it. The note is in the user's state folder, keyed by the working
folder's path, because a note in the working folder may come from a third party.
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
    """A read-only session on an existing database of this release.

    Raises:
        StorageError: If the database is missing or of another release.
    """
    # Imported here, so that `--help` of the commands that read need not wait for SQLAlchemy.
    from winnow.storage.admin import schema

    with schema.reading(storage) as session:
        yield session


def tell_if_unreadable(storage: str) -> None:
    """Print why a page that is about to be served cannot show anything; the database may be created later."""
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
"""The name of the note in the user's state folder."""

MOST_NOTED = 5
"""Maximum number of databases in the note."""


def remember(storage: str) -> None:
    """Note a campaign's database, unless its URL contains a password."""
    from winnow.storage.engine.database import shown_url

    if shown_url(storage) == storage:
        with contextlib.suppress(OSError, RuntimeError):  # a user who can keep nothing has no note
            known = dict.fromkeys([storage, *_noted()])
            write_whole(state_folder() / NOTE, "".join(f"{each}\n" for each in list(known)[:MOST_NOTED]))


def to_read(storage: str) -> str:
    """The database to read, as `last_used` returns it, with a message if it is not the given one."""
    from winnow.flows.reports.output import tell
    from winnow.tasks.text.printable import one_line

    found = last_used(storage)
    if found != storage:
        tell(f"reading {one_line(found)}, the database last used here; choose another with --storage URL")
    return found


def last_used(storage: str) -> str:
    """The given database, or the last one used if the default one is given and does not exist.

    Databases whose file has been deleted, such as that of a trial, are skipped.
    """
    if storage != DEFAULT_STORAGE or DEFAULT_FILE.exists():
        return storage
    return next((each for each in _noted() if may_be_there(each)), storage)


def _noted() -> list[str]:
    """The databases in the note, the last used one first."""
    try:
        text = (state_folder() / NOTE).read_text(encoding="utf-8")
    except (OSError, RuntimeError, UnicodeDecodeError):
        return []
    return [line for line in text.split("\n") if line.strip()]


def may_be_there(storage: str) -> bool:
    """Whether a database may exist; always True for servers, which would have to be contacted."""
    scheme, _, path = storage.partition(":///")
    return not scheme.startswith("sqlite") or Path(path.partition("?")[0]).exists()

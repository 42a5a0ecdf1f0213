"""The database that a command reads: opened for nothing else, and by default the one last used in a folder.

Whatever writes is told its database, by its file or an option; only readers go by a note, and say so. The
note lies with the user, by the folder's path: one in the folder may be a stranger's.
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
    """A read-only session on a database that is there and of this release.

    Raises:
        StorageError: If there is none, or it is of another release.
    """
    # Imported here, so that `--help` of the commands that read need not wait for SQLAlchemy.
    from winnow.storage.admin import schema

    with schema.reading(storage) as session:
        yield session


def tell_if_unreadable(storage: str) -> None:
    """Tell what keeps a page that is about to be served from showing anything; a database may still come."""
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
"""Databases that are noted."""


def remember(storage: str) -> None:
    """Note a database that a campaign was stored in; one whose URL holds a password is not noted."""
    from winnow.storage.engine.database import shown_url

    if shown_url(storage) == storage:
        with contextlib.suppress(OSError, RuntimeError):  # a user who can keep nothing has no note
            known = dict.fromkeys([storage, *_noted()])
            write_whole(state_folder() / NOTE, "".join(f"{each}\n" for each in list(known)[:MOST_NOTED]))


def to_read(storage: str) -> str:
    """The database to read, said where it is not the one named; see `last_used`."""
    from winnow.flows.reports.output import tell
    from winnow.tasks.text.printable import one_line

    found = last_used(storage)
    if found != storage:
        tell(f"reading {one_line(found)}, the database last used here; choose another with --storage URL")
    return found


def last_used(storage: str) -> str:
    """The database that is named, or the last one used where the default one is named and is not there.

    One whose file is gone, as that of a trial is, hides none that was used before it.
    """
    if storage != DEFAULT_STORAGE or DEFAULT_FILE.exists():
        return storage
    return next((each for each in _noted() if may_be_there(each)), storage)


def _noted() -> list[str]:
    """The databases of the note, the last one used first."""
    try:
        text = (state_folder() / NOTE).read_text(encoding="utf-8")
    except (OSError, RuntimeError, UnicodeDecodeError):
        return []
    return [line for line in text.split("\n") if line.strip()]


def may_be_there(storage: str) -> bool:
    """Whether a database may be there; of a server nobody knows before it is asked."""
    scheme, _, path = storage.partition(":///")
    return not scheme.startswith("sqlite") or Path(path.partition("?")[0]).exists()

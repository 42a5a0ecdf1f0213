"""Access to the database: each look has a session of its own, and an error becomes a sentence on the page."""

import os
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

from sqlalchemy.orm import Session

from winnow.flows.reports.dashboard import ALLOW_LABELS_VARIABLE, STORAGE_VARIABLE
from winnow.flows.reports.dashboard.widgets import show_problem
from winnow.storage.admin.schema import existing, require_schema
from winnow.storage.engine.database import Database, open_database
from winnow.storage.engine.statements import give_up_after
from winnow.storage.errors import StorageError
from winnow.tasks.errors import WinnowError

PATIENCE = 10.0
"""Seconds that a reader waits before a question is aborted."""


@contextmanager
def asking(patience: float | None = None) -> Generator[Session, None, None]:
    """A read-only session on the database of the page, to be left before anything is drawn.

    Args:
        patience: Seconds until what is asked is aborted; None is `PATIENCE`.

    Raises:
        StorageError: If it is not there, or of another release.
    """
    seconds = PATIENCE if patience is None else patience
    database = _opened(os.environ[STORAGE_VARIABLE])
    require_schema(database)
    with database.reading() as session, give_up_after(session, seconds):
        yield session


@cache
def _opened(url: str) -> Database:
    """The database, whose every session has a connection of its own; what was compiled for it is kept."""
    return open_database(url, read_only=True)


@contextmanager
def labelling() -> Generator[Database, None, None]:
    """The database of the page to store judgments in, where the page was started for that.

    Raises:
        WinnowError: If it was not.
        StorageError: If it is not there, or of another release.
    """
    if not os.environ.get(ALLOW_LABELS_VARIABLE):
        raise WinnowError("this page only reads; start it with winnow view --allow-labels")
    with existing(os.environ[STORAGE_VARIABLE]) as database:
        yield database


@contextmanager
def problems_shown() -> Generator[None, None, None]:
    """Leave the block at an error that a user can act on, and say it on the page."""
    try:
        yield
    except (StorageError, WinnowError) as error:
        show_problem(str(error))

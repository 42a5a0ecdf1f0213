"""Database access of the dashboard; errors are shown as sentences on the page."""

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache

import streamlit as st
from sqlalchemy.orm import Session

from winnow.flows.reports.dashboard import ALLOW_LABELS_VARIABLE, STORAGE_VARIABLE
from winnow.flows.reports.dashboard.widgets import choose_campaign, show_problem
from winnow.storage.admin.schema import damage_named, existing, require_schema
from winnow.storage.engine.database import Database, open_database
from winnow.storage.engine.statements import give_up_after
from winnow.storage.errors import StorageError
from winnow.storage.records.campaigns import readable_campaigns
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.errors import WinnowError

PATIENCE = 10.0
"""Default number of seconds after which a query is aborted."""


@contextmanager
def read_session(patience: float | None = None) -> Generator[Session, None, None]:
    """Open a read-only session on the page's database; close it before drawing.

    Args:
        patience: Seconds after which a query is aborted; None is `PATIENCE`.

    Raises:
        StorageError: If the database is missing or was written by another release.
    """
    seconds = PATIENCE if patience is None else patience
    database = _database_at(os.environ[STORAGE_VARIABLE])
    require_schema(database)
    with damage_named(database), database.reading() as session, give_up_after(session, seconds):
        yield session


@cache
def _database_at(url: str) -> Database:
    """Open a database for reading; the result is cached, and with it compiled statements."""
    return open_database(url, read_only=True)


@contextmanager
def writable_database() -> Generator[Database, None, None]:
    """Open the page's database to store judgments.

    Raises:
        WinnowError: If the page was not started with `--allow-labels`.
        StorageError: If the database is missing or was written by another release.
    """
    if not os.environ.get(ALLOW_LABELS_VARIABLE):
        raise WinnowError("this page is read-only; to write, start it with winnow view --allow-labels")
    with existing(os.environ[STORAGE_VARIABLE]) as database:
        yield database


def on_campaign(title: str, show: Callable[[CampaignRecord, Sequence[CampaignRecord]], None]) -> None:
    """Show a page about the campaign that the reader selects.

    Args:
        title: Title of the page.
        show: Shows the rest of the page. Its arguments are the campaign, and all campaigns of the database,
            oldest first.
    """
    st.title(title)
    with show_errors():
        with read_session() as session:
            records = readable_campaigns(session)[0]
        if name := choose_campaign([each.name for each in records]):
            show(next(each for each in records if each.name == name), records)


@contextmanager
def show_errors() -> Generator[None, None, None]:
    """Show a `StorageError` or `WinnowError` of the block on the page instead of raising it."""
    try:
        yield
    except (StorageError, WinnowError) as error:
        show_problem(str(error))

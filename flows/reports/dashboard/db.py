"""Database access of the page: each look has its own session, and errors become sentences on the page."""

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
"""Seconds until a query is aborted."""


@contextmanager
def asking(patience: float | None = None) -> Generator[Session, None, None]:
    """Open a read-only session on the page's database; leave it before drawing.

    Args:
        patience: Seconds until a query is aborted; None is `PATIENCE`.

    Raises:
        StorageError: If the database is missing or was written by another release.
    """
    seconds = PATIENCE if patience is None else patience
    database = _opened(os.environ[STORAGE_VARIABLE])
    require_schema(database)
    with damage_named(database), database.reading() as session, give_up_after(session, seconds):
        yield session


@cache
def _opened(url: str) -> Database:
    """The database with one connection per session; compiled statements are cached."""
    return open_database(url, read_only=True)


@contextmanager
def labelling() -> Generator[Database, None, None]:
    """Open the page's database to store judgments.

    Raises:
        WinnowError: If the page was not started with `--allow-labels`.
        StorageError: If the database is missing or was written by another release.
    """
    if not os.environ.get(ALLOW_LABELS_VARIABLE):
        raise WinnowError("this page only reads; start it with winnow view --allow-labels")
    with existing(os.environ[STORAGE_VARIABLE]) as database:
        yield database


def on_campaign(title: str, show: Callable[[CampaignRecord, Sequence[CampaignRecord]], None]) -> None:
    """Show a page on the campaign that the user selects.

    Args:
        title: Title of the page.
        show: Shows the rest of the page. Receives the campaign, and all of the database, oldest first.
    """
    st.title(title)
    with problems_shown():
        with asking() as session:
            records = readable_campaigns(session)[0]
        if name := choose_campaign([each.name for each in records]):
            show(next(each for each in records if each.name == name), records)


@contextmanager
def problems_shown() -> Generator[None, None, None]:
    """Show a `StorageError` or `WinnowError` of the block on the page instead of raising it."""
    try:
        yield
    except (StorageError, WinnowError) as error:
        show_problem(str(error))

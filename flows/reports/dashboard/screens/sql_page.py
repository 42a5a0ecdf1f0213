"""Questions in SQL, each answered by a process of its own. It only reads; the text is not looked at."""

import os
from itertools import islice

import streamlit as st

from winnow.flows.reports.dashboard import STORAGE_VARIABLE, db
from winnow.flows.reports.dashboard.frames import table_frame
from winnow.flows.reports.dashboard.widgets import show_rows
from winnow.flows.reports.sql_answers import MIB, Bounds, answered
from winnow.storage.queries import browse as browse_views

MOST_ROWS, MOST_BYTES = 1_000, 32 * MIB

EXAMPLE = """\
SELECT c.name AS campaign, count(*) AS comparisons, avg(k.outcome) AS mean
FROM comparisons k
JOIN rounds r ON r.id = k.round_id
JOIN campaigns c ON c.id = r.campaign_id
GROUP BY c.id, c.name"""


def show() -> None:
    """The page."""
    st.title("SQL")
    st.caption(
        f"The database is read-only here. The first {MOST_ROWS:,} rows are shown; what takes longer than "
        f"{db.PATIENCE:g} seconds is broken off."
    )
    with st.form("sql", border=False, enter_to_submit=False):
        statement = st.text_area("Statement", EXAMPLE, height=180)
        asked = st.form_submit_button("Ask", type="primary")
    if asked and statement.strip():
        with db.problems_shown():
            _answer(statement)
    with db.problems_shown(), st.expander("Tables and columns"):
        with db.asking() as session:
            known = browse_views.columns(session)
        show_rows(known, key="columns")


def _answer(statement: str) -> None:
    columns, rows = first_rows(statement)
    if not rows:
        st.text("No rows.")
        return
    more = len(rows) > MOST_ROWS
    st.dataframe(table_frame(columns, rows[:MOST_ROWS]), hide_index=True, key="answer")
    st.caption(f"The first {MOST_ROWS:,} rows; there are more." if more else f"{len(rows):,} rows")


def first_rows(statement: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """Columns of an answer, and its rows up to one more than are shown.

    Raises:
        StorageError: If the database cannot be read, refuses the statement, or it meets a bound.
    """
    bounds = Bounds(seconds=db.PATIENCE, bytes=MOST_BYTES)
    with answered(os.environ[STORAGE_VARIABLE], statement, bounds) as (columns, rows):
        return columns, list(islice(rows, MOST_ROWS + 1))

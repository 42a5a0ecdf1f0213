"""The page SQL: a separate process runs each statement read-only; statements are not inspected."""

import os
from collections.abc import Sequence
from itertools import islice

import streamlit as st

from winnow.flows.reports.dashboard import STORAGE_VARIABLE, db
from winnow.flows.reports.dashboard.frames import table_frame, unique_names
from winnow.flows.reports.dashboard.sql_editor import LABEL, sql_editor
from winnow.flows.reports.dashboard.widgets import show_rows
from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.rows.formats import spreadsheet_lines
from winnow.flows.reports.sql_answers import MIB, Bounds, answered
from winnow.storage.json_types import Row
from winnow.storage.queries import browse as browse_views
from winnow.storage.queries.view_columns import VIEWS
from winnow.tasks.queries.views import untyped_cell

MOST_ROWS, MOST_BYTES = 1_000, 32 * MIB

EXAMPLE = """\
SELECT campaign, candidate, estimate, lower, upper, status
FROM v_leaderboard
WHERE estimate IS NOT NULL
ORDER BY campaign, estimate DESC"""
"""Example statement; its view does not become slower with more comparisons."""


def show() -> None:
    """Show the page."""
    st.title("SQL")
    st.caption(
        f"The database is read-only here. The first {MOST_ROWS:,} rows are shown. A statement that takes "
        f"longer than {db.PATIENCE:g} seconds is stopped."
    )
    known: list[Row] = []
    with db.show_errors(), db.read_session() as session:
        known = browse_views.columns(session)
    with st.form("sql", border=False, enter_to_submit=False):
        statement = st.text_area(LABEL, EXAMPLE, height=180)
        sql_editor(by_table(known))
        is_submitted = st.form_submit_button("Run")
    if is_submitted and statement.strip():
        with db.show_errors():
            _answer(statement)
    _show_names(known)


def by_table(known: Sequence[Row]) -> dict[str, list[str]]:
    """View or table -> its columns; the documented views are first."""
    found: dict[str, list[str]] = {
        view: [name for name in columns if name] for view, columns in VIEWS.items()
    }
    for row in known:
        if row["table"] not in VIEWS:
            found.setdefault(row["table"], []).append(row["column"])
    return found


def _show_names(known: Sequence[Row]) -> None:
    st.header("Views")
    st.caption(
        "The same views exist in every database. The first column of each view except v_campaigns is the "
        "campaign; unknown values are NULL."
    )
    for view, columns in VIEWS.items():
        with st.expander(f"{view}: {columns['']}"):
            show_rows(
                [{"column": name, "meaning": meaning} for name, meaning in columns.items() if name], key=view
            )
    with st.expander("Tables and their columns (can change with a release)"):
        show_rows([row for row in known if row["table"] not in VIEWS], key="columns")


def _answer(statement: str) -> None:
    columns, rows = first_rows(statement)
    if not rows:
        st.text("No rows.")
        return
    more = len(rows) > MOST_ROWS
    st.dataframe(table_frame(columns, rows[:MOST_ROWS]), hide_index=True, key="answer")
    st.caption(f"The first {MOST_ROWS:,} rows; there are more." if more else f"{len(rows):,} rows")
    st.download_button(
        "Download the answer", as_csv(columns, rows[:MOST_ROWS]), "answer.csv", "text/csv", on_click="ignore"
    )


def as_csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Rows as CSV for a spreadsheet, in which no text is read as a formula."""
    names = unique_names(columns)
    cells = (
        {
            name: readable(cell) if isinstance(cell := untyped_cell(value), str) else cell
            for name, value in zip(names, row, strict=True)
        }
        for row in rows
    )
    return "".join(spreadsheet_lines(names, cells))


def first_rows(statement: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """Run a statement; return its columns and at most `MOST_ROWS` + 1 rows.

    Raises:
        StorageError: If the database cannot be read or refuses the statement, or the statement exceeds a
            limit.
    """
    bounds = Bounds(seconds=db.PATIENCE, bytes=MOST_BYTES)
    with answered(os.environ[STORAGE_VARIABLE], statement, bounds) as (columns, rows):
        return columns, list(islice(rows, MOST_ROWS + 1))

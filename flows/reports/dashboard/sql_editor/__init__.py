"""Help for writing a SQL statement: names of views and columns, and statements stored in the browser."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

LABEL = "Statement"
"""Label of the text box that gets the help."""


def sql_editor(columns: Mapping[str, Sequence[str]]) -> None:
    """Add help to the text box with the label `LABEL` on the same page; the box also works without help.

    Args:
        columns: View or table -> names of its columns.
    """
    _component()(
        data={"label": LABEL, "columns": {name: list(each) for name, each in columns.items()}},
        key="sql-editor",
    )


@cache
def _component() -> ComponentRenderer:
    folder = files("winnow.flows.reports.dashboard.sql_editor")
    html, css, js = ((folder / f"editor.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    return st.components.v2.component("winnow_sql_editor", html=html, css=css, js=js, isolate_styles=False)

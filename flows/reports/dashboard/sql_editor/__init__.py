"""Browser help for writing a statement: names of views and columns, and statements stored there."""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import streamlit as st
from streamlit.components.v2.types import ComponentRenderer

LABEL = "Statement"
"""Label of the supported box."""


def sql_editor(columns: Mapping[str, Sequence[str]]) -> None:
    """Add help to the box labelled `LABEL` on the same page, which also works without it.

    Args:
        columns: Available columns, by view or table.
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

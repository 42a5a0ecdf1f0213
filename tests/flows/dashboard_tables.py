"""Pages of the dashboard without a browser, and clicks on their tables: `AppTest` offers none."""

import json
from collections.abc import Mapping

from streamlit.proto.WidgetStates_pb2 import WidgetState
from streamlit.testing.v1 import AppTest

ARGUMENTS = {
    "campaigns_page": "lambda: None",
    "campaign_page": "*2 * [lambda label, parameters: st.text(f'{label} {dict(parameters)}')]",
}
"""What the app gives to these pages; links to other pages are shown as texts."""


def script(page: str) -> str:
    """A script that shows one page of the dashboard, by the name of its module."""
    return (
        "import streamlit as st\n"
        f"from winnow.flows.reports.dashboard.screens import {page}\n"
        f"{page}.show({ARGUMENTS.get(page, '')})\n"
    )


def click_on(page: AppTest, selections: Mapping[str, Mapping[str, object]]) -> None:
    """Run a page again as if tables had been clicked: what a browser sends joins all other controls' values.

    Args:
        page: Has been run.
        selections: The rows, columns and cells that are selected, by the id of the table; those of tables
            that the page does not show are left out.
    """
    states = page._tree.get_widget_states()
    for table in page.dataframe:
        if selected := selections.get(table.proto.id):
            value = json.dumps({"selection": selected})
            states.widgets.append(WidgetState(id=table.proto.id, string_value=value))
    page._run(states)

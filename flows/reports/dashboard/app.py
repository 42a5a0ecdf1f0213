"""The script of `winnow view`'s pages; streamlit runs it for every reader and again after every click."""

import os
from collections.abc import Mapping
from functools import partial

import streamlit as st
from streamlit.navigation.page import StreamlitPage

from winnow.flows.reports.dashboard import ALLOW_LABELS_VARIABLE
from winnow.flows.reports.dashboard.screens import (
    campaign_page,
    campaigns_page,
    compare_page,
    comparisons_page,
    factors_page,
    judges_page,
    label_page,
    matrix_page,
    over_time_page,
    sql_page,
)
from winnow.flows.reports.dashboard.widgets import STYLE

SIDEBAR = 240
"""Width of the page list, in pixels."""

st.set_page_config(page_title="Winnow", layout="wide", initial_sidebar_state=SIDEBAR)
st.html(STYLE)

compare = st.Page(compare_page.show, title="Compare", url_path="compare")
comparisons = st.Page(comparisons_page.show, title="Comparisons", url_path="comparisons")


def link(page: StreamlitPage, label: str, parameters: Mapping[str, str]) -> None:
    """Draw a link to a page with these address parameters."""
    st.page_link(page, label=label, query_params=parameters)


def show_campaign() -> None:
    """Show the page of a campaign, with links to other pages."""
    campaign_page.show(partial(link, comparisons), partial(link, compare))


campaign = st.Page(show_campaign, title="Campaign", url_path="campaign")
campaigns = st.Page(
    partial(campaigns_page.show, partial(st.switch_page, campaign)),
    title="Campaigns",
    url_path="campaigns",
    default=True,
)
over_time = st.Page(over_time_page.show, title="Over time", url_path="over-time")
matrix = st.Page(matrix_page.show, title="Matrix", url_path="matrix")
factors = st.Page(factors_page.show, title="Factors", url_path="factors")
judges = st.Page(judges_page.show, title="Judges", url_path="judges")
sql = st.Page(sql_page.show, title="SQL", url_path="sql")

label = st.Page(label_page.show, title="Label", url_path="label")

pages = [campaigns, over_time, campaign, matrix, compare, factors, judges, comparisons, sql]
st.navigation([*pages, label] if os.environ.get(ALLOW_LABELS_VARIABLE) else pages).run()

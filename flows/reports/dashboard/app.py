"""The page that `winnow view` serves: streamlit runs this file again for every reader and every click."""

import os
from functools import partial

import streamlit as st

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

st.set_page_config(page_title="Winnow", layout="wide")
st.html(STYLE)

campaign = st.Page(campaign_page.show, title="Campaign", url_path="campaign")
campaigns = st.Page(
    partial(campaigns_page.show, partial(st.switch_page, campaign)),
    title="Campaigns",
    url_path="campaigns",
    default=True,
)
over_time = st.Page(over_time_page.show, title="Over time", url_path="over-time")
matrix = st.Page(matrix_page.show, title="Matrix", url_path="matrix")
compare = st.Page(compare_page.show, title="Compare", url_path="compare")
factors = st.Page(factors_page.show, title="Factors", url_path="factors")
judges = st.Page(judges_page.show, title="Judges", url_path="judges")
comparisons = st.Page(comparisons_page.show, title="Comparisons", url_path="comparisons")
sql = st.Page(sql_page.show, title="SQL", url_path="sql")

label = st.Page(label_page.show, title="Label", url_path="label")

pages = [campaigns, over_time, campaign, matrix, compare, factors, judges, comparisons, sql]
st.navigation([*pages, label] if os.environ.get(ALLOW_LABELS_VARIABLE) else pages).run()

"""A browser of single comparisons: filters, a page of the newest ones, and one of them with all its texts."""

from collections.abc import Sequence

import streamlit as st

from winnow.flows.reports.dashboard.db import asking, problems_shown
from winnow.flows.reports.dashboard.screens.campaign_picker import choose_campaign
from winnow.flows.reports.dashboard.screens.comparison_view import show_comparison
from winnow.flows.reports.dashboard.screens.filters import ask_filters
from winnow.flows.reports.dashboard.widgets import opened_pages, pick_row, shown_of_pages
from winnow.storage.json_types import Row
from winnow.storage.queries import browse as browse_views
from winnow.storage.queries.browse import Place
from winnow.storage.records import campaigns as campaign_records

PAGE = 50
"""Rows that are shown at once."""
PREVIEW = 200
"""Characters of each answer in the table."""
TABLE_HEIGHT = 320
"""Pixels: about eight rows, so that the comparison below is seen at once."""

STARTS = "starts of pages"
"""In the reader's session: what is asked for, and before which place each page that was opened begins."""


def show() -> None:
    """The page."""
    st.title("Comparisons")
    with problems_shown():
        with asking() as session:
            names = [each.name for each in campaign_records.campaigns(session)]
        if name := choose_campaign(names):
            _browse(name)


def _browse(name: str) -> None:
    with asking() as session:
        campaign = campaign_records.get_campaign(session, name)
        choices = browse_views.choices(session, campaign.id)
    filters = ask_filters(choices, lowest=-1.0 if campaign.objective == "route" else 0.0)
    starts: list[Place] = opened_pages(STARTS, (campaign.id, filters), list)
    with asking() as session:
        rows = browse_views.comparisons(
            session,
            campaign.id,
            filters,
            before=starts[-1] if starts else None,
            most=PAGE + 1,
            characters=PREVIEW,
        )
    if not rows:
        st.text("No comparison is like this.")
        return
    if not starts:
        # Else a row that is clicked would be another one once a running campaign has added to the top.
        starts.append((rows[0]["round"], rows[0]["position"] + 1))
    chosen = _table(rows[:PAGE])
    _turn(starts, rows)
    whole = st.toggle("Whole texts", help="Otherwise only the first part of very long ones is read.")
    show_comparison(campaign, rows[chosen or 0]["id"], whole=whole)


def _table(rows: Sequence[Row]) -> int | None:
    st.caption("Newest first. Click the box before a comparison to read it below.")
    shown = [{key: value for key, value in row.items() if key != "id"} for row in rows]
    # What was chosen on one page is not chosen on the next.
    return pick_row(shown, key=f"comparisons-{rows[0]['id']}-{rows[-1]['id']}", height=TABLE_HEIGHT)


def _turn(starts: list[Place], rows: Sequence[Row]) -> None:
    newest, newer, older, where = st.columns([1, 1, 1, 5], vertical_alignment="center")
    if newest.button("Newest", width="stretch"):
        starts.clear()
        st.rerun()
    if newer.button("Newer", disabled=len(starts) < 2, width="stretch"):
        starts.pop()
        st.rerun()
    if older.button("Older", disabled=len(rows) <= PAGE, width="stretch"):
        starts.append((rows[PAGE - 1]["round"], rows[PAGE - 1]["position"]))
        st.rerun()
    where.caption(shown_of_pages(len(starts), len(rows), most=PAGE))

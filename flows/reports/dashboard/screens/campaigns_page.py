"""All campaigns of the database, and where each stands."""

from collections.abc import Callable

import streamlit as st
from sqlalchemy.orm import Session

from winnow.flows.reports.dashboard.db import asking, problems_shown
from winnow.flows.reports.dashboard.widgets import NO_CAMPAIGNS, pick_row, remember_campaign
from winnow.storage.json_types import Row
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.sentences.lines import headline
from winnow.tasks.answer.sentences.phrases import list_of
from winnow.tasks.queries.status import campaign_status

EVERY = 5.0
"""Seconds between two looks."""


def show(open_campaign: Callable[[], None]) -> None:
    """The page.

    Args:
        open_campaign: Leaves for the page of a campaign, once it is remembered which.
    """
    st.title("Campaigns")
    st.fragment(_table, run_every=EVERY)(open_campaign)


def _table(open_campaign: Callable[[], None]) -> None:
    with problems_shown():
        with asking() as session:
            rows = campaign_rows(session)
        if not rows:
            st.text(NO_CAMPAIGNS)
            return
        chosen = pick_row(rows, key="campaigns")
        if chosen is not None:
            remember_campaign(rows[chosen]["campaign"])
            open_campaign()
        st.caption("Click the box before a campaign to look at it.")


def campaign_rows(session: Session) -> list[Row]:
    """One row per campaign, newest first."""
    rows = []
    for record in reversed(campaign_records.campaigns(session)):
        each = campaign_status(session, record)
        rows.append(
            {
                "campaign": each.name,
                "objective": each.objective,
                "state": headline(each.answer, each.state),
                "best": list_of(each.answer.listed) or None,
                "estimate": each.answer.listed_estimate,
                "held_out": each.answer.listed_held_out,
                "comparisons": each.totals["answered"],
                "of grid": f"{each.share_of_grid:.1%}",
                "begun (UTC)": f"{record.created_at:%Y-%m-%d %H:%M}",
            }
        )
    return rows

"""The page Campaigns: all campaigns of the database with their status."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import streamlit as st
from sqlalchemy.orm import Session

from winnow.flows.reports.dashboard.db import read_session, show_errors
from winnow.flows.reports.dashboard.widgets import (
    SHARE,
    pick_row,
    remember_campaign,
    show_no_campaigns,
)
from winnow.storage.json_types import Row
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.leases import unreleased
from winnow.storage.records.outcomes import latest_decision_ids
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.sentences.answer_lines import headline, subject
from winnow.tasks.campaign.look import Look
from winnow.tasks.queries.status import CampaignStatus, campaign_status, left_out
from winnow.tasks.text.phrases import list_of

EVERY = 5.0
"""Seconds between two updates of the table."""

PATIENCE = 60.0
"""Seconds after which a query is aborted; the first one reads all campaigns, later ones only changes."""

LAST_LOOK = "last look at all campaigns"
"""Session key of the rows of the last update."""


def show(open_campaign: Callable[[], None]) -> None:
    """Show the page.

    Args:
        open_campaign: Opens the page of the selected campaign.
    """
    st.title("Campaigns")
    st.fragment(_table, run_every=EVERY)(open_campaign)


def _table(open_campaign: Callable[[], None]) -> None:
    with show_errors():
        with read_session(PATIENCE) as session:
            wrong = list[str]()
            known = campaign_rows(session, st.session_state.get(LAST_LOOK, {}), wrong.append)
        for sentence in wrong:
            st.text(sentence)
        st.session_state[LAST_LOOK] = known
        rows = [each.row for each in known.values()]
        if not rows:
            show_no_campaigns()
            return
        st.caption("Click a campaign to open it.")
        chosen = pick_row(rows, key="campaigns", by_cell=True)
        if chosen is not None:
            remember_campaign(rows[chosen]["campaign"])
            open_campaign()


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedRow:
    """A campaign's row, with the state from which it was computed."""

    row: Row
    state: tuple[CampaignRecord, int | None] | None
    """The stored campaign and the id of its last decision.

    None if the row can change while these stay the same: while a process runs the campaign, or it waits for
    annotators."""


def campaign_rows(
    session: Session, known: Mapping[str, CachedRow], tell: Callable[[str], object] = lambda _: None
) -> dict[str, CachedRow]:
    """Name -> row of each campaign, newest first.

    Args:
        session: Session on the results database.
        known: Result of the previous call; rows of campaigns that have not changed are reused.
        tell: Called with a sentence for each campaign that cannot be read.
    """
    decisions, held = latest_decision_ids(session), {each.campaign_id for each in unreleased(session)}
    rows = {}
    records, wrong = campaign_records.readable_campaigns(session)
    for sentence in wrong:
        tell(str(sentence))
    for record in reversed(records):
        state = (record, decisions.get(record.id))
        last = known.get(record.name)
        if last is None or last.state != state or record.id in held:
            try:
                status = campaign_status(Look(session, record))
            except campaign_records.UNREADABLE as error:
                tell(f"campaign '{record.name}' {left_out(error)}")
                continue
            at_rest = status.holder is None and status.state != "waiting"
            last = CachedRow(row=_row(record, status), state=state if at_rest else None)
        rows[record.name] = last
    return rows


def _row(record: CampaignRecord, status: CampaignStatus) -> Row:
    return {
        "campaign": status.name,
        "state": headline(status.answer, status.state),
        "best": list_of(status.answer.listed) or (subject(status.answer) if status.answer.baseline else None),
        "estimate": status.answer.listed_estimate,
        "held_out": status.answer.listed_held_out,
        "comparisons": status.totals["answered"],
        SHARE: 100.0 * status.share_of_grid,
        "objective": status.objective,
        "begun (UTC)": f"{record.created_at:%Y-%m-%d %H:%M}",
    }

"""The page Campaign: a campaign's answer, its leaderboard and the figures of its report, live."""

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import streamlit as st
from sqlalchemy.orm import Session

from winnow.flows.reports.dashboard.db import read_session, show_errors
from winnow.flows.reports.dashboard.plots import show_figure
from winnow.flows.reports.dashboard.screens.comparisons_page import FAILURES
from winnow.flows.reports.dashboard.widgets import (
    as_plain,
    choose_campaign,
    pick_row,
    show_heading,
    show_rows,
    show_soft,
)
from winnow.flows.reports.html.figures.labels import readable, sentence
from winnow.flows.reports.html.model import Section
from winnow.flows.reports.html.sections.standard import PageCache, sections_of
from winnow.flows.reports.summary import lines_in_two, nothing_yet
from winnow.storage.json_types import Row
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records import leases
from winnow.storage.records import outcomes as outcome_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.sentences.clauses import Line
from winnow.tasks.campaign.lease import now, seems_gone
from winnow.tasks.campaign.look import Look
from winnow.tasks.data.garbage_collection import not_collecting
from winnow.tasks.queries.status import CampaignStatus, campaign_status
from winnow.tasks.queries.views import ask

PATIENCE = 60.0
"""Seconds after which reading a campaign's data is aborted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """Identifies the state of a campaign; the page is the same for equal versions."""

    campaign_id: int
    rounds: int
    """Number of finished rounds."""
    decided_at: dt.datetime | None
    is_live: bool
    """Whether a process runs the campaign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """All data that a campaign's page shows, from one state of the campaign."""

    version: Version
    status: CampaignStatus
    leaderboard: Sequence[Row]
    sections: Sequence[Section]
    read: PageCache
    """Cache for the same reader's next call."""


def look_at(name: str, last: Snapshot | None) -> Snapshot:
    """Read a campaign's current data; return `last` itself if nothing has changed since.

    Everything is read in one transaction, so that all parts of the page are consistent.

    Args:
        name: Name of the campaign.
        last: The reader's last snapshot, or None.

    Raises:
        StorageError: If the database cannot be read, or has no campaign of that name.
    """
    # A large campaign has hundreds of thousands of rows, which are kept, so garbage collection finds nothing.
    with not_collecting(), read_session(PATIENCE) as session:
        campaign = campaign_records.get_campaign(session, name)
        version = _version(session, campaign)
        if last is not None and last.version == version:
            return last
        read = PageCache() if last is None else last.read
        return Snapshot(
            version=version,
            status=campaign_status(Look(session, campaign), in_full=True),
            leaderboard=list(ask(Look(session, campaign), "leaderboard")),
            # Single comparisons are shown on a separate page.
            sections=sections_of(Look(session, campaign), with_samples=False, read=read),
            read=read,
        )


def _version(session: Session, campaign: CampaignRecord) -> Version:
    decision = outcome_records.latest_decision(session, campaign.id)
    lease = leases.find(session, campaign.id)
    return Version(
        campaign_id=campaign.id,
        rounds=decision.round_number + 1 if decision else 0,
        decided_at=decision.decided_at if decision else None,
        is_live=lease is not None and leases.is_live(lease, is_gone=partial(seems_gone, now=now())),
    )


EVERY = 2.0
"""Seconds between two checks for changes; nothing is computed or drawn again unless a round was finished."""

LAST_LOOK = "last look"
"""Session key of the last snapshot."""


Link = Callable[[str, Mapping[str, str]], None]
"""A function that draws a link with a label to a page with address parameters."""


def show(comparisons: Link, compare: Link) -> None:
    """Show the page.

    Args:
        comparisons: Draws a link to the page Comparisons.
        compare: Draws a link to the page Compare.
    """
    with show_errors():
        with read_session() as session:
            names = [each.name for each in campaign_records.readable_campaigns(session)[0]]
        if not names:  # else the campaign's name is the title
            st.title("Campaign")
        if name := choose_campaign(names):
            look = _look(name)
            _head(look.status)
            _leaderboard(look, comparisons, compare)
            _sections(look)
            st.fragment(_wait, run_every=EVERY)(name, look)


def _look(name: str) -> Snapshot:
    look = look_at(name, st.session_state.get(LAST_LOOK))
    st.session_state[LAST_LOOK] = look
    return look


def _wait(name: str, drawn: Snapshot) -> None:
    """Draw the whole page again if results have changed; else leave the reader's view unchanged."""
    with show_errors():
        if _look(name) is not drawn:
            st.rerun()


def _head(status: CampaignStatus) -> None:
    show_heading(status.name, key="campaign")
    show_soft(f"{status.objective} campaign, {headline(status.answer, status.state)}", key="campaign")
    with st.container(key="headline"):
        st.text(sentence(" ".join(status.headline_sentences())))
    first, further = lines_in_two(status)
    with st.container(border=True, key="answer"):
        _lines(first, key="first")
    with st.expander("Details of the answer", key="answer-details"):
        _lines(further, key="further")


def _lines(lines: Sequence[Line], *, key: str) -> None:
    for number, (word, text) in enumerate(lines):  # several lines can have the same label
        left, right = st.columns([1, 8])
        with left:
            show_soft(word, key=f"word-{key}-{number}")
        right.text(sentence(text))


def _leaderboard(look: Snapshot, comparisons: Link, compare: Link) -> None:
    st.header("Leaderboard")
    if not look.leaderboard:
        return
    st.caption("Click a candidate for links to its failures and to its comparison with the best candidate.")
    rows = [_numbers_first(row) for row in look.leaderboard]
    chosen = pick_row(rows, key=f"leaderboard-{look.version.campaign_id}", by_cell=True)
    if chosen is None:
        return
    name, name_of_campaign = rows[chosen]["candidate"], look.status.name
    left, right = st.columns(2)
    with left:
        failures = {"campaign": name_of_campaign, "candidate": name, "show": FAILURES}
        comparisons(f"Failures of {as_plain(name)}", failures)
    other = next((row["candidate"] for row in rows if row["best"] and row["candidate"] != name), None)
    if other is not None:
        with right:
            pair = {"campaign": name_of_campaign, "first": other, "second": name}
            compare(f"{as_plain(other)} minus {as_plain(name)}", pair)


def _numbers_first(row: Row) -> Row:
    """Move the estimate and interval before the status, because a phone shows only the first columns."""
    first = {key: row[key] for key in ("candidate", "estimate", "lower", "upper")}
    return {**first, **row}


def _sections(look: Snapshot) -> None:
    for section in look.sections:
        if section.figure is None and not section.table:
            continue
        st.header(as_plain(section.title))
        show_soft(section.note, key=section.name)
        if section.figure is not None:
            show_figure(section.figure, key=f"figure-{section.name}", of=look.status.name)
        if section.table:
            show_rows(section.table, key=f"table-{section.name}")
    if not look.sections:
        st.text(readable(nothing_yet(look.status)))

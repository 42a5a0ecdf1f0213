"""A campaign's live page: its answer, its leaderboard and the figures of its report."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from winnow.flows.reports.dashboard.db import asking, problems_shown
from winnow.flows.reports.dashboard.page_state import Snapshot, look_at
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
from winnow.flows.reports.summary import lines_in_two, nothing_yet
from winnow.storage.json_types import Row
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.sentences.clauses import Line
from winnow.tasks.queries.status import CampaignStatus

EVERY = 2.0
"""Seconds between two looks; without a finished round nothing is computed or drawn again."""

LAST_LOOK = "last look"
"""Session key."""


Link = Callable[[str, Mapping[str, str]], None]
"""Draws a link with this label to a page with these address parameters."""


def show(comparisons: Link, compare: Link) -> None:
    """Show the page.

    Args:
        comparisons: Links to the page Comparisons.
        compare: Links to the page Compare.
    """
    with problems_shown():
        with asking() as session:
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
    """Redraw the whole page when there is news; until then it stays as the reader left it."""
    with problems_shown():
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
    for number, (word, said) in enumerate(lines):  # a word may begin several lines
        left, right = st.columns([1, 8])
        with left:
            show_soft(word, key=f"word-{key}-{number}")
        right.text(sentence(said))


def _leaderboard(look: Snapshot, comparisons: Link, compare: Link) -> None:
    st.header("Leaderboard")
    if not look.leaderboard:
        return
    st.caption("Click a candidate for links to its failures and to a comparison with the best one.")
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
    """A candidate's estimate before its status: a phone only has room for one of the two."""
    first = {key: row[key] for key in ("candidate", "estimate", "lower", "upper")}
    return {**first, **row}


def _sections(look: Snapshot) -> None:
    for section in look.sections:
        if section.figure is None and not section.table:
            continue
        st.header(section.title)
        show_soft(section.note, key=section.name)
        if section.figure is not None:
            show_figure(section.figure, key=f"figure-{section.name}", of=look.status.name)
        if section.table:
            show_rows(section.table, key=f"table-{section.name}")
    if not look.sections:
        st.text(readable(nothing_yet(look.status)))

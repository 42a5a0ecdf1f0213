"""One campaign as it stands: its answer, its leaderboard and the figures of its report, live."""

import streamlit as st

from winnow.flows.reports.dashboard.db import asking, problems_shown
from winnow.flows.reports.dashboard.page_state import Snapshot, look_at
from winnow.flows.reports.dashboard.plots import show_figure
from winnow.flows.reports.dashboard.widgets import (
    choose_campaign,
    show_heading,
    show_rows,
    show_soft,
)
from winnow.flows.reports.html.figures.labels import readable, sentence
from winnow.flows.reports.summary import further_lines, nothing_yet
from winnow.storage.json_types import Row
from winnow.storage.records import campaigns as campaign_records
from winnow.tasks.answer.sentences.answer_lines import headline
from winnow.tasks.answer.sentences.headline import headline_sentences
from winnow.tasks.answer.status_lines import status_lines
from winnow.tasks.queries.status import CampaignStatus

EVERY = 2.0
"""Seconds between two looks; nothing is computed or drawn again unless a round was finished."""

LAST_LOOK = "last look"
"""In the reader's session."""


def show() -> None:
    """The page."""
    with problems_shown():
        with asking() as session:
            names = [each.name for each in campaign_records.campaigns(session)]
        if name := choose_campaign(names):
            look = _look(name)
            _head(look.status)
            _leaderboard(look)
            _sections(look)
            st.fragment(_wait, run_every=EVERY)(name, look)


def _look(name: str) -> Snapshot:
    look = look_at(name, st.session_state.get(LAST_LOOK))
    st.session_state[LAST_LOOK] = look
    return look


def _wait(name: str, drawn: Snapshot) -> None:
    """Draw the whole page again once there is something new; until then it stays as the reader left it."""
    with problems_shown():
        if _look(name) is not drawn:
            st.rerun()


def _head(status: CampaignStatus) -> None:
    show_heading(status.name, key="campaign")
    show_soft(f"{status.objective} campaign, {headline(status.answer, status.state)}", key="campaign")
    st.text(sentence(" ".join(headline_sentences(status.answer, status.totals))))
    with st.container(border=True, key="answer"):
        lines = (*status_lines(status.answer, status.totals), *further_lines(status))
        for number, (word, said) in enumerate(lines):  # a word may begin several lines
            left, right = st.columns([1, 8])
            with left:
                show_soft(word, key=f"word-{number}")
            right.text(sentence(said))


def _leaderboard(look: Snapshot) -> None:
    st.header("Leaderboard")
    if look.leaderboard:
        show_rows([_numbers_first(row) for row in look.leaderboard], key="leaderboard")


def _numbers_first(row: Row) -> Row:
    """A candidate's estimate before where it stands: a phone has room for one of the two."""
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

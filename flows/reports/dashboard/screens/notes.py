"""Stars and notes on outputs, which readers with permission to write can set; all others see them."""

import os

import streamlit as st

from winnow.flows.reports.dashboard import ALLOW_LABELS_VARIABLE
from winnow.flows.reports.dashboard.db import labelling, problems_shown
from winnow.flows.reports.dashboard.widgets import ANNOTATOR, show_soft
from winnow.storage.json_types import Row
from winnow.storage.records.notes import STARRED
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.objectives.human.annotating import LONGEST_NOTE, UNNAMED, take_note

STAR = "\N{BLACK STAR}"


def edit_note(campaign: CampaignRecord, row: Row) -> None:
    """Show the star and the note of a comparison, as controls if readers can write here.

    Args:
        campaign: The campaign of the comparison.
        row: The comparison; nothing is shown if it has no output.
    """
    is_starred, text = row["noted"] == STARRED, row["note"] or ""
    if not os.environ.get(ALLOW_LABELS_VARIABLE):
        if is_starred or text:
            show_soft(f"{STAR if is_starred else 'note:'} {text}".strip(), key="note")
        return
    if row["text"] is None:
        return
    comparison = row["id"]

    def store(*, starred: bool, note: str) -> None:
        with problems_shown(), labelling() as database:
            annotator = st.session_state.get(ANNOTATOR) or UNNAMED
            take_note(database, comparison, is_starred=starred, text=note, annotator=annotator)

    def turn() -> None:
        store(starred=not is_starred, note=text)

    def write() -> None:
        store(starred=is_starred, note=st.session_state[f"note-{comparison}"])

    star, note = st.columns([1, 4], vertical_alignment="bottom")
    star.button(
        f"{STAR} Starred" if is_starred else "\N{WHITE STAR} Star",
        key=f"star-{comparison}",
        shortcut="s",
        on_click=turn,
        width="stretch",
    )
    note.text_input(
        "Note",
        value=text,
        key=f"note-{comparison}",
        max_chars=LONGEST_NOTE,
        on_change=write,
        placeholder="for everybody who reads this database",
    )

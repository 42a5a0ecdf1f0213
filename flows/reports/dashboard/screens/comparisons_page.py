"""A browser of single comparisons: filters, a page of the newest ones, and one of them with all its texts."""

from collections.abc import Sequence

import streamlit as st

from winnow.flows.reports.dashboard.db import asking, problems_shown
from winnow.flows.reports.dashboard.screens.comparison_view import PREVIEW, listed, show_comparison
from winnow.flows.reports.dashboard.widgets import (
    choose_campaign,
    choose_name,
    opened_pages,
    pick_row,
    shown_of_pages,
)
from winnow.flows.reports.html.figures.labels import readable
from winnow.storage.json_types import Row
from winnow.storage.queries import browse as browse_views
from winnow.storage.queries.browse import Choices, Filters, Place
from winnow.storage.records import campaigns as campaign_records

ANYTHING, SCORED, UNSCORED = "any", "has an outcome", "has none"
BECAUSE = "none: "
"""Before a reason."""


def ask_filters(choices: Choices, *, campaign_id: int) -> Filters:
    """The filters that the reader chose in boxes above the table.

    Args:
        choices: The values by which the campaign's comparisons can be filtered.
        campaign_id: The campaign.
    """
    words_box, candidate_box, judge_box, ending_box, range_box = st.columns([3, 3, 2, 2, 2])
    words = words_box.text_input("Search", placeholder="in prompts, answers and keys of examples")
    candidate = choose_name(
        candidate_box,
        "Candidate",
        choices.candidates,
        key=f"comparisons-candidate-{campaign_id}",
        index=None,
        placeholder=ANYTHING,
        most=LONGEST_IN_BOX,
    )
    judge = choose_name(
        judge_box,
        "Judge",
        choices.judges,
        key=f"comparisons-judge-{campaign_id}",
        index=None,
        placeholder=ANYTHING,
        most=LONGEST_IN_BOX,
    )
    endings = [SCORED, UNSCORED, *(BECAUSE + reason for reason in choices.reasons)]
    ending = ending_box.selectbox("Outcome", endings, index=None, placeholder=ANYTHING, format_func=readable)
    between = range_box.slider("Outcome between", 0.0, 1.0, (0.0, 1.0), 0.05)
    return filters_of(words, candidate, judge, ending, None if between == (0.0, 1.0) else between)


def filters_of(
    words: str | None,
    candidate: str | None,
    judge: str | None,
    ending: str | None,
    between: tuple[float, float] | None,
) -> Filters:
    """The filters that the boxes stand for; None is a box that was left as it is."""
    low, high = between or (None, None)
    return Filters(
        words=(words or "").strip(),
        candidate=candidate,
        judge=judge,
        lowest=low,
        highest=high,
        is_scored=None if ending is None else ending == SCORED,
        reason=ending.removeprefix(BECAUSE) if ending and ending.startswith(BECAUSE) else None,
    )


LONGEST_IN_BOX = 20
"""Columns of a terminal that a name may take in a box above the table."""
PAGE = 50
"""Rows that are shown at once."""
TABLE_HEIGHT = 320
"""Pixels: about eight rows, so that the comparison below is seen at once."""

STARTS = "starts of pages"
"""In the reader's session: the campaign and filters, and the place before which each opened page begins."""


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
    filters = ask_filters(choices, campaign_id=campaign.id)
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
        st.text("No comparison matches.")
        return
    if not starts:
        # Else a row that is clicked would be another one once a running campaign has added to the top.
        starts.append((rows[0]["round"], rows[0]["position"] + 1))
    chosen = _table(rows[:PAGE])
    _turn(starts, rows)
    whole = st.toggle("Whole texts", help="Otherwise only the beginning of very long ones is searched.")
    show_comparison(campaign, rows[chosen or 0]["id"], whole=whole)


def _table(rows: Sequence[Row]) -> int | None:
    st.caption("Newest first. Click a comparison to read it below.")
    # What was chosen on one page is not chosen on the next.
    key = f"comparisons-{rows[0]['id']}-{rows[-1]['id']}"
    return pick_row(listed(rows), key=key, height=TABLE_HEIGHT, by_cell=True)


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

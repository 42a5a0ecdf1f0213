"""The page Comparisons: filters, a table of comparisons, newest first, and one comparison in full.

The page's address contains the filters, the page of the table and the open comparison.
"""

import re
from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from winnow.flows.reports.dashboard.db import on_campaign, read_session
from winnow.flows.reports.dashboard.opened_row import forget_row, has_opened, open_row
from winnow.flows.reports.dashboard.screens.comparison_view import PREVIEW, listed, show_comparison
from winnow.flows.reports.dashboard.widgets import (
    choose_name,
    opened_pages,
    set_address,
    shown_of_pages,
)
from winnow.flows.reports.html.figures.labels import readable
from winnow.storage.json_types import Row
from winnow.storage.objectives import traits_of
from winnow.storage.queries import browse as browse_views
from winnow.storage.queries.browse import Choices, Filters, Kind, Place
from winnow.storage.queries.campaign_views import names_out
from winnow.storage.records.record_types import CampaignRecord

ANYTHING, SCORED, UNSCORED = "any", "has an outcome", "has none"
BECAUSE = "none: "
"""Prefix, in the box of outcomes, of a reason for a missing outcome."""

FAILURES, DIFFERS, ELIMINATED, NOTED = "failures", "differs", "eliminated", "starred"
SHOW = {FAILURES: "Failures", DIFFERS: "Differs", ELIMINATED: "Eliminated", NOTED: "Starred or noted"}
"""Name in the page's address -> label, of filters that are set by one click."""
KINDS: Mapping[str, Kind] = {FAILURES: "failures", DIFFERS: "differs", NOTED: "noted"}
EXPLAINED = {
    FAILURES: "Comparisons with a score below 0.5, or without a score.",
    DIFFERS: "Comparisons on examples for which another candidate has a different output or score.",
    ELIMINATED: "Comparisons of candidates that were eliminated, dropped or found worse.",
    NOTED: "Comparisons with a star or a note by a reader.",
}
OF_DUELS = {
    FAILURES: "Duels that the chosen candidate lost, and duels without an outcome.",
    DIFFERS: "Duels between two different outputs.",
}
"""Explanations of filters that have another meaning for duels."""

LONGEST_IN_BOX = 20
"""Maximum width of a name in a box above the table, in terminal columns."""
PAGE = 50
"""Number of rows per page."""
TABLE_HEIGHT = 320
"""Height in pixels, about eight rows, so that the comparison below is visible."""

STARTS = "starts of pages"
"""Session key of the campaign with the filters, and of the place before which each opened page begins."""
NEWEST: Place = (-1, -1)
"""Start of the page with the newest comparisons, until the page is shown."""
PLACE = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")
"""Matches a place (round and position) in the page's address."""
BEFORE, OPEN, WHOLE = "before", "at", "whole"
"""Parameters of the address: start of the page, open comparison, and whether its texts are shown in full."""


def ask_filters(choices: Choices, campaign: CampaignRecord, eliminated: Sequence[str]) -> Filters:
    """Draw the filter boxes above the table, and return the filters.

    Initial values are from the page's address.

    Args:
        choices: Values by which the campaign's comparisons can be filtered.
        campaign: The campaign.
        eliminated: Names of the campaign's eliminated candidates.
    """
    given = st.query_params
    show: str | None = st.segmented_control(
        "Show only",
        list(SHOW),
        format_func=SHOW.__getitem__,
        key=_linked("show", list(SHOW), campaign),
    )
    has_judges = len(choices.judges) > 1
    words_box, candidate_box, ending_box, range_box, *more = st.columns([3, 3, 2, 2, *[2] * has_judges])
    words: str = words_box.text_input(
        "Search",
        value=given.get("search", ""),
        placeholder="prompts, outputs, ids",
        key=f"comparisons-search-{campaign.id}",
    )
    candidate = _choose(candidate_box, "Candidate", choices.candidates, campaign)
    endings = [SCORED, UNSCORED, *(BECAUSE + reason for reason in choices.reasons)]
    ending: str | None = ending_box.selectbox(
        "Outcome",
        endings,
        index=None,
        placeholder=ANYTHING,
        format_func=readable,
        key=_linked("outcome", endings, campaign),
    )
    between: tuple[float, float] = range_box.slider(
        "Outcome between",
        0.0,
        1.0,
        _range(given.get("between", "")),
        0.05,
        key=f"comparisons-between-{campaign.id}",
    )
    judge = _choose(more[0], "Judge", choices.judges, campaign) if more else None
    limits = None if between == (0.0, 1.0) else between
    set_address(
        show=show,
        search=words.strip(),
        candidate=candidate,
        judge=judge,
        outcome=ending,
        between=None if limits is None else "-".join(f"{end:g}" for end in limits),
    )
    if show is not None:
        are_duels = traits_of(campaign.objective).compares_pairs
        st.caption((OF_DUELS if are_duels else {}).get(show, EXPLAINED[show]))
    return filters_of(words, candidate, judge, ending, limits, show=show, eliminated=eliminated)


def _choose(place: DeltaGenerator, label: str, names: Sequence[str], campaign: CampaignRecord) -> str | None:
    """Show a box of names and return the chosen one, or None; the page's address has the initial value."""
    key = _linked(label.lower(), names, campaign)
    return choose_name(place, label, names, key=key, index=None, placeholder=ANYTHING, most=LONGEST_IN_BOX)


def _linked(parameter: str, options: Sequence[str], campaign: CampaignRecord) -> str:
    """The session key of a box; its initial value is set to that of the page's address.

    The value is not set as a default, because a reader cannot empty a box with a default.
    """
    key = f"comparisons-{parameter}-{campaign.id}"
    wanted = st.query_params.get(parameter)
    if key not in st.session_state and wanted in options:
        st.session_state[key] = wanted
    return key


def _range(text: str) -> tuple[float, float]:
    """Parse limits of outcomes, such as "0.2-0.8"; (0, 1) if the text is not valid."""
    low, _, high = text.partition("-")
    try:
        limits = (float(low), float(high))
    except ValueError:
        return (0.0, 1.0)
    return limits if 0.0 <= limits[0] <= limits[1] <= 1.0 else (0.0, 1.0)


def filters_of(
    words: str | None,
    candidate: str | None,
    judge: str | None,
    ending: str | None,
    between: tuple[float, float] | None,
    *,
    show: str | None = None,
    eliminated: Sequence[str] = (),
) -> Filters:
    """Convert the values of the boxes, None for an empty box, to filters.

    Args:
        words: Text to search for.
        candidate: Name of a candidate.
        judge: Name of a judge.
        ending: An option of the box of outcomes.
        between: Lowest and highest outcome.
        show: A key of `SHOW`.
        eliminated: Names of the eliminated candidates.
    """
    low, high = between or (None, None)
    return Filters(
        words=(words or "").strip(),
        candidate=candidate,
        among=tuple(eliminated) if show == ELIMINATED else None,
        kind=KINDS.get(show or ""),
        judge=judge,
        lowest=low,
        highest=high,
        is_scored=None if ending is None else ending == SCORED,
        reason=ending.removeprefix(BECAUSE) if ending and ending.startswith(BECAUSE) else None,
    )


def show() -> None:
    """Show the page."""
    on_campaign("Comparisons", _browse)


def _browse(campaign: CampaignRecord, _: Sequence[CampaignRecord]) -> None:
    with read_session() as session:
        choices = browse_views.choices(session, campaign.id)
        eliminated = sorted(names_out(session, campaign.id))
    filters = ask_filters(choices, campaign, eliminated)
    starts: list[Place] = opened_pages(STARTS, (campaign.id, filters), _linked_page)
    rows = _read(campaign, filters, starts[-1])
    linked = None if has_opened(OPEN) else _place(st.query_params.get(OPEN))
    if linked and starts == [NEWEST] and linked not in map(_place_of, rows[:PAGE]):
        # The campaign has grown since the link was copied, or the link was from a later page.
        starts.append((linked[0], linked[1] + 1))
        rows = _read(campaign, filters, starts[-1])
    if not rows:
        st.text("No comparison matches.")
        set_address(**{OPEN: None, BEFORE: None})
        return
    if starts == [NEWEST]:
        # Fix the start, so that a click opens the right row even if a running campaign adds rows at the top.
        starts[0] = (rows[0]["round"], rows[0]["position"] + 1)
    set_address(**{BEFORE: _place_text(starts[-1]) if len(starts) > 1 else None})
    st.caption("Newest first. Click a comparison to read it below.")
    row = _show_table(rows, starts)
    whole = st.toggle(
        "Whole texts",
        value=st.query_params.get(WHOLE) == "yes",
        key=f"comparisons-whole-{campaign.id}",
        help="If off, only the beginning of very long texts is shown.",
    )
    set_address(**{WHOLE: "yes" if whole else None})
    show_comparison(campaign, row["id"], whole=whole)


def _linked_page() -> list[Place]:
    """Start of the newest page; when the page is opened with a start in its address, that start, too."""
    linked = None if STARTS in st.session_state else _place(st.query_params.get(BEFORE))
    return [NEWEST] if linked is None else [NEWEST, linked]


def _read(campaign: CampaignRecord, filters: Filters, start: Place) -> list[Row]:
    with read_session() as session:
        return browse_views.comparisons(
            session,
            campaign.id,
            filters,
            before=None if start == NEWEST else start,
            most=PAGE + 1,
            characters=PREVIEW,
        )


def _place_of(row: Row) -> Place:
    return row["round"], row["position"]


def _place_text(place: Place) -> str:
    """A place as in the page's address: round and position, counted from 1."""
    return f"{place[0] + 1}.{place[1] + 1}"


def _place(text: str | None) -> Place | None:
    found = PLACE.fullmatch(text or "")
    return None if found is None else (int(found[1]) - 1, int(found[2]) - 1)


def _show_table(rows: Sequence[Row], starts: list[Place]) -> Row:
    """Show a page of rows with buttons to turn the page; return the open row."""
    page = rows[:PAGE]

    def later() -> None:
        starts.append(_place_of(rows[PAGE - 1]))

    def earlier() -> None:
        starts.pop()

    def newest() -> None:
        starts[:] = [NEWEST]
        forget_row(OPEN)

    is_linked = len(starts) > 1 and starts[0] == NEWEST
    number = open_row(
        listed(page),
        [_place_text(_place_of(row)) for row in page],
        # A key per page, so that a choice on one page does not stay on the next.
        key=f"comparisons-{page[0]['id']}-{page[-1]['id']}",
        address=OPEN,
        height=TABLE_HEIGHT,
        earlier=earlier if len(starts) > 1 else None,
        later=later if len(rows) > PAGE else None,
        where="older comparisons" if is_linked else shown_of_pages(len(starts), len(rows), most=PAGE),
    )
    if len(starts) > 1:
        st.button("Newest", on_click=newest)
    return page[number]

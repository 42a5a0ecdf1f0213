"""Widgets for texts and rows, in which untrusted text never becomes HTML, a link or an image.

The campaign that a reader chose is kept from page to page, and in the page's address.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, TypeVar

import pandas as pd
import streamlit as st
from markdown_it import MarkdownIt
from pandas.io.formats.style import Styler
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.arrow import DataframeState
from streamlit.elements.lib.column_config_utils import ColumnConfigMappingInput

from winnow.flows.reports.dashboard import STORAGE_VARIABLE
from winnow.flows.reports.dashboard.frames import (
    LONGEST_NAME,
    as_frame,
    number_formats,
    short_names,
    styled,
    unique_names,
)
from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.rows.text_table import shortened_apart
from winnow.storage.engine.database import storage_option
from winnow.storage.json_types import Row

NOTHING_ELSE = ("html_block", "html_inline", "image", "link", "autolink", "reference", "entity")
"""Disabled CommonMark rules, because they create HTML elements from untrusted text, or hide link targets."""

_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(list(NOTHING_ELSE))


def as_html(text: str) -> str:
    """Render Markdown as HTML: paragraphs, emphasis, lists, tables and code; other markup stays text.

    Headings become bold lines, because the page itself has headings.
    """
    tokens = _PARSER.parse(readable(text))
    for token in tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "p"
        if token.type == "heading_open":
            token.attrSet("class", "heading")
    written: str = _PARSER.renderer.render(tokens, _PARSER.options, {})
    return f'<div dir="auto">{written}</div>'


Place = TypeVar("Place")

LONG_TEXT, MANY_LINES = 1_200, 14
"""Maximum characters and line ends of a text that is shown without a scrolling box."""
BOX_HEIGHT = 320
"""Height of a scrolling text box, in pixels."""
BESIDE_OTHERS = frozenset(("input", "output", "output b", "first output", "second output"))
"""Columns with long texts, which are kept narrow to leave space for other columns."""
NARROW = 150
"""Width of a narrow column in pixels, before all columns grow to the width of the table."""
SHARE = "of grid"
"""Name of a column of percentages, which are shown as bars."""
TABLE_HEADING, TABLE_ROW = 38, 35
"""Heights of a table's heading and of a row, in pixels."""

STYLE = """<style>
  .stMainBlockContainer { padding: 3.5rem 2.5rem 4rem; max-width: 110rem; margin-right: auto; }
  .stMainBlockContainer:has([class*="st-key-matrix"]) { max-width: none; }
  [class*="st-key-heading"] [data-testid="stText"] {
    font-size: 1.15rem; font-weight: 600; line-height: 1.3; overflow-wrap: anywhere;
  }
  .st-key-heading-campaign [data-testid="stText"], .st-key-heading-asked [data-testid="stText"] {
    font-size: 1.7rem;
  }
  [class*="st-key-soft"] [data-testid="stText"] {
    opacity: 0.68; font-size: 0.875rem; overflow-wrap: anywhere;
  }
  .st-key-headline [data-testid="stText"] { font-size: 1.15rem; max-width: 60rem; overflow-wrap: anywhere; }
  .stSlider [role="slider"] p, .stSlider [data-testid*="ThumbValue"] p {
    color: light-dark(#24292f, #fafafa) !important;
  }
  [data-testid="stCaptionContainer"] { opacity: 0.78 !important; }
  button:not(:disabled) kbd { color: inherit !important; opacity: 0.8 !important; }
  [class*="st-key-answer"] [data-testid="stText"] { overflow-wrap: anywhere; }
  .stHtml del { background: rgba(213, 94, 0, 0.22); margin-right: 0.15em; }
  .stHtml ins { background: rgba(0, 114, 178, 0.22); }
  [class*="st-key-written"] { overflow-wrap: anywhere; }
  [class*="st-key-written"] p.heading { font-weight: 600; }
  [class*="st-key-written"] pre { white-space: pre-wrap; }
  [class*="st-key-answer"], [class*="st-key-passage"] { gap: 0.3rem; }
  [data-testid="stElementToolbarButton"]:has(button[aria-label^="Download as CSV"]) { display: none; }
  @media (max-width: 640px) {
    .stMainBlockContainer { padding-left: 1rem; padding-right: 1rem; }
    .st-key-heading-campaign [data-testid="stText"], .st-key-heading-asked [data-testid="stText"] {
      font-size: 1.25rem;
    }
    [class*="st-key-answer"] { gap: 0.9rem; }
    [class*="st-key-answer"] [data-testid="stHorizontalBlock"] { gap: 0.1rem; }
  }
  .stMainBlockContainer h1 { font-size: 1.9rem; }
  .stMainBlockContainer h2, .stMainBlockContainer h3 { font-size: 1.25rem; }
</style>"""
"""CSS of all pages; it contains no data.

Streamlit's button to download a table is hidden, because spreadsheets evaluate texts that begin like a
formula."""


def show_heading(text: str, *, key: str) -> None:
    """Show a title, which may be untrusted text."""
    with st.container(key=f"heading-{key}"):
        st.text(readable(text))


def show_soft(text: str, *, key: str) -> None:
    """Show a remark in small, grey letters."""
    with st.container(key=f"soft-{key}"):
        st.text(readable(text))


def show_problem(sentence: str) -> None:
    """Show an error message in a box."""
    with st.container(border=True):
        st.markdown(":material/error: **No answer**")
        st.text(readable(sentence))


def show_passage(label: str, text: str, length: int, *, key: str) -> None:
    """Show a text, such as a model's output; if only its beginning was read, also its length."""
    cut = f", the first {len(text):,} of {length:,} characters" if length > len(text) else ""
    tall = len(text) > LONG_TEXT or text.count("\n") > MANY_LINES
    with st.container(key=f"passage-{key}"):
        show_soft(label + cut, key=key)
        # A code box cannot be scrolled by keys; this container can, because it has the focusable button.
        with st.container(height=BOX_HEIGHT if tall else "content", border=False):
            st.code(readable(text), language=None, wrap_lines=True)


def show_rows(rows: Sequence[Row], *, key: str) -> None:
    """Show rows as a table."""
    frame = as_frame(rows)
    short = short_names(frame)
    data = styled(frame, short)
    st.dataframe(data, hide_index=True, key=key, placeholder="", column_config=_formats(data))
    _explain(short)


def pick_row(
    rows: Sequence[Row],
    *,
    key: str,
    height: int | Literal["auto"] = "auto",
    by_cell: bool = False,
    opened: int | None = None,
    on_pick: Callable[[int], None] | None = None,
) -> int | None:
    """Show a table in which one row can be chosen; return its index, or None if no row is chosen.

    Args:
        rows: The rows.
        key: Key of the table in the reader's session.
        height: Height of the table in pixels.
        by_cell: Whether a click on any cell chooses the row, instead of a click on the box before it.
        opened: Index of the highlighted row; None highlights no row.
        on_pick: Called with the index of a clicked row, before the page runs again.
    """
    frame = as_frame(rows)
    short = short_names(frame)
    data = styled(frame, short, opened)

    def pick() -> None:
        chosen = _chosen(st.session_state[key], len(rows))
        if chosen is not None and on_pick is not None:
            on_pick(chosen)

    event = st.dataframe(
        data,
        hide_index=True,
        column_config=_formats(data),
        key=key,
        height=height,
        on_select="rerun" if on_pick is None else pick,
        selection_mode="single-cell" if by_cell else "single-row",
        placeholder="",
    )
    _explain(short)
    return _chosen(event, len(rows))


def _chosen(event: DataframeState, n_rows: int) -> int | None:
    selection = event["selection"]
    chosen = [row for row, _ in selection.get("cells", ())] or selection["rows"]
    # The table may have become shorter since the click.
    return chosen[0] if chosen and chosen[0] < n_rows else None


def _formats(data: pd.DataFrame | Styler) -> ColumnConfigMappingInput:
    formats = {} if isinstance(data, Styler) else number_formats(data)  # a styled frame has its formats
    narrow = {name: st.column_config.Column(width=NARROW) for name in data.columns if name in BESIDE_OTHERS}
    numbers = {name: st.column_config.NumberColumn(format=form) for name, form in formats.items()}
    share = st.column_config.ProgressColumn(format="%.1f%%", max_value=100, width="small")
    return {**narrow, **numbers, **({SHARE: share} if SHARE in data.columns else {})}


def _explain(short: Mapping[str, Mapping[str, str]]) -> None:
    if short:
        st.caption("To read a whole long name, click its cell and press Enter.")


def choose_name(
    place: DeltaGenerator,
    label: str,
    names: Sequence[str],
    *,
    key: str,
    index: int | None = 0,
    placeholder: str | None = None,
    most: int = LONGEST_NAME,
) -> str | None:
    """Show a box of names, and return the chosen name, or None.

    Long names are shortened in the middle; the box's help shows the chosen name in full.

    Args:
        place: Part of the page for the box.
        label: Label of the box.
        names: The names; all different.
        key: Key of the box in the reader's session.
        index: Index of the name that is chosen at first; None to begin with an empty box.
        placeholder: Text in the empty box.
        most: Maximum width of a name, in terminal columns.
    """
    first = None if index is None or not names else names[index]
    short = short_labels(names, most)
    chosen: str | None = place.selectbox(
        label,
        names,
        index=index,
        key=key,
        placeholder=placeholder,
        format_func=short.__getitem__,
        help=whole_names([st.session_state.get(key, first)], short),
    )
    return chosen


def short_labels(names: Sequence[str], most: int = LONGEST_NAME) -> dict[str, str]:
    """Name -> its label in a box, shortened if it is long; different names have different labels."""
    labels = unique_names(shortened_apart([readable(name) for name in names], most))
    return dict(zip(names, labels, strict=True))


def whole_names(chosen: Sequence[str | None], short: Mapping[str, str]) -> str | None:
    """Help text with the chosen names whose labels are shortened; None if no label is shortened."""
    cut = [name for name in chosen if name is not None and short.get(name) != readable(name)]
    return ", ".join(map(as_plain, cut)) or None


MARKUP = frozenset("\\`*_{}[]()<>#+-.!|~:$")


def as_plain(text: str) -> str:
    """Escape a text for places where Streamlit interprets Markdown, such as button labels and help."""
    return "".join(f"\\{c}" if c in MARKUP else c for c in readable(text).replace("\n", " "))


def opened_pages(key: str, asked: object, first: Callable[[], list[Place]]) -> list[Place]:
    """The starts of the pages that the reader has opened in a table, as a list that may be changed.

    Args:
        key: Key of the table in the reader's session.
        asked: Identifies the table's content; if it changes, the list begins again.
        first: Returns the list with the start of the first page.
    """
    before, places = st.session_state.get(key, (None, []))
    if before != asked:
        places = first()
        st.session_state[key] = (asked, places)
    found: list[Place] = places
    return found


def shown_of_pages(opened: int, found: int, *, most: int) -> str:
    """Row numbers on the last opened page, and whether more rows follow.

    Args:
        opened: Number of opened pages.
        found: Number of rows that were read for the page.
        most: Number of rows per page.
    """
    begin = most * (opened - 1) + 1
    more = "; there are more" if found > most else ""
    return f"{begin:,} to {begin + min(most, found) - 1:,}{more}"


NO_CAMPAIGNS = "There are no campaigns in this database yet. These commands write a first one and run it:"
ADDRESS = "campaign"
"""Parameter of a page's address: name of the campaign."""
CHOSEN = "chosen campaign"
"""Session key of the chosen campaign; the value of a box is lost on a page without that box."""
BOX = "campaign box"
MISSED = "campaign not here"
"""Session key of the requested campaign that the page cannot show, and the campaign shown instead."""
ANNOTATOR = "annotator"
"""Session key of the reader's name for judgments and notes."""
LONGEST_IN_SIDEBAR = 24
"""Maximum width of a name in the sidebar, in terminal columns."""


def set_address(**parameters: str | None) -> None:
    """Store a page's state in its address, so that a copied link shows the same; None removes a parameter."""
    for name, value in parameters.items():
        if not value:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != value:
            st.query_params[name] = value


def show_no_campaigns() -> None:
    """Show that the database has no campaign, and how to run one."""
    st.text(NO_CAMPAIGNS)
    run = f"winnow run campaign.yaml {storage_option(os.environ[STORAGE_VARIABLE])}"
    st.code(f"winnow init campaign.yaml\n{readable(run)}", language=None, wrap_lines=True)


def remember_campaign(name: str) -> None:
    """Preselect a campaign on the other pages."""
    st.session_state[CHOSEN] = name


def choose_campaign(names: Sequence[str]) -> str | None:
    """Show the box of campaigns, and return the chosen one, by default the newest; None without campaigns.

    Args:
        names: Names of all campaigns, oldest first.
    """
    if not names:
        show_no_campaigns()
        return None
    wanted = st.session_state.get(CHOSEN) or st.query_params.get(ADDRESS)
    newest_first, held = list(reversed(names)), st.session_state.get(BOX)
    if held not in newest_first:
        is_here = wanted in newest_first
        st.session_state[BOX] = wanted if is_here else newest_first[0]
        st.session_state[MISSED] = None if is_here or wanted is None else (wanted, newest_first[0])
    elif held == st.session_state.get(CHOSEN):
        # Set the value again; else the box of a newly opened page begins with the newest campaign.
        st.session_state[BOX] = held
    name = choose_name(st.sidebar, "Campaign", newest_first, key=BOX, most=LONGEST_IN_SIDEBAR)
    if name is None:
        return None
    missed = st.session_state.get(MISSED)
    if missed is not None and missed[0] not in names and missed[1] == name:
        show_soft(f"This page cannot show {missed[0]!r}; {name!r} is shown instead.", key="missed")
    remember_campaign(name)
    if st.query_params.get(ADDRESS) != name:
        st.query_params[ADDRESS] = name
    return name

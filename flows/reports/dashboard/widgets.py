"""Widgets for texts, rows and figures: untrusted text never becomes HTML, a link or an image.

The reader's campaign is kept from page to page, and in the page's address.
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
    apart,
    as_frame,
    number_formats,
    short_names,
    styled,
)
from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.rows.text_table import shortened_apart
from winnow.storage.engine.database import storage_option
from winnow.storage.json_types import Row

NOTHING_ELSE = ("html_block", "html_inline", "image", "link", "autolink", "reference", "entity")
"""CommonMark rules that would create elements from untrusted text, or hide link targets."""

_PARSER = MarkdownIt("commonmark", {"html": False}).enable("table").disable(list(NOTHING_ELSE))


def as_html(text: str) -> str:
    """Paragraphs, emphasis, lists, tables and code as HTML; everything else as literal characters.

    Headings become bold lines, because headings belong to the page itself.
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
"""Minimum number of characters, and of lines, of a text that scrolls in its own box."""
BOX_HEIGHT = 320
"""Height of a scrolling text box, in pixels."""
BESIDE_OTHERS = frozenset(("input", "output", "output b", "first output", "second output"))
"""Names of columns with long texts, which are kept narrow to leave room for other columns."""
NARROW = 150
"""Pixels of such a column, before all columns grow to the width of the table."""
SHARE = "of grid"
"""A column of percentages, shown as bars."""
TABLE_HEADING, TABLE_ROW = 38, 35
"""Height of a table's heading and of each row, in pixels."""

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
"""A constant without displayed data. Streamlit's download of a table is hidden, because a spreadsheet
evaluates texts that begin like a formula."""


def show_heading(text: str, *, key: str) -> None:
    """Show a title that may be untrusted."""
    with st.container(key=f"heading-{key}"):
        st.text(readable(text))


def show_soft(text: str, *, key: str) -> None:
    """Show a remark, in grey and small."""
    with st.container(key=f"soft-{key}"):
        st.text(readable(text))


def show_problem(sentence: str) -> None:
    """Show an error message in a frame."""
    with st.container(border=True):
        st.markdown(":material/error: **No answer**")
        st.text(readable(sentence))


def show_passage(label: str, text: str, length: int, *, key: str) -> None:
    """Show a model's input or output, as far as it was read, with its length."""
    cut = f", the first {len(text):,} of {length:,} characters" if length > len(text) else ""
    tall = len(text) > LONG_TEXT or text.count("\n") > MANY_LINES
    with st.container(key=f"passage-{key}"):
        show_soft(label + cut, key=key)
        # A code's own box scrolls for no key; this one holds its button, which takes the focus.
        with st.container(height=BOX_HEIGHT if tall else "content", border=False):
            st.code(readable(text), language=None, wrap_lines=True)


def show_rows(rows: Sequence[Row], *, key: str) -> None:
    """Show a table."""
    frame = as_frame(rows)
    short = short_names(frame)
    data = styled(frame, short)
    st.dataframe(data, hide_index=True, key=key, placeholder="", column_config=_formats(data))
    _tell_of(short)


def pick_row(
    rows: Sequence[Row],
    *,
    key: str,
    height: int | Literal["auto"] = "auto",
    by_cell: bool = False,
    opened: int | None = None,
    on_pick: Callable[[int], None] | None = None,
) -> int | None:
    """Show a table in which one row can be chosen; return its index, or None.

    Args:
        rows: The rows.
        key: Key of the table in the reader's session.
        height: Height of the table in pixels.
        by_cell: Whether a click anywhere in a row chooses it, instead of only on the box before it.
        opened: Index of the highlighted row.
        on_pick: Called with the index of a clicked row, before the page runs again.
    """
    frame = as_frame(rows)
    short = short_names(frame)
    data = styled(frame, short, opened)

    def picked() -> None:
        chosen = _chosen(st.session_state[key], len(rows))
        if chosen is not None and on_pick is not None:
            on_pick(chosen)

    event = st.dataframe(
        data,
        hide_index=True,
        column_config=_formats(data),
        key=key,
        height=height,
        on_select="rerun" if on_pick is None else picked,
        selection_mode="single-cell" if by_cell else "single-row",
        placeholder="",
    )
    _tell_of(short)
    return _chosen(event, len(rows))


def _chosen(event: DataframeState, n_rows: int) -> int | None:
    selection = event["selection"]
    chosen = [row for row, _ in selection.get("cells", ())] or selection["rows"]
    # The table may have become shorter since it was clicked.
    return chosen[0] if chosen and chosen[0] < n_rows else None


def _formats(data: pd.DataFrame | Styler) -> ColumnConfigMappingInput:
    formats = {} if isinstance(data, Styler) else number_formats(data)  # a styled one has them
    narrow = {name: st.column_config.Column(width=NARROW) for name in data.columns if name in BESIDE_OTHERS}
    numbers = {name: st.column_config.NumberColumn(format=form) for name, form in formats.items()}
    share = st.column_config.ProgressColumn(format="%.1f%%", max_value=100, width="small")
    return {**narrow, **numbers, **({SHARE: share} if SHARE in data.columns else {})}


def _tell_of(short: Mapping[str, Mapping[str, str]]) -> None:
    if short:
        st.caption("To read a long name whole, click its cell and press Enter.")


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
    """A box of names, long ones without their middles; the chosen one is in full in the box's help.

    Args:
        place: The part of the page for the box.
        label: Label of the box.
        names: All different.
        key: Key of the box in the reader's session.
        index: Index of the name that is chosen first; None for none.
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
    """The label of each name in a box; different names have different labels."""
    labels = apart(shortened_apart([readable(name) for name in names], most))
    return dict(zip(names, labels, strict=True))


def whole_names(chosen: Sequence[str | None], short: Mapping[str, str]) -> str | None:
    """The chosen names whose labels are shortened, for a help text; None if no label is shortened."""
    cut = [name for name in chosen if name is not None and short.get(name) != readable(name)]
    return ", ".join(map(as_plain, cut)) or None


MARKUP = frozenset("\\`*_{}[]()<>#+-.!|~:$")


def as_plain(text: str) -> str:
    """Escape a text for places where Streamlit reads Markdown, such as button labels and help."""
    return "".join(f"\\{c}" if c in MARKUP else c for c in readable(text).replace("\n", " "))


def opened_pages(key: str, asked: object, first: Callable[[], list[Place]]) -> list[Place]:
    """The starts of the pages that the reader opened in a table; `first` gives the initial one.

    Args:
        key: Key of the table in the reader's session.
        asked: Identifies the table's content.
        first: Returns the start of the table's first page.
    """
    before, places = st.session_state.get(key, (None, []))
    if before != asked:
        places = first()
        st.session_state[key] = (asked, places)
    found: list[Place] = places
    return found


def shown_of_pages(opened: int, found: int, *, most: int) -> str:
    """The row numbers on the last opened page; `found` rows were read for it, `most` fit on it."""
    begin = most * (opened - 1) + 1
    more = "; there are more" if found > most else ""
    return f"{begin:,} to {begin + min(most, found) - 1:,}{more}"


NO_CAMPAIGNS = "There are no campaigns in this database yet. These commands write a first one and run it:"
ADDRESS = "campaign"
"""Address parameter."""
CHOSEN = "chosen campaign"
"""Session key; the value of a box is lost once a page without it is shown."""
BOX = "campaign box"
MISSED = "campaign not here"
"""Session key: the requested campaign that a page does not have, and the one shown instead."""
ANNOTATOR = "annotator"
"""Session key: the reader's name for judgments and notes."""
LONGEST_IN_SIDEBAR = 24
"""Maximum width of a name in the sidebar, in terminal columns."""


def set_address(**parameters: str | None) -> None:
    """Store a page's state in its address, so that a copied link shows the same; None removes a key."""
    for name, value in parameters.items():
        if not value:
            st.query_params.pop(name, None)
        elif st.query_params.get(name) != value:
            st.query_params[name] = value


def show_no_campaigns() -> None:
    """Show that the database holds no campaign, and how to run one."""
    st.text(NO_CAMPAIGNS)
    run = f"winnow run campaign.yaml {storage_option(os.environ[STORAGE_VARIABLE])}"
    st.code(f"winnow init campaign.yaml\n{readable(run)}", language=None, wrap_lines=True)


def remember_campaign(name: str) -> None:
    """Preselect a campaign on the other pages."""
    st.session_state[CHOSEN] = name


def choose_campaign(names: Sequence[str]) -> str | None:
    """The campaign that the user selects, by default the newest; None if the database has none.

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
        # The box of a page that was just opened would begin with the newest, whatever another one held.
        st.session_state[BOX] = held
    name = choose_name(st.sidebar, "Campaign", newest_first, key=BOX, most=LONGEST_IN_SIDEBAR)
    if name is None:
        return None
    missed = st.session_state.get(MISSED)
    if missed is not None and missed[0] not in names and missed[1] == name:
        show_soft(f"{missed[0]!r} is not a campaign of this page; {name!r} is shown instead.", key="missed")
    remember_campaign(name)
    if st.query_params.get(ADDRESS) != name:
        st.query_params[ADDRESS] = name
    return name

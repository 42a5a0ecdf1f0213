"""A table of which one row is open: by a click, by the keys j and k, or by the page's address."""

from collections.abc import Callable, Sequence

import streamlit as st

from winnow.flows.reports.dashboard.widgets import TABLE_HEADING, TABLE_ROW, pick_row
from winnow.storage.json_types import Row

PLACE = "open row of {}"
"""In the reader's session: the name of the open row, by its parameter in the page's address."""
LAST = "\N{END OF TEXT}"
"""Opens the last row of a table whose rows are not known yet; no row is called so."""


def open_row(
    rows: Sequence[Row],
    names: Sequence[str],
    *,
    key: str,
    address: str,
    height: int,
    earlier: Callable[[], None] | None = None,
    later: Callable[[], None] | None = None,
    where: str = "",
) -> int:
    """Show a table with buttons to step through it; return the index of the open row.

    Args:
        rows: At least one.
        names: A name for each row, which stays the same when the page is loaded again.
        key: Key of the table in the reader's session; another table has another key.
        address: Name of the parameter of the page's address that holds the name of the open row.
        height: Most pixels that the table is high.
        earlier: Turns to the rows before these; None if there are none.
        later: Turns to the rows behind these; None if there are none.
        where: Stands beside the buttons.
    """
    place = PLACE.format(address)
    wanted = st.session_state.get(place) or st.query_params.get(address)
    at = len(rows) - 1 if wanted == LAST else names.index(wanted) if wanted in names else 0
    st.session_state[place] = st.query_params[address] = names[at]

    def open_(name: str) -> None:
        st.session_state[place] = name

    height = min(height, TABLE_HEADING + TABLE_ROW * len(rows))
    pick_row(rows, key=key, height=height, by_cell=True, opened=at, on_pick=lambda row: open_(names[row]))
    back, forth, beside = st.columns([2, 2, 5], vertical_alignment="center")
    is_first, is_last = at == 0, at == len(rows) - 1

    def step(by: int) -> None:
        turn = earlier if by < 0 else later
        if 0 <= at + by < len(rows):
            open_(names[at + by])
        elif turn is not None:
            forget_row(address)
            if by < 0:
                open_(LAST)
            turn()

    back.button(
        "Previous",
        key=f"previous-{address}",
        disabled=is_first and earlier is None,
        shortcut="k",
        on_click=step,
        args=(-1,),
        width="stretch",
    )
    forth.button(
        "Next",
        key=f"next-{address}",
        disabled=is_last and later is None,
        shortcut="j",
        on_click=step,
        args=(1,),
        width="stretch",
    )
    beside.caption(where)
    return at


def forget_row(address: str) -> None:
    """Let the next table of this kind begin with its first row."""
    st.session_state.pop(PLACE.format(address), None)
    st.query_params.pop(address, None)


def has_opened(address: str) -> bool:
    """Whether the reader has seen such a table, so that the page's address says nothing new."""
    return PLACE.format(address) in st.session_state

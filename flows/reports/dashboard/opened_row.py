"""A table with one open row, chosen by a click, by the keys j and k, or by the page's address."""

from collections.abc import Callable, Sequence

import streamlit as st

from winnow.flows.reports.dashboard.widgets import TABLE_HEADING, TABLE_ROW, pick_row
from winnow.storage.json_types import Row

PLACE = "open row of {}"
"""Session key: the name of the open row, by its parameter in the page's address."""
LAST = "\N{END OF TEXT}"
"""Value that opens the last row of a table whose rows are not read yet; never a row's name."""


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
        rows: The rows; at least one.
        names: A name for each row, the same whenever the page is loaded.
        key: Key of the table in the reader's session; another table has another key.
        address: Name of the parameter of the page's address that holds the name of the open row.
        height: Maximum height of the table in pixels.
        earlier: Shows the rows before these; None if these are the first.
        later: Shows the rows after these; None if these are the last.
        where: Text next to the buttons.
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
    """Make the next table of this kind start with its first row."""
    st.session_state.pop(PLACE.format(address), None)
    st.query_params.pop(address, None)


def has_opened(address: str) -> bool:
    """Whether the reader has already seen such a table, so that the page's address is not used again."""
    return PLACE.format(address) in st.session_state

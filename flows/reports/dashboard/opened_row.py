"""Show a table with one open row, chosen by a click, by the keys j and k, or by the page's address."""

from collections.abc import Callable, Sequence

import streamlit as st

from winnow.flows.reports.dashboard.widgets import TABLE_HEADING, TABLE_ROW, pick_row
from winnow.storage.json_types import Row

PLACE = "open row of {}"
"""Session key of the open row's name; the field is the parameter in the page's address."""
LAST = "\N{END OF TEXT}"
"""Value that opens the last row of a table whose rows are not read yet; it is never a row's name."""


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
    """Show a table with buttons to step through its rows; return the index of the open row.

    Args:
        rows: The rows; at least one.
        names: A unique name for each row, the same whenever the page is loaded.
        key: Key of the table in the reader's session; different tables need different keys.
        address: Parameter of the page's address that contains the name of the open row.
        height: Maximum height of the table in pixels.
        earlier: Turns to the page of earlier rows; None on the first page.
        later: Turns to the page of later rows; None on the last page.
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
    """Forget the open row, so that the next table with this address parameter opens its first row."""
    st.session_state.pop(PLACE.format(address), None)
    st.query_params.pop(address, None)


def has_opened(address: str) -> bool:
    """Whether a table with this address parameter was shown in the session; its address is then not used."""
    return PLACE.format(address) in st.session_state

"""Which campaign the reader looks at: kept from page to page, and in the address of the page."""

from collections.abc import Sequence

import streamlit as st

from winnow.flows.reports.dashboard.widgets import choose_name

ADDRESS = "campaign"
"""In the page's address."""
CHOSEN = "chosen campaign"
"""In the reader's session; what a box holds is forgotten once a page without it is shown."""
BOX = "campaign box"
LONGEST_IN_SIDEBAR = 24
"""Columns of a terminal that a name may take there."""


def remember_campaign(name: str) -> None:
    """Let the other pages begin with this one."""
    st.session_state[CHOSEN] = name


def choose_campaign(names: Sequence[str]) -> str | None:
    """The campaign that the reader chose in the box beside the page, at first the newest; None without any.

    Args:
        names: Of all campaigns, oldest first.
    """
    if not names:
        st.text("There are no campaigns in this database yet.")
        return None
    wanted = st.session_state.get(CHOSEN) or st.query_params.get(ADDRESS)
    newest_first = list(reversed(names))
    if st.session_state.get(BOX) not in newest_first:
        st.session_state[BOX] = wanted if wanted in newest_first else newest_first[0]
    name = choose_name(st.sidebar, "Campaign", newest_first, key=BOX, most=LONGEST_IN_SIDEBAR)
    if name is None:
        return None
    remember_campaign(name)
    if st.query_params.get(ADDRESS) != name:
        st.query_params[ADDRESS] = name
    return name

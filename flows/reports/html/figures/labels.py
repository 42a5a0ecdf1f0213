"""Make untrusted text safe for pages and figures; figures interpret some HTML."""

import re
from collections.abc import Sequence
from html import escape

from winnow.flows.reports.rows.text_table import without_shared
from winnow.storage.json_types import JsonObject
from winnow.tasks.text.printable import printable

LONGEST_LABEL = 44
"""Maximum characters of a name next to an axis."""


def readable(text: str) -> str:
    """Replace each unprintable character, such as a control or direction character, by a dot."""
    return printable(text.replace("\r\n", "\n").expandtabs(4))


UNIT = re.compile(r"(?<=\d) (?=(?:s|min|h)\b)")
"""Matches the space between a number and its unit."""


def sentence(text: str) -> str:
    """A readable sentence that does not break between a number and its unit."""
    return UNIT.sub("\N{NO-BREAK SPACE}", readable(text))


def as_label(name: str) -> str:
    """A name as a label in a figure: on one line, with markup escaped."""
    return _escaped(readable(name).replace("\n", " "))


def shortened(name: str, longest: int = LONGEST_LABEL) -> str:
    """A name as an axis label; a long name is shortened in the middle, because names differ at their ends."""
    plain = readable(name).replace("\n", " ")
    if len(plain) > longest:
        plain = f"{plain[: longest // 2]}…{plain[-longest // 2 + 1 :]}"
    return _escaped(plain)


def shortened_apart(names: Sequence[str], longest: int = LONGEST_LABEL) -> list[str]:
    """Names as axis labels; if two would look equal, without the beginning and end common to all."""
    short = [shortened(name, longest) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    return [shortened(name, longest) for name in without_shared(names)]


def name_axis(names: Sequence[str], *, downwards: bool = False) -> JsonObject:
    """Settings of an axis with names in this order; `downwards` puts the first name on top.

    The axis uses full names and shows short ones, so that names with equal short forms stay distinct.
    """
    labels = [as_label(name) for name in names]
    return {
        # Else a name such as "7" would be read as a number.
        "type": "category",
        "categoryorder": "array",
        "categoryarray": labels,
        "range": [len(names) - 0.5, -0.5] if downwards else [-0.5, len(names) - 0.5],
        "tickmode": "array",
        "tickvals": labels,
        "ticktext": shortened_apart(names),
        "ticklabelstandoff": 6,
        "showgrid": False,
    }


def _escaped(text: str) -> str:
    # Plotly does not decode &quot;, and figures use no name in an attribute.
    return escape(text, quote=False)

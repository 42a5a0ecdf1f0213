"""Make untrusted text safe for pages and figures, which interpret a part of HTML."""

import re
from collections.abc import Sequence
from html import escape

from winnow.flows.reports.rows.text_table import without_shared
from winnow.storage.json_types import JsonObject
from winnow.tasks.text.printable import printable

LONGEST_LABEL = 44
"""Maximum characters of a name next to an axis."""


def readable(text: str) -> str:
    """Text without control characters and direction changes: a dot for unprintable characters."""
    return printable(text.replace("\r\n", "\n").expandtabs(4))


UNIT = re.compile(r"(?<=\d) (?=(?:s|min|h)\b)")
"""Matches the space between a number and its unit."""


def sentence(text: str) -> str:
    """A readable sentence without line breaks between a number and its unit."""
    return UNIT.sub("\N{NO-BREAK SPACE}", readable(text))


DIGEST = re.compile(r"[0-9a-f]{16}(-\d+)?")
"""Matches the key of an example whose data has no ids."""


def example_name(key: str, number: int) -> str:
    """The id of an example; if its data has none, the example's number in the dataset.

    Args:
        key: Key of the example, stored as a digest if the data has no ids.
        number: Its position in the dataset, from 0.
    """
    return f"#{number + 1}" if DIGEST.fullmatch(key) else key


def as_label(name: str) -> str:
    """A name for figures: on one line, its markup as text."""
    return _escaped(readable(name).replace("\n", " "))


def shortened(name: str, longest: int = LONGEST_LABEL) -> str:
    """A name as an axis label: a long one loses its middle, because names differ at their ends."""
    plain = readable(name).replace("\n", " ")
    if len(plain) > longest:
        plain = f"{plain[: longest // 2]}…{plain[-longest // 2 + 1 :]}"
    return _escaped(plain)


def shortened_apart(names: Sequence[str], longest: int = LONGEST_LABEL) -> list[str]:
    """Axis labels; if two would look alike, without the beginning and end common to all."""
    short = [shortened(name, longest) for name in names]
    if len(set(short)) == len(set(names)):
        return short
    return [shortened(name, longest) for name in without_shared(names)]


def name_axis(names: Sequence[str], *, downwards: bool = False) -> JsonObject:
    """An axis of names in this order; `downwards` puts the first one on top.

    The axis has full names and shows short ones, so that two with the same short form stay distinct.
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
    # Figures know no &quot;, and put no name into an attribute.
    return escape(text, quote=False)

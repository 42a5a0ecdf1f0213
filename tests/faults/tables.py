"""Tables of faults and of kills, in Markdown."""

import signal
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

HEADINGS = (
    "fault",
    "campaign",
    "database",
    "exit",
    "last line",
    "winnow status",
    "processes",
    "same decision",
    "lost",
    "doubled",
    "s",
)
LONGEST = 110
"""Characters of a cell."""


def cells(row: Mapping[str, Any]) -> list[str]:
    """What became of a fault, in the order of `HEADINGS`."""
    values = [
        row["fault"],
        row["campaign"],
        row["database"],
        ended(row["code"]),
        row["sentence"],
        row["status"],
        row["processes"],
        "yes" if row["same_decision"] else "NO",
        row["lost"],
        row["doubled"],
        row["seconds"],
    ]
    return [_cell(value) for value in values]


def ended(code: int | None) -> str:
    """An exit code, or the name of the signal that ended a process."""
    return signal.Signals(-code).name if code is not None and code < 0 else str(code)


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """Lines of a table."""
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    return lines + ["| " + " | ".join(map(_cell, row)) + " |" for row in rows]


def _cell(value: object) -> str:
    text = " ".join(str(value).split()).replace("|", "\\|")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"

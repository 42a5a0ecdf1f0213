"""CSV after RFC 4180, in UTF-8: texts in quotes, all else without; an empty cell is a missing value."""

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping

from winnow.tasks.queries.columns import Cell

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What spreadsheets take for the beginning of a formula, as OWASP lists it under CSV injection."""


def csv_lines(columns: Iterable[str], rows: Iterable[Mapping[str, Cell]]) -> Iterator[str]:
    """The heading, then a line a row, every text as it is."""
    yield _line(columns)
    for row in rows:
        yield _line(row.values())


def without_formulas(rows: Iterable[Mapping[str, Cell]]) -> Iterator[dict[str, Cell]]:
    """Rows with an apostrophe before each text that a spreadsheet would calculate."""
    for row in rows:
        yield {name: _inert(value) for name, value in row.items()}


def _inert(value: Cell) -> Cell:
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def _line(values: Iterable[Cell]) -> str:
    return ",".join(map(_cell, values)) + "\n"


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, dt.datetime) else repr(value)

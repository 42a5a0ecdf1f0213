"""Rows as frames that a page can draw: every cell readable, and none so long that the page grows slow."""

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import partial

import pandas as pd
from pandas.io.formats.style import Styler

from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.rows.names import shortened_apart
from winnow.flows.reports.rows.text_table import decimals_of
from winnow.storage.json_types import Row
from winnow.tasks.queries.columns import untyped_cell

MOST_CHARACTERS = 4_000_000
"""In all cells of a frame together."""
LEAST_CELL, LONGEST_CELL = 200, 100_000
"""Characters that a cell may have in the largest frame, and in the smallest."""

NAMES = frozenset(
    ("candidate", "candidate b", "opponent", "best", "leader", "campaign", "judge", "other", "example")
)
"""Columns of names, which differ at their ends more often than other texts do."""
LONGEST_NAME = 40
"""Columns of a terminal that a name may take in a table or a box; of longer ones the middle is left out."""
MOST_STYLED = 2_000
"""Rows up to which cells are styled: pandas takes half a second to style as many."""


def as_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Rows with the same columns; columns that hold nothing at all are left out."""
    used = [name for name in (rows[0] if rows else ()) if any(row[name] is not None for row in rows)]
    return table_frame(
        [name.replace("_", " ") for name in used], [[row[name] for name in used] for row in rows]
    )


def table_frame(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> pd.DataFrame:
    """Rows as a statement of SQL gives them, whose columns may share names and hold values of many kinds."""
    longest = min(LONGEST_CELL, max(LEAST_CELL, MOST_CHARACTERS // max(1, len(rows) * len(columns))))
    cells = ([_cell(row[number], longest) for row in rows] for number in range(len(columns)))
    series = [pd.Series(_alike(column), dtype=object).infer_objects() for column in cells]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame()
    frame.columns = apart(columns)
    return frame


def number_formats(frame: pd.DataFrame) -> dict[str, str]:
    """The format of each column whose numbers have fractions, the same for all numbers of a column."""
    found = {}
    for name in frame.select_dtypes("float"):
        known = [abs(value) for value in frame[name] if math.isfinite(value)]
        if any(value % 1.0 for value in known):
            decimals = decimals_of(known)
            found[str(name)] = "%.3g" if decimals is None else f"%.{decimals}f"
    return found


def short_names(frame: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Short forms of the names in each column that has a long one: long names lose their middles."""
    if len(frame) > MOST_STYLED:
        return {}
    short = {}
    for name in [each for each in frame.columns if each in NAMES]:
        whole = [value for value in frame[name] if isinstance(value, str)]
        if max(map(len, whole), default=0) > LONGEST_NAME:
            apart_ = shortened_apart(list(dict.fromkeys(whole)), LONGEST_NAME)
            short[name] = dict(zip(dict.fromkeys(whole), apart_, strict=True))
    return short


def styled(
    frame: pd.DataFrame, short: Mapping[str, Mapping[str, str]], opened: int | None = None
) -> pd.DataFrame | Styler:
    """The frame as it is shown, its cells as they are: names short, and a comma between thousands.

    Args:
        frame: Is given back itself where there is nothing to do, or too much.
        short: See `short_names`.
        opened: Index of the row that stands out.
    """
    numbers = frame.select_dtypes("number")
    is_plain = opened is None and not (short or (numbers.abs() >= 1_000).any(axis=None))
    if len(frame) > MOST_STYLED or is_plain:
        return frame
    forms: dict[str, str | Callable[[object], str] | None] = {str(name): "{:,.0f}" for name in numbers}
    forms |= {name: f"{{:,{form.removeprefix('%')}}}" for name, form in number_formats(frame).items()}
    forms |= {name: partial(_short, of) for name, of in short.items()}
    style = frame.style.format(forms, na_rep="")
    if opened is None:
        return style
    return style.apply(lambda row: [OPENED if row.name == opened else ""] * len(row), axis=1)


OPENED = "background-color: rgba(0, 114, 178, 0.22); font-weight: 600"
"""The style of the row that stands out, on white and on black."""


def _short(short: Mapping[str, str], value: object) -> str:
    return short.get(str(value), str(value))


def _cell(value: object, longest: int) -> object:
    if isinstance(value, Decimal):
        value = untyped_cell(value)
    if isinstance(value, bool):
        return "yes" if value else ""
    if value is None or isinstance(value, (int, float, dt.date)):
        # JavaScript's numbers are exact up to here.
        return str(value) if isinstance(value, int) and abs(value) > 2**53 else value
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    shown = readable(text[:longest])
    return shown if len(text) <= longest else f"{shown}… ({len(text):,} characters)"


def _alike(cells: list[object]) -> list[object]:
    """The cells of one column, as text where they are not all of one kind."""
    numbers = (int, float)
    kinds = {"number" if type(cell) in numbers else type(cell) for cell in cells if cell is not None}
    return cells if len(kinds) < 2 else [None if cell is None else str(cell) for cell in cells]


def apart(names: Sequence[str]) -> list[str]:
    """Names of columns, made readable, with a number behind those that came before."""
    found: list[str] = []
    for name in map(readable, names):
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name} ({number})"
        found.append(unique)
    return found

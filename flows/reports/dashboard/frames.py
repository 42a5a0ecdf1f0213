"""Convert rows to data frames for a page, with readable cells of limited length."""

import datetime as dt
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal
from functools import partial

import pandas as pd
from pandas.io.formats.style import Styler

from winnow.flows.reports.html.figures.labels import readable
from winnow.flows.reports.rows.text_table import OUTWARD, decimals_of, shortened_apart
from winnow.storage.json_types import Row
from winnow.tasks.queries.views import untyped_cell
from winnow.tasks.text.phrases import with_decimals

MOST_CHARACTERS = 4_000_000
"""Maximum characters in all cells of a frame together."""
LEAST_CELL, LONGEST_CELL = 200, 100_000
"""Maximum characters of a cell in large frames and in small frames."""

NAMES = frozenset(
    ("candidate", "candidate b", "opponent", "best", "leader", "campaign", "judge", "other", "example")
)
"""Columns of names, which are shortened in the middle because names often differ at their ends."""
LONGEST_NAME = 40
"""Maximum width of a name in a table or a box, in terminal columns; longer names are shortened."""
MOST_STYLED = 2_000
"""Maximum number of rows that are styled, which takes pandas half a second."""


def as_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Convert rows with the same columns to a frame; columns that are empty in all rows are left out."""
    used = [
        name for name in (rows[0] if rows else ()) if any(row[name] not in (None, False, "") for row in rows)
    ]
    return table_frame(
        [name.replace("_", " ") for name in used], [[row[name] for name in used] for row in rows]
    )


def table_frame(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> pd.DataFrame:
    """Convert rows to a frame; column names may be equal, and a column's values may have several types."""
    longest = min(LONGEST_CELL, max(LEAST_CELL, MOST_CHARACTERS // max(1, len(rows) * len(columns))))
    cells = ([_cell(row[number], longest) for row in rows] for number in range(len(columns)))
    series = [pd.Series(_alike(column), dtype=object).infer_objects() for column in cells]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame()
    frame.columns = unique_names(columns)
    return frame


def number_formats(frame: pd.DataFrame) -> dict[str, str]:
    """Column -> number format, for columns with fractions; all numbers of a column get equal decimals."""
    found = {}
    for name in frame.select_dtypes("float"):
        known = [abs(value) for value in frame[name] if math.isfinite(value)]
        if any(value % 1.0 for value in known):
            decimals = decimals_of(known)
            found[str(name)] = "%.3g" if decimals is None else f"%.{decimals}f"
    return found


def short_names(frame: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Column -> name -> its short form, for columns of names in which a name is too long."""
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
    """Style a frame for display, without changing its values: short names, and commas between thousands.

    Args:
        frame: The frame; returned unchanged if it needs no style, or has too many rows.
        short: See `short_names`.
        opened: Index of the highlighted row; None highlights no row.
    """
    numbers = frame.select_dtypes("number")
    outward = outward_forms(frame)
    is_plain = opened is None and not (short or outward or (numbers.abs() >= 1_000).any(axis=None))
    if len(frame) > MOST_STYLED or is_plain:
        return frame
    forms: dict[str, str | Callable[[object], str] | None] = {str(name): "{:,.0f}" for name in numbers}
    forms |= {name: f"{{:,{form.removeprefix('%')}}}" for name, form in number_formats(frame).items()}
    forms |= outward
    forms |= {name: partial(_short, of) for name, of in short.items()}
    style = frame.style.format(forms, na_rep="")
    if opened is None:
        return style
    return style.apply(lambda row: [OPENED if row.name == opened else ""] * len(row), axis=1)


def outward_forms(frame: pd.DataFrame) -> dict[str, Callable[[object], str]]:
    """Column -> formatter, for columns with ends of intervals; they are rounded outward as in a terminal.

    If both ends are equal, they are rounded to the nearest.
    """
    if not {*OUTWARD} <= {*frame.columns}:
        return {}
    points = {*frame["lower"][frame["lower"] == frame["upper"]]}
    return {
        name: partial(_end, decimals=decimals, rounding=OUTWARD[name], points=points)
        for name in OUTWARD
        if (decimals := decimals_of([abs(value) for value in frame[name] if _is_finite(value)])) is not None
    }


def _is_finite(value: object) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _end(value: object, *, decimals: int, rounding: str, points: Collection[object]) -> str:
    if not isinstance(value, (int, float)) or not math.isfinite(value):
        return ""
    return f"{with_decimals(value, decimals, ROUND_HALF_EVEN if value in points else rounding):,f}"


OPENED = "background-color: rgba(0, 114, 178, 0.22); font-weight: 600"
"""CSS of the highlighted row, for light and dark pages."""


def _short(short: Mapping[str, str], value: object) -> str:
    return short.get(str(value), str(value))


def _cell(value: object, longest: int) -> object:
    if isinstance(value, Decimal):
        value = untyped_cell(value)
    if isinstance(value, bool):
        return "yes" if value else ""
    if value is None or isinstance(value, (int, float, dt.date)):
        # JavaScript represents integers exactly only up to 2**53.
        return str(value) if isinstance(value, int) and abs(value) > 2**53 else value
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    shown = readable(text[:longest])
    return shown if len(text) <= longest else f"{shown}… ({len(text):,} characters)"


def _alike(cells: list[object]) -> list[object]:
    """Convert the cells of a column to text if their types differ; numbers count as one type."""
    numbers = (int, float)
    kinds = {"number" if type(cell) in numbers else type(cell) for cell in cells if cell is not None}
    return cells if len(kinds) < 2 else [None if cell is None else str(cell) for cell in cells]


def unique_names(names: Sequence[str]) -> list[str]:
    """Make names readable and different: a number is appended to repeated names."""
    found: list[str] = []
    for name in map(readable, names):
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name} ({number})"
        found.append(unique)
    return found

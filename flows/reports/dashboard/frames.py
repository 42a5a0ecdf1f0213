"""Rows as frames for the page: readable cells of limited length."""

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
"""Maximum characters in all cells of a frame."""
LEAST_CELL, LONGEST_CELL = 200, 100_000
"""Maximum characters of a cell in the largest frame, and in the smallest."""

NAMES = frozenset(
    ("candidate", "candidate b", "opponent", "best", "leader", "campaign", "judge", "other", "example")
)
"""Columns of names, which differ at their ends more often than other texts."""
LONGEST_NAME = 40
"""Maximum width of a name in a table or a box, in terminal columns; longer ones lose their middle."""
MOST_STYLED = 2_000
"""Maximum number of styled rows: pandas takes half a second for this many."""


def as_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """Data frame of rows with the same columns, without columns that carry no information."""
    used = [
        name for name in (rows[0] if rows else ()) if any(row[name] not in (None, False, "") for row in rows)
    ]
    return table_frame(
        [name.replace("_", " ") for name in used], [[row[name] for name in used] for row in rows]
    )


def table_frame(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> pd.DataFrame:
    """Rows of a SQL statement, whose columns may share names and have values of many types."""
    longest = min(LONGEST_CELL, max(LEAST_CELL, MOST_CHARACTERS // max(1, len(rows) * len(columns))))
    cells = ([_cell(row[number], longest) for row in rows] for number in range(len(columns)))
    series = [pd.Series(_alike(column), dtype=object).infer_objects() for column in cells]
    frame = pd.concat(series, axis=1) if series else pd.DataFrame()
    frame.columns = apart(columns)
    return frame


def number_formats(frame: pd.DataFrame) -> dict[str, str]:
    """The number format of each column with fractions, the same for the whole column."""
    found = {}
    for name in frame.select_dtypes("float"):
        known = [abs(value) for value in frame[name] if math.isfinite(value)]
        if any(value % 1.0 for value in known):
            decimals = decimals_of(known)
            found[str(name)] = "%.3g" if decimals is None else f"%.{decimals}f"
    return found


def short_names(frame: pd.DataFrame) -> dict[str, dict[str, str]]:
    """Short forms of names in each column with a long one: long names lose their middles."""
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
    """The displayed frame, with unchanged cell values: short names, and commas between thousands.

    Args:
        frame: The data; returned unchanged if it needs no styling, or is too large for it.
        short: See `short_names`.
        opened: Index of the highlighted row.
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
    """The forms of columns with the ends of intervals, which are rounded outward as in a terminal.

    An end of an interval without a width is rounded to the nearest.
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
"""The style of the highlighted row, on white and on black."""


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
    """The cells of a column, converted to text if their types differ."""
    numbers = (int, float)
    kinds = {"number" if type(cell) in numbers else type(cell) for cell in cells if cell is not None}
    return cells if len(kinds) < 2 else [None if cell is None else str(cell) for cell in cells]


def apart(names: Sequence[str]) -> list[str]:
    """Readable column names; repeated names get a number."""
    found: list[str] = []
    for name in map(readable, names):
        number, unique = 1, name
        while unique in found:
            number += 1
            unique = f"{name} ({number})"
        found.append(unique)
    return found

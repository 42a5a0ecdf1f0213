"""CSV after RFC 4180, in UTF-8: texts in quotes, all else without; an empty cell is a missing value."""

import datetime as dt
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from winnow.tasks.queries.columns import Kind

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What spreadsheets take for the beginning of a formula, as OWASP lists it under CSV injection."""


def write_csv(path: Path, kinds: Mapping[str, Kind], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows with every text as it is; how many they were."""
    count = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(_line(kinds))
        for row in rows:
            file.write(_line(row.values()))
            count += 1
    return count


def write_spreadsheet_csv(path: Path, kinds: Mapping[str, Kind], rows: Iterable[Mapping[str, Any]]) -> int:
    """Write rows with an apostrophe before each text that a spreadsheet would calculate."""
    return write_csv(path, kinds, ({name: _inert(value) for name, value in row.items()} for row in rows))


def _inert(value: Any) -> Any:  # noqa: ANN401 -- a cell of any kind
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_STARTS) else value


def _line(values: Iterable[Any]) -> str:
    return ",".join(map(_cell, values)) + "\n"


def _cell(value: Any) -> str:  # noqa: ANN401 -- a cell of any kind
    if value is None:
        return ""
    if isinstance(value, str):
        return '"' + value.replace('"', '""') + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, dt.datetime) else repr(value)

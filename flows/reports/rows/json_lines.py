"""Rows as JSON: one object a line, or a list of objects; a missing value is null."""

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping

_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""Some readers end a line here too; JSON may write them as escapes, which only texts can hold."""


def json_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """A line a row."""
    for row in rows:
        yield _object(row) + "\n"


def json_list(rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """A list with a line a row, one row after the other."""
    separator = "[\n"
    for row in rows:
        yield f"{separator}  {_object(row)}"
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _object(row: Mapping[str, object]) -> str:
    return json.dumps(row, default=_jsonable, ensure_ascii=False).translate(_LINE_ENDS)


def _jsonable(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not a JSON value")

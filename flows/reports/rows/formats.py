"""Write rows as CSV, JSON and Parquet."""

import datetime as dt
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from winnow.tasks.queries.views import Cell, Kind

if TYPE_CHECKING:
    import pyarrow as pa

FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""Characters that begin a formula in spreadsheets, from OWASP's list under CSV injection."""

_CELLS_ELSEWHERE = re.compile(rf"([;|\t\r\n])(?=[\"\s]*[{re.escape(''.join(FORMULA_STARTS))}])")
"""Matches a separator before the beginning of a formula inside a text.

Some spreadsheets ignore the separator that the file names, and use the semicolon in several countries. Quotes
then protect only the text at the beginning of a line.
"""


def csv_lines(columns: Iterable[str], rows: Iterable[Mapping[str, Cell]]) -> Iterator[str]:
    """Yield the heading, then one CSV line per row with unchanged texts."""
    yield _line(columns)
    for row in rows:
        yield _line(row.values())


def spreadsheet_lines(columns: Iterable[str], rows: Iterable[Mapping[str, Cell]]) -> Iterator[str]:
    """Yield CSV lines for spreadsheets: first the separator, and an apostrophe before each formula."""
    yield "sep=,\n"
    yield _line(map(_inert, columns))
    for row in rows:
        yield _line(map(_inert, row.values()))


def _inert(value: Cell) -> Cell:
    if not isinstance(value, str):
        return value
    found = _CELLS_ELSEWHERE.sub(r"\1'", value)
    return f"'{found}" if found.startswith(FORMULA_STARTS) else found


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


_LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}
"""Characters that some readers treat as line ends -> their JSON escapes.

Replacing them in JSON is valid, because they occur only in strings."""


def json_lines(rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Yield one JSON object per line and row."""
    for row in rows:
        yield _object(row) + "\n"


def json_list(rows: Iterable[Mapping[str, object]]) -> Iterator[str]:
    """Yield the parts of a JSON list with one line per row."""
    separator = "[\n"
    for row in rows:
        yield f"{separator}  {_object(row)}"
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _object(row: Mapping[str, object]) -> str:
    try:
        text = json.dumps(row, default=_jsonable, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(row), default=_jsonable, ensure_ascii=False)
    return text.translate(_LINE_ENDS)


def _finite(value: object) -> object:
    """Replace numbers that JSON lacks, but SQL can return, by texts such as "Infinity"."""
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


def _jsonable(value: object) -> str:
    if isinstance(value, dt.datetime):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} is not a JSON value")


MOST_ROWS = 10_000
MOST_CHARACTERS = 16 * 2**20
"""Maximum number of text characters per row group, except for its last row; this bounds memory."""


def write_parquet(path: Path, kinds: Mapping[str, Kind], rows: Iterable[Mapping[str, object]]) -> int:
    """Write rows to a Parquet file with these column types; return the number of rows."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, _type_of(kind)) for name, kind in kinds.items()])
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for group in _groups(rows):
            writer.write_table(pa.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count


def _groups(rows: Iterable[Mapping[str, object]]) -> Iterator[list[Mapping[str, object]]]:
    group: list[Mapping[str, object]] = []
    characters = 0
    for row in rows:
        group.append(row)
        characters += sum(_size(value) for value in row.values())
        if len(group) == MOST_ROWS or characters > MOST_CHARACTERS:
            yield group
            group, characters = [], 0
    if group:
        yield group


def _size(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(len(each["content"]) for each in value) if isinstance(value, list) else 0


def _type_of(kind: Kind) -> "pa.DataType":
    import pyarrow as pa

    return {
        "integer": pa.int64(),
        "real": pa.float64(),
        "truth": pa.bool_(),
        "time": pa.timestamp("us", tz="UTC"),
        "text": pa.string(),
        "conversation": pa.list_(pa.struct([("content", pa.string()), ("role", pa.string())])),
    }[kind]

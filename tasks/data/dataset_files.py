"""The rows of a data file, each with the place where it stands."""

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime, time
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any, NoReturn

from winnow.storage.json_types import Row
from winnow.tasks.errors import DatasetError
from winnow.tasks.spec.suggestions import did_you_mean, unknown_name

PATH_KEY = "dataset.path"

PlacedRow = tuple[str, Row]
"""Where a row stands, such as "line 7", and the row."""


def read_rows(path: Path) -> Iterator[PlacedRow]:
    """The rows of a file in order, read according to its suffix (.jsonl, .json, .csv or .parquet).

    Raises:
        DatasetError: If the file is missing, cannot be read, or is not what its suffix says; for a row, when
            it is reached.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise DatasetError(
            f"{unknown_name('suffix', path.suffix, _READERS)}; rename or convert {path}", PATH_KEY
        )
    if not path.is_file():
        raise DatasetError(_missing(path), PATH_KEY)
    try:
        yield from reader(path)
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}", PATH_KEY) from error


def _missing(path: Path) -> str:
    if path.is_dir():
        return f"{path} is a folder; name a file in it"
    beside = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    remedy = did_you_mean(path.name, beside) or "correct the path"
    return f"there is no file {path} (looked for {path.absolute()}, working directory {Path.cwd()}); {remedy}"


def _jsonl_rows(path: Path) -> Iterator[PlacedRow]:
    # Not splitlines(): a JSON string may hold other line separators, such as U+2028, as they are.
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            place = f"line {number}"
            yield place, _object(path, place, _json(path, line, first_line=number))


def _json_rows(path: Path) -> Iterator[PlacedRow]:
    rows = _json(path, _text(path), first_line=1)
    if not isinstance(rows, list):
        raise DatasetError(f"{path} holds {_kind(rows)}; a .json dataset is one list of objects", PATH_KEY)
    for number, row in enumerate(rows, start=1):
        yield f"item {number}", _object(path, f"item {number}", row)


def _csv_rows(path: Path) -> Iterator[PlacedRow]:
    reader = csv.reader(StringIO(_text(path), newline=""), strict=True)
    previous_limit = csv.field_size_limit(2**31 - 1)  # a cell may hold a whole document
    try:
        header = next(reader, [])
        if repeated := {name for name in header if header.count(name) > 1}:
            raise DatasetError(f"{path} has two columns {min(repeated)!r}; rename one of them", PATH_KEY)
        start = reader.line_num + 1
        for cells in reader:
            if cells and len(cells) != len(header):
                raise DatasetError(
                    f"{path}, line {start}: {len(cells)} cells under {len(header)} column names; "
                    "quote cells that hold commas",
                    PATH_KEY,
                )
            if cells:
                yield f"line {start}", dict(zip(header, cells, strict=True))
            start = reader.line_num + 1
    except csv.Error as error:
        raise DatasetError(f"{path}, line {reader.line_num}: not CSV ({error}); mend it", PATH_KEY) from error
    finally:
        csv.field_size_limit(previous_limit)


def _parquet_rows(path: Path) -> Iterator[PlacedRow]:
    import pyarrow  # a quarter of a second that other formats need not pay
    import pyarrow.parquet

    try:
        table = pyarrow.parquet.read_table(path)
    except pyarrow.ArrowException as error:
        raise DatasetError(f"{path} is not a Parquet file ({error}); write it again", PATH_KEY) from error
    number = 0
    for batch in table.to_batches():
        for row in _python_values(path, batch):
            number += 1
            place = f"row {number}"
            yield place, {name: _json_value(path, place, name, value) for name, value in row.items()}


def _python_values(path: Path, batch: Any) -> list[Row]:  # noqa: ANN401 -- pyarrow has no types
    try:
        rows: list[Row] = batch.to_pylist()
    except (ValueError, LookupError, OverflowError) as error:  # such as a time zone that Python does not know
        raise DatasetError(
            f"{path} holds a value that cannot be read ({type(error).__name__}: {error}); convert its column "
            "to text",
            PATH_KEY,
        ) from error
    return rows


_READERS: Mapping[str, Callable[[Path], Iterator[PlacedRow]]] = {
    ".csv": _csv_rows,
    ".json": _json_rows,
    ".jsonl": _jsonl_rows,
    ".parquet": _parquet_rows,
}


def _text(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DatasetError(f"{path}, line {line}: not UTF-8; save the file as UTF-8", PATH_KEY) from error


def _json(path: Path, text: str, first_line: int) -> object:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        line, problem = first_line + error.lineno - 1, f"{error.msg}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        line, problem = first_line, str(error)
    raise DatasetError(f"{path}, line {line}: not JSON ({problem}); mend it", PATH_KEY)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _object(path: Path, place: str, value: object) -> Row:
    if not isinstance(value, dict):
        sentence = f'holds {_kind(value)}; a row is an object, such as {{"input": "1+1", "target": "2"}}'
        raise DatasetError(f"{path}, {place}: {sentence}", PATH_KEY)
    return value


def _json_value(path: Path, place: str, column: str, value: object) -> object:
    """A Parquet value as JSON has it: times in ISO 8601, decimals as text, a NaN as null."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if not math.isinf(value):
            return None if math.isnan(value) else value
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
        case list() | tuple():
            return [_json_value(path, place, column, item) for item in value]
        case dict():
            return {str(key): _json_value(path, place, column, item) for key, item in value.items()}
    raise DatasetError(
        f"{path}, {place}: column {column!r} holds {_kind(value)}, which is not text, a number, a list or an "
        "object; convert the column or leave it out",
        PATH_KEY,
    )


def _kind(value: object) -> str:
    names = {bool: "a boolean", dict: "an object", list: "a list", str: "text", type(None): "null"}
    return names.get(type(value), "a number" if isinstance(value, int | float) else type(value).__name__)

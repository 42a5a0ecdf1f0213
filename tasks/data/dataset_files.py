"""Rows of data files, each with its place in the file."""

import csv
import gzip
import json
import math
import os.path
import re
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from glob import glob, has_magic
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import orjson

from winnow.storage.json_types import JsonObject, JsonView, Row
from winnow.storage.plain_files import open_plain, require_plain
from winnow.tasks.data.file_contents import JSON_LINES, JSON_LIST, SNIFFED, contents_of
from winnow.tasks.errors import DatasetError, did_you_mean, unknown_name

if TYPE_CHECKING:
    from pyarrow import RecordBatch, Scalar, Table

PATH_KEY = "dataset.path"

GZIP = ".gz"
GZIP_MARK = b"\x1f\x8b"

SEPARATORS = {";": "semicolons", "\t": "tabs"}
"""Separators that some programs write in CSV files instead of commas, with their names."""

JSON_SUFFIXES = (".json", ".jsonl", ".ndjson")

BATCH = 1024
"""Number of rows of a Parquet file that are read at once."""

PlacedRow = tuple[str, Row]
"""The place of a row in its file, such as "line 7", and the row."""


class PartialRow(dict[str, Any]):
    """A row without the values that JSON cannot represent."""

    left_out: Mapping[str, str]
    """Kind of the omitted contents, such as "bytes", by dotted name; see `tasks.dotted_names`."""
    contents: Mapping[str, list[object]]
    """The omitted contents themselves by dotted name, in order: lists of objects can have several."""


class RowWithNaN(dict[str, Any]):
    """A row of JSON with null in place of NaN, which JSON cannot represent."""

    nans: frozenset[str]
    """Dotted names of the values that were NaN."""


def read_files(paths: Sequence[str]) -> Iterator[PlacedRow]:
    """Yield the rows of several files, one file after the other.

    Args:
        paths: Files, or patterns such as "shards/*.parquet". The files of a pattern are read in the order of
            their names.

    Returns:
        Each row as JSON values, with a place that begins with its file. A row with other values is a
        `PartialRow`.

    Raises:
        DatasetError: A pattern matches no file, a file is named twice, or see `read_rows`.
    """
    found: dict[Path, None] = {}
    for path in (each for given in paths for each in _files(given)):
        if path in found:
            raise DatasetError(f"{path} is named twice; name each file once", PATH_KEY)
        found[path] = None
    for path in found:
        name = str(path)
        for place, row in _rows(path):
            yield f"{name}, {place}", row


def _files(given: str) -> list[Path]:
    if not has_magic(given) or os.path.exists(given):
        return [Path(given)]
    if not (names := sorted(glob(given, recursive=True))):
        raise DatasetError(
            f"no file matches {given} (working directory {Path.cwd()}); correct the pattern", PATH_KEY
        )
    return [Path(name) for name in names]


def read_rows(path: Path) -> Iterator[PlacedRow]:
    """Yield the rows of a file in order, read according to its suffix.

    Args:
        path: A .jsonl (or .ndjson), .json, .csv or .parquet file. All but the last can be compressed, such as
            .jsonl.gz. Whether JSON is read as a list or as lines depends on its content, not on the suffix.

    Raises:
        DatasetError: The file is missing, unreadable, or does not match its suffix. Or, when a row is
            reached, the row contains values that JSON cannot represent.
    """
    for place, row in _rows(path):
        _refuse_partial(f"{path}, {place}", row, PATH_KEY)
        yield place, row


def _rows(path: Path) -> Iterator[PlacedRow]:
    if os.path.isdir(path):  # unlike `Path`'s, no error for a name that no file can have
        raise DatasetError(f"{path} is a folder; name a file in it, or all files as {path}/*.jsonl", PATH_KEY)
    suffix = _suffix(path)
    if not os.path.exists(path):
        if suffix not in _READERS:
            _refuse_suffix(path, suffix)
        raise DatasetError(_missing(path), PATH_KEY)
    try:
        yield from _reader(path, suffix)(path)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DatasetError(
            f"{path} is not a complete gzip file ({error}); compress it again", PATH_KEY
        ) from error
    except OSError as error:
        raise DatasetError(f"{path} cannot be read: {error.strerror or error}", PATH_KEY) from error


def _reader(path: Path, suffix: str) -> Callable[[Path], Iterator[PlacedRow]]:
    """The reader for a file's format; for JSON, list or lines by its content.

    Raises:
        DatasetError: No reader supports the format, or the content does not match the suffix.
    """
    plain = suffix.removesuffix(GZIP)
    with open_plain(path) as file:
        mark = file.read(len(GZIP_MARK))
    if suffix != plain and mark and mark != GZIP_MARK:
        named = path.with_suffix("")
        raise DatasetError(
            f"{path} is not compressed, although its suffix is {GZIP}; rename it to {named}", PATH_KEY
        )
    with _opened(path) as file:
        found = contents_of(file.read(SNIFFED))
    if plain in JSON_SUFFIXES and found in (JSON_LINES, JSON_LIST):
        return _json_rows if found == JSON_LIST else _jsonl_rows
    if suffix in _READERS and (found is None or found.suffix == plain):
        return _READERS[suffix]
    if found is None:
        _refuse_suffix(path, suffix)
    remedy = found.remedy or f"rename it to {_with_suffix(path, found.suffix or '')}"
    raise DatasetError(f"{path} is {found.what}, which does not match its suffix; {remedy}", PATH_KEY)


def _with_suffix(path: Path, suffix: str) -> str:
    """A file name for this format, with .gz if the file is compressed."""
    if suffix == GZIP:
        return f"{path}{GZIP}"
    is_compressed = path.suffix.lower() == GZIP
    named = (path.with_suffix("") if is_compressed else path).with_suffix(suffix)
    return f"{named}{GZIP}" if is_compressed else str(named)


def _refuse_suffix(path: Path, suffix: str) -> NoReturn:
    raise DatasetError(f"{unknown_name('suffix', suffix, _READERS)}; rename or convert {path}", PATH_KEY)


@contextmanager
def given_to_command() -> Generator[None, None, None]:
    """Remove campaign keys from errors, because a command received the data file."""
    try:
        yield
    except DatasetError as error:
        if error.path != PATH_KEY:
            raise
        raise DatasetError(error.message) from error


def rows_given(path: Path, columns: Sequence[str]) -> Iterator[PlacedRow]:
    """Yield the rows of a file that was given to a command, without empty rows.

    Spreadsheets write empty rows at the end of a file.

    Raises:
        DatasetError: The file cannot be read, or a row lacks one of the columns.
    """
    with given_to_command():
        rows = list(read_rows(path))
    for place, row in rows:
        for column in columns:
            if column not in row:
                raise DatasetError(f"{path}, {place}: {no_column(column, row)}")
        if any(str(value).strip() for value in row.values() if value is not None):
            yield place, row


def _suffix(path: Path) -> str:
    """The suffix for a file's format, with that of its compression."""
    last = path.suffix.lower()
    return Path(path.stem).suffix.lower() + last if last == GZIP else last


def _opened(path: Path) -> BinaryIO:
    """The file's content, decompressed if it is compressed."""
    if path.suffix.lower() != GZIP:
        return open_plain(path)
    require_plain(path)
    return BufferedReader(gzip.open(path, "rb"))  # reads lines three times as fast


def _missing(path: Path) -> str:
    beside = [entry.name for entry in path.parent.iterdir()] if os.path.isdir(path.parent) else []
    remedy = did_you_mean(path.name, beside) or "correct the path"
    return f"there is no file {path} (looked for {path.absolute()}, working directory {Path.cwd()}); {remedy}"


def _jsonl_rows(path: Path) -> Iterator[PlacedRow]:
    # By bytes: a JSON string can contain other line separators, such as U+2028, unescaped.
    with _opened(path) as file:
        for number, line in enumerate(file, start=1):
            if line.isspace():  # millions of them fit into a small compressed file
                continue
            if (row := _quickly_read(line)) is not None:
                yield f"line {number}", row
                continue
            text = _decoded(path, line, first_line=number, begins=number == 1).removesuffix("\n")
            if text.strip():
                place, has_constants = f"line {number}", _CONSTANT.search(text) is not None
                value = _json(path, text, first_line=number)
                yield place, _object(path, place, value, has_constants=has_constants)


_PLAIN = frozenset((str, int, bool, type(None)))

_LONG_NUMBER = re.compile(rb"[0-9]{19}")


def is_plain(row: JsonView) -> bool:
    """Whether a row has no floats, lists or objects.

    Libraries format floats in different ways.
    """
    return _PLAIN.issuperset(map(type, row.values()))


def _quickly_read(line: bytes) -> Row | None:
    """Parse a line fast; None if the module `json` must parse it.

    It must for exact digits and for an error message. orjson takes a third of the time, and its rows share
    the names of their columns. But it rounds whole numbers of more than 64 bits.
    """
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    is_exact = isinstance(row, dict) and (is_plain(row) or not _LONG_NUMBER.search(line))
    return row if is_exact else None


def _json_rows(path: Path) -> Iterator[PlacedRow]:
    with _opened(path) as file:
        text = _decoded(path, file.read(), first_line=1, begins=True)
    rows = _json(path, text, first_line=1)
    if not isinstance(rows, list):
        lists = (
            [key for key, value in rows.items() if isinstance(value, list)] if isinstance(rows, dict) else []
        )
        remedy = f"save only the list {lists[0]!r}" if lists else "save the examples as such a list"
        sentence = f"{path} contains {_kind(rows)}, but a .json dataset is one list of objects; {remedy}"
        raise DatasetError(sentence, PATH_KEY)
    has_constants = _CONSTANT.search(text) is not None
    for number, row in enumerate(rows, start=1):
        yield f"item {number}", _object(path, f"item {number}", row, has_constants=has_constants)


def _csv_rows(path: Path) -> Iterator[PlacedRow]:
    try:
        with _opened(path) as file, TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
            yield from _csv_cells(path, text)
    except UnicodeDecodeError:
        with _opened(path) as file:  # it was decoded in pieces: find the line
            for number, line in enumerate(file, start=1):
                _decoded(path, line, first_line=number, begins=False)
        raise


def _csv_cells(path: Path, text: TextIOWrapper) -> Iterator[PlacedRow]:
    reader = csv.reader(text, strict=True)
    try:
        header = _csv_header(reader)
        if repeated := {name for name in header if header.count(name) > 1}:
            raise DatasetError(f"{path} has two columns {min(repeated)!r}; rename one", PATH_KEY)
        start = reader.line_num + 1
        while (cells := _csv_line(reader)) is not None:
            if cells and len(cells) == len(header):
                yield f"line {start}", dict(zip(header, cells, strict=True))
            elif any(map(str.strip, cells[len(header) :])) or (any(cells) and len(cells) < len(header)):
                remedy = other_separator(header) or "quote cells that contain commas, or name every column"
                raise DatasetError(
                    f"{path}, line {start}: {len(cells)} cells under {len(header)} column names; {remedy}",
                    PATH_KEY,
                )
            elif cells:
                yield f"line {start}", dict(zip(header, cells, strict=False)) if any(cells) else {}
            start = reader.line_num + 1
    except csv.Error as error:
        raise DatasetError(
            f"{path}, line {reader.line_num}: not CSV ({error}); correct this line", PATH_KEY
        ) from error


def _csv_header(reader: Iterator[list[str]]) -> list[str]:
    """Column names, without several unnamed ones at the right.

    Spreadsheets write such columns.
    """
    header = _csv_line(reader) or []
    if any(not name.strip() and header.count(name) > 1 for name in header):
        while header and not header[-1].strip():
            header.pop()
    return header


def other_separator(columns: Iterable[str]) -> str:
    """The remedy for columns read as one because the separator is not a comma.

    Empty if this does not seem to be the cause.
    """
    names = list(columns)
    found = [said for mark, said in SEPARATORS.items() if len(names) == 1 and mark in names[0]]
    return f"its columns are separated by {found[0]}: save it with commas between them" if found else ""


def no_column(column: str, row: Row) -> str:
    """The error message for a row without a required column, with the remedy."""
    return f"there is no column {column!r}; {other_separator(row) or 'add it'}"


def _csv_line(reader: Iterator[list[str]]) -> list[str] | None:
    """The cells of the next line; None at the end.

    Each cell can be a whole document. The size limit is global to the process, so it is restored before other
    code runs.
    """
    previous_limit = csv.field_size_limit(2**31 - 1)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(previous_limit)


def _parquet_rows(path: Path) -> Iterator[PlacedRow]:
    number = 0
    for batch in _batches(path):
        for row in arrow_rows(batch):
            number += 1
            yield f"row {number}", row


def _batches(path: Path) -> Iterator["RecordBatch"]:
    import pyarrow  # a quarter of a second that other formats need not pay
    import pyarrow.parquet

    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield from file.iter_batches(BATCH)
    except (pyarrow.ArrowException, UnicodeDecodeError) as error:
        raise DatasetError(f"{path} is not a Parquet file ({error}); write it again", PATH_KEY) from error


def arrow_rows(table: "RecordBatch | Table") -> Iterator[Row]:
    """Yield the rows of an Arrow table as JSON values; see `storable_row`."""
    try:
        rows: list[Row] = table.to_pylist()
    except (ValueError, LookupError, OverflowError, ImportError):  # such as a time zone that Python lacks
        columns = {name: [*map(_python_value, table.column(name))] for name in table.column_names}
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return map(storable_row, rows)


def _python_value(scalar: "Scalar[Any]") -> object:
    try:
        return scalar.as_py()
    except (ValueError, LookupError, OverflowError, ImportError):
        return _LeftOut(f"a value of the type {scalar.type} that Python cannot read")


_READERS: Mapping[str, Callable[[Path], Iterator[PlacedRow]]] = {
    ".csv": _csv_rows,
    ".csv.gz": _csv_rows,
    ".json": _json_rows,
    ".json.gz": _json_rows,
    ".jsonl": _jsonl_rows,
    ".jsonl.gz": _jsonl_rows,
    ".ndjson": _jsonl_rows,
    ".ndjson.gz": _jsonl_rows,
    ".parquet": _parquet_rows,
}


def _decoded(path: Path, content: bytes, *, first_line: int, begins: bool) -> str:
    """Decode some lines of a file, without a byte order mark at the file's beginning."""
    try:
        return content.decode("utf-8-sig" if begins else "utf-8")
    except UnicodeDecodeError as error:
        line = first_line + content.count(b"\n", 0, error.start)
        raise DatasetError(f"{path}, line {line}: not UTF-8; save the file as UTF-8", PATH_KEY) from error


def _json(path: Path, text: str, first_line: int) -> object:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        line, problem = first_line + error.lineno - 1, f"{error.msg}, column {error.colno}"
    except (ValueError, RecursionError) as error:
        line, problem = first_line, str(error)
    raise DatasetError(f"{path}, line {line}: not JSON ({problem}); correct this line", PATH_KEY)


_DECODER = json.JSONDecoder()
"""Shared decoder for all lines, because `json.loads` creates one for each call."""

_CONSTANT = re.compile(r"NaN|Infinity|[0-9][eE]\+?[0-9]{2}|[0-9]{300}")
"""Pattern of numbers that are not plain JSON, and of those that may exceed a float.

Some programs write NaN and Infinity in JSON.
"""


def _object(path: Path, place: str, value: object, *, has_constants: bool) -> Row:
    if not isinstance(value, dict):
        sentence = f'contains {_kind(value)}; write an object, such as {{"input": "1+1", "target": "2"}}'
        raise DatasetError(f"{path}, {place}: {sentence}", PATH_KEY)
    if not has_constants:
        return value
    row = storable_row(value)
    if isinstance(row, PartialRow) or not (nans := frozenset(_nans("", value))):
        return row
    found = RowWithNaN(row)
    found.nans = nans
    return found


def _nans(prefix: str, values: Mapping[str, object]) -> Iterator[str]:
    for key, value in values.items():
        if isinstance(value, dict):
            yield from _nans(f"{prefix}{key}.", value)
        elif isinstance(value, float) and math.isnan(value):
            yield f"{prefix}{key}"


def json_row(place: str, row: Mapping[str, object], path: str = PATH_KEY) -> Row:
    """A row of a typed table as JSON values; see `storable_row`.

    Raises:
        DatasetError: A value cannot be represented in JSON, such as bytes.
    """
    found = storable_row(row)
    _refuse_partial(place, found, path)
    return found


def _refuse_partial(place: str, row: Row, path: str) -> None:
    if isinstance(row, PartialRow):
        column, holds = next(iter(row.left_out.items()))
        raise DatasetError(
            f"{place}: column {column!r} contains {holds}, and not text, a finite number, a list or an "
            "object; convert or remove the column",
            path,
        )


def storable_row(row: Mapping[str, object]) -> Row:
    """A row of a typed table as JSON values.

    Times are in ISO 8601, decimals are text, and NaN is null. Other values, such as bytes and infinities, are
    omitted, and the row is then a `PartialRow`. From an object only the key of such a value is omitted; a
    list with such a value is omitted as a whole.
    """
    left_out: dict[str, _LeftOut] = {}
    kept = _storable_object("", row, left_out)
    if not left_out:
        return kept
    partial = PartialRow(kept)
    partial.left_out = {name: each.holds for name, each in left_out.items()}
    partial.contents = {name: each.values for name, each in left_out.items()}
    return partial


def _storable_object(
    prefix: str, values: Mapping[Any, object], left_out: "dict[str, _LeftOut]"
) -> JsonObject:
    kept: JsonObject = {}
    for key, value in values.items():
        name = f"{prefix}{key}"
        found = _storable_value(name, value, left_out)
        if not isinstance(found, _LeftOut):
            kept[str(key)] = found
        elif name in left_out:
            left_out[name].values.extend(found.values)
        else:
            left_out[name] = found
    return kept


def _storable_value(name: str, value: object, left_out: "dict[str, _LeftOut]") -> object:
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
            items = [_storable_value(name, item, left_out) for item in value]
            without = [each for each in items if isinstance(each, _LeftOut)]
            return _LeftOut(without[0].holds, list(value)) if without else items
        case dict():
            return _storable_object(f"{name}.", value, left_out)
    return value if isinstance(value, _LeftOut) else _LeftOut(_kind(value), [value])


@dataclass(frozen=True, slots=True)
class _LeftOut:
    """Placeholder for a value that JSON cannot represent."""

    holds: str
    values: list[object] = field(default_factory=list)


def _kind(value: object) -> str:
    names = {bool: "a boolean", dict: "an object", list: "a list", str: "text", type(None): "null"}
    match value:
        case float() if math.isinf(value):
            return "an infinite number"
        case timedelta():
            return "a duration"
        case int() | float() if not isinstance(value, bool):
            return "a number"
    return names.get(type(value), type(value).__name__)

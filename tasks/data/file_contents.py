"""Detect the format of a data file by its content; the name does not matter."""

import re
from typing import NamedTuple

import orjson

SNIFFED = 1 << 16
"""Number of bytes at the start of a file that are inspected."""


class Contents(NamedTuple):
    """Kind of a file's contents, and the remedy if it is not supported."""

    what: str
    suffix: str | None
    """The suffix of such files; None if the format is not supported."""
    remedy: str | None = None
    """The remedy; None if renaming the file is enough."""


JSON_LINES = Contents("JSON lines", ".jsonl")
JSON_LIST = Contents("one JSON list", ".json")
CSV = Contents("CSV", ".csv")

_BEGINNINGS = (
    (b"PAR1", Contents("a Parquet file", ".parquet")),
    (b"\x1f\x8b", Contents("compressed by gzip", ".gz")),
    (b"PK\x03\x04", Contents("a spreadsheet or another zip archive", None, "save its table as .csv")),
    (b"\xd0\xcf\x11\xe0", Contents("a spreadsheet", None, "save its table as .csv")),
    (b"ARROW1", Contents("an Arrow file", None, "write it as .parquet")),
    (b"SQLite format 3\0", Contents("a SQLite database", None, "export its table as .csv")),
    (
        b"version https://git-lfs",
        Contents("a pointer of Git LFS", None, "fetch the file itself: git lfs pull"),
    ),
)

_WEB_PAGE = re.compile(rb"<(?:!doctype html|html|\?xml)", re.IGNORECASE)

_ROWS_IN_A_LIST = re.compile(rb"\[\s*[{\]]")

_JSON_BEGINS = re.compile(rb"[{\[\"0-9-]|true|false|null|NaN|Infinity")


def contents_of(beginning: bytes) -> Contents | None:
    """The contents of a file; None if its first bytes do not identify them."""
    for mark, found in _BEGINNINGS:
        if beginning.startswith(mark):
            return found
    text = beginning.removeprefix(b"\xef\xbb\xbf").lstrip()
    if _WEB_PAGE.match(text):
        return Contents("a page of the web", None, "download the file itself")
    if _ROWS_IN_A_LIST.match(text):
        return JSON_LIST
    lines = [each for each in text.splitlines()[:2] if each.strip()]
    if text.startswith(b"{"):
        return JSON_LINES if len(lines) == 2 and all(map(_is_object, lines)) else None
    is_json = _JSON_BEGINS.match(text) and not text.startswith(b'"')
    if lines and not is_json and _is_csv_header(lines[0]):
        return CSV
    return None


def _is_object(line: bytes) -> bool:
    """Whether a line is a JSON object, possibly truncated or damaged."""
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return line.startswith(b'{"') and not line.rstrip().endswith(b",")


def _is_csv_header(line: bytes) -> bool:
    """Whether a line consists of a few short names separated by commas."""
    names = line.split(b",")
    return len(names) > 1 and all(re.fullmatch(rb'\s*"?[\w .-]{1,64}"?\s*', name) for name in names)

"""The process that answers one SQL statement within its limits and ends.

Its standard input is one line of JSON: the URL of the database, the statement and the limits. Its standard
output is frames, each four bytes of length and as many bytes of JSON: `ready`, then the columns, then rows,
then the result. Values that JSON lacks are marked with their type. Nothing is pickled, because a statement
might take control of this process.
"""

import base64
import datetime as dt
import json
import os
import resource
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

from winnow.storage.admin.schema import reading
from winnow.storage.engine.statements import bound_cells, give_up_after, run_sql
from winnow.storage.errors import QueryRefused, StorageError
from winnow.storage.json_types import JsonObject
from winnow.tasks.processes.parent_watchdog import exit_with_parent

TEMPORARY_FILE = 1 << 30
"""Maximum bytes of a temporary file for sorting."""

FRAME = 64 * 1024
"""Bytes of rows that are sent together, unless one row is larger."""


def main() -> None:
    """Answer the statement from standard input."""
    asked = json.loads(sys.stdin.readline())
    exit_with_parent()
    _bound_this_process(asked["memory"])
    _send({"ready": True})
    try:
        _answer(asked)
    except StorageError as error:
        _send({"refused": _sentence(error), "is_of_statement": isinstance(error, QueryRefused)})
    except MemoryError:
        _send({"out_of_memory": True})


def _answer(asked: JsonObject) -> None:
    with reading(asked["storage"]) as session:
        bound_cells(session, asked["bytes"])
        # SQLite is broken off by the parent, since it may not come to look at a clock for very long.
        seconds = asked["seconds"] if session.connection().dialect.name == "postgresql" else 1e9
        with give_up_after(session, seconds):
            columns, rows = run_sql(session, asked["statement"])
            _send({"columns": columns})
            for batch in _batches(rows):
                _send({"rows": batch})
    _send({"end": True})


def _sentence(error: StorageError) -> str:
    if "disk I/O error" in str(error):
        return f"{error}; sorting can use at most {TEMPORARY_FILE >> 20} MiB on disk: select fewer rows"
    return str(error)


def _batches(rows: Iterator[Sequence[object]]) -> Iterator[list[list[object]]]:
    batch, size = [], 0
    for row in rows:
        packed = [pack(value) for value in row]
        batch.append(packed)
        size += sum(len(value) if isinstance(value, str) else 50 for value in packed)
        if size >= FRAME:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def pack(value: object) -> object:
    """A value in JSON: unchanged, or as a pair of its type and a text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, bytes | bytearray | memoryview):
        return ["bytes", base64.b64encode(value).decode()]
    if isinstance(value, Decimal):
        return ["decimal", str(value)]
    if isinstance(value, dt.datetime):
        return ["datetime", value.isoformat()]
    if isinstance(value, dt.date):
        return ["date", value.isoformat()]
    if isinstance(value, dict):
        return ["dict", {str(key): pack(each) for key, each in value.items()}]
    if isinstance(value, list | tuple):
        return ["list", [pack(each) for each in value]]
    return str(value)


def _send(frame: JsonObject) -> None:
    body = json.dumps(frame).encode()
    sent = memoryview(len(body).to_bytes(4, "big") + body)
    while sent:
        sent = sent[os.write(1, sent) :]


def _bound_this_process(memory: int) -> None:
    """Limit this process to `memory` additional bytes, and prevent core dumps and large files."""
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: TEMPORARY_FILE,
        resource.RLIMIT_AS: _address_space() + memory,
    }
    for which, most in bounds.items():
        # Where a system does not know a limit, the bounds on cells, bytes and seconds are left.
        with suppress(ValueError, OSError):
            resource.setrlimit(which, (most, most))


def _address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 30


if __name__ == "__main__":
    main()

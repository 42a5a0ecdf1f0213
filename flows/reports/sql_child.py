"""Child process that runs one SQL statement within limits, and ends.

Standard input is one line of JSON: the URL of the database, the statement and the limits. Standard output is
a sequence of frames, each four bytes of length and as many bytes of JSON: `ready`, then the columns, then
rows, then `end` or an error. Values that JSON lacks are sent with their type. Nothing is pickled, because a
statement might take control of this process.
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
"""Maximum size in bytes of a temporary file, which SQLite needs for sorting."""

FRAME = 64 * 1024
"""Approximate bytes of rows per frame; a larger row is sent in one frame."""


def main() -> None:
    """Run the statement from standard input, and send the answer to standard output."""
    request = json.loads(sys.stdin.readline())
    exit_with_parent()
    _limit_this_process(request["memory"])
    _send({"ready": True})
    try:
        _answer(request)
    except StorageError as error:
        _send({"refused": _sentence(error), "is_of_statement": isinstance(error, QueryRefused)})
    except MemoryError:
        _send({"out_of_memory": True})


def _answer(request: JsonObject) -> None:
    with reading(request["storage"]) as session:
        bound_cells(session, request["bytes"])
        # For SQLite, the parent enforces the time limit: one step can take long without a clock check.
        seconds = request["seconds"] if session.connection().dialect.name == "postgresql" else 1e9
        with give_up_after(session, seconds):
            columns, rows = run_sql(session, request["statement"])
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
    """Convert a value to JSON: unchanged if JSON has its type, else a list of its type and content."""
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


def _limit_this_process(memory: int) -> None:
    """Limit this process to `memory` additional bytes; prevent core dumps and large files."""
    bounds = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: TEMPORARY_FILE,
        resource.RLIMIT_AS: _address_space() + memory,
    }
    for which, most in bounds.items():
        # If the system does not support a limit, those on cells, bytes and seconds still hold.
        with suppress(ValueError, OSError):
            resource.setrlimit(which, (most, most))


def _address_space() -> int:
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 1 << 30


if __name__ == "__main__":
    main()

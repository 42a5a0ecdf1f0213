"""Run users' SQL statements in a separate process, with limits on memory, time and size.

One step of SQLite's virtual machine can use gigabytes and seconds without checking a clock; only a process
can be stopped then. Each failure is reported in one sentence.
"""

import base64
import datetime as dt
import json
import select
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from subprocess import PIPE, Popen
from typing import Any

from winnow.storage.errors import QueryRefused, StorageError
from winnow.storage.json_types import JsonObject
from winnow.tasks.processes.child_process import module_command, running_process

START_TIMEOUT = 60.0
"""Maximum seconds for the process to start, which takes long on a busy machine."""

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits of one SQL statement."""

    seconds: float
    """Maximum seconds spent waiting for the process; time between the caller's requests does not count."""
    bytes: int
    """Maximum bytes of the answer, and of each cell."""
    memory: int = 512 * MIB
    """Maximum bytes of memory that the process uses in addition to its initial memory."""


@contextmanager
def answered(
    storage: str, statement: str, bounds: Bounds
) -> Generator[tuple[list[str], Iterator[tuple[object, ...]]], None, None]:
    """Run a statement; yield the names of its columns and an iterator over its rows.

    Raises:
        StorageError: If the database cannot be read or refuses the statement, or a limit is exceeded. The
            iterator raises it, too.
    """
    command = module_command("winnow.flows.reports.sql_child")
    with running_process(command, stdin=PIPE, stdout=PIPE, stderr=None) as process:
        answer = _Answer(process, bounds)
        answer.ask(storage, statement)
        yield answer.columns(), answer.rows()


class _Answer:
    """Reader of the frames that `flows.reports.sql_child` sends."""

    def __init__(self, process: Popen[bytes], bounds: Bounds) -> None:
        self._process = process
        self._bounds = bounds
        self._seconds = START_TIMEOUT
        self._bytes = bounds.bytes

    def ask(self, storage: str, statement: str) -> None:
        """Send the statement to the process, and wait until it has started."""
        request = {
            "storage": storage,
            "statement": statement,
            "memory": self._bounds.memory,
            "bytes": self._bounds.bytes,
            "seconds": self._bounds.seconds,
        }
        assert self._process.stdin is not None
        try:
            # Standard input stays open: when this process ends, it closes, and the child ends.
            self._process.stdin.write(json.dumps(request).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._ended() from None
        self._frame()
        self._seconds = self._bounds.seconds

    def columns(self) -> list[str]:
        found: list[str] = self._frame()["columns"]
        return found

    def rows(self) -> Iterator[tuple[object, ...]]:
        while "rows" in (frame := self._frame()):
            for row in frame["rows"]:
                yield tuple(map(unpack, row))

    def _frame(self) -> JsonObject:
        """Read the next frame.

        Raises:
            StorageError: If the process reports an error or ends, or a limit is exceeded.
        """
        length = int.from_bytes(self._read(4), "big")
        self._bytes -= length
        if self._bytes < 0:
            raise QueryRefused(
                f"the answer has more than {self._bounds.bytes / MIB:g} MiB; select fewer rows or columns, "
                "or the beginnings of long texts: substr(text, 1, 200)"
            )
        frame: JsonObject = json.loads(self._read(length))
        if "refused" in frame:
            raise (QueryRefused if frame["is_of_statement"] else StorageError)(frame["refused"])
        if "out_of_memory" in frame:
            raise self._out_of_memory()
        return frame

    def _read(self, length: int) -> bytes:
        assert self._process.stdout is not None
        found = bytearray()
        while len(found) < length:
            self._wait()
            part = self._process.stdout.raw.read(min(length - len(found), MIB))  # type: ignore[attr-defined]
            if not part:
                raise self._ended()
            found += part
        return bytes(found)

    def _wait(self) -> None:
        assert self._process.stdout is not None
        began = time.monotonic()
        ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, self._seconds))
        self._seconds -= time.monotonic() - began
        if not ready:
            raise QueryRefused(
                f"the statement took longer than {self._bounds.seconds:g} s and was stopped; select fewer "
                "rows, or use an indexed column"
            )

    def _out_of_memory(self) -> QueryRefused:
        return QueryRefused(
            f"the statement needs more than {self._bounds.memory / MIB:g} MiB of memory and was stopped; "
            "select fewer or shorter values"
        )

    def _ended(self) -> QueryRefused:
        code = self._process.wait()
        return QueryRefused(
            f"the process that ran the statement ended unexpectedly (exit code {code}); read its messages "
            "above, or select fewer rows"
        )


_KINDS: dict[str, Callable[[Any], object]] = {
    "bytes": base64.b64decode,
    "decimal": Decimal,
    "datetime": dt.datetime.fromisoformat,
    "date": dt.date.fromisoformat,
    "dict": lambda held: {key: unpack(value) for key, value in held.items()},
    "list": lambda held: [unpack(value) for value in held],
}


def unpack(value: object) -> object:
    """Convert a value back from the form of `flows.reports.sql_child.pack`."""
    return _KINDS[value[0]](value[1]) if isinstance(value, list) else value

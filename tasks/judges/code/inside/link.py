"""Messages between the tests and the program: one JSON value per line, over two pipes."""

import json
import os

from winnow.tasks.judges.code.inside.values import JSON

MOST_BYTES = 32 << 20
"""Maximum bytes of one message."""

_CHUNK = 1 << 16


class LinkEnded(Exception):
    """The other side is gone, or sent an invalid message."""


class Link:
    """One end of a conversation.

    Args:
        reads: A pipe's end.
        writes: Another pipe's end.
    """

    def __init__(self, reads: int, writes: int) -> None:
        self._reads = reads
        self._writes = writes
        self._received = bytearray()

    def send(self, message: object) -> None:
        """Send a JSON value; raises `LinkEnded` if the other side is gone, `ValueError` if it is too long."""
        data = memoryview(json.dumps(message).encode("ascii") + b"\n")
        if len(data) > MOST_BYTES:
            raise ValueError(f"a value takes more than {MOST_BYTES >> 20} MiB")
        try:
            while data:
                data = data[os.write(self._writes, data) :]
        except OSError as error:
            raise LinkEnded(str(error)) from None

    def receive(self) -> JSON:
        """The next message; raises `LinkEnded` if there is none."""
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > MOST_BYTES or not (chunk := self._chunk()):
                raise LinkEnded("no further message")
            self._received += chunk
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        try:
            return json.loads(line)
        except (ValueError, RecursionError) as error:
            raise LinkEnded(str(error)) from None

    def _chunk(self) -> bytes:
        try:
            return os.read(self._reads, _CHUNK)
        except OSError:
            return b""

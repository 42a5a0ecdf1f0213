"""Messages between the tests and the program: one JSON value per line, over two pipes."""

import json
import os

from winnow.tasks.judges.code.inside.values import JSON

MOST_BYTES = 32 << 20
"""Maximum bytes of one message."""

_CHUNK = 1 << 16


class LinkEnded(Exception):
    """The other process has ended, or sent an invalid message."""


class Link:
    """One end of the connection between the tests and the program.

    Args:
        reads: Descriptor of the pipe to read from.
        writes: Descriptor of the pipe to write to.
    """

    def __init__(self, reads: int, writes: int) -> None:
        self._reads = reads
        self._writes = writes
        self._received = bytearray()

    def send(self, message: object) -> None:
        """Send a JSON value.

        Raises:
            LinkEnded: If the other process has ended.
            ValueError: If the message is longer than `MOST_BYTES`.
        """
        data = memoryview(json.dumps(message).encode("ascii") + b"\n")
        if len(data) > MOST_BYTES:
            raise ValueError(f"a value takes more than {MOST_BYTES >> 20} MiB")
        try:
            while data:
                data = data[os.write(self._writes, data) :]
        except OSError as error:
            raise LinkEnded(str(error)) from None

    def receive(self) -> JSON:
        """Receive the next message; raises `LinkEnded` if no message comes."""
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

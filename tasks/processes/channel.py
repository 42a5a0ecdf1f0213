"""Messages between two processes: one JSON object per line over a stream socket.

The format is JSON instead of pickle, because one side parses content of models and checkpoints. Non-ASCII
characters are escaped, so a line break always ends a message and any string survives.
"""

import json
import math
import select
import socket
from collections.abc import Callable, Mapping

from winnow.storage.json_types import JsonObject

CHUNK = 1 << 20  # bytes


class Channel:
    """One end of a message connection; one thread may send while another receives.

    Args:
        connection: A connected stream socket, closed by `close`.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection
        self._readable = select.poll()  # select.select refuses descriptors above 1023
        self._readable.register(connection, select.POLLIN)
        self._received = bytearray()

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message; raises `OSError` if the other process has ended or does not read in time."""
        self._socket.sendall(json.dumps(message).encode("ascii") + b"\n")

    def receive(self, timeout: float, most_bytes: Callable[[], float] = lambda: math.inf) -> JsonObject:
        """Receive the next message.

        Args:
            timeout: Seconds to wait for more data, 0 or more; a partial message is kept for the next call.
            most_bytes: Returns the maximum length of a message in bytes; called as data arrive. A longer
                message is not read further.

        Raises:
            TimeoutError: If the message is not complete in time.
            EOFError: If the other process has closed the connection.
            ValueError: If the data are not a message.
        """
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > (limit := most_bytes()):
                raise ValueError(f"a message of more than {limit:,} bytes")
            if not self._readable.poll(timeout * 1000.0):
                raise TimeoutError
            self._received += self._next_chunk()
        line = bytes(self._received[:end])
        del self._received[: end + 1]
        try:
            message = json.loads(line)
        except RecursionError as error:
            raise ValueError("a message has too deeply nested brackets") from error
        if not isinstance(message, dict):
            raise ValueError(f"a message must be a JSON object, not {type(message).__name__}")
        return message

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _next_chunk(self) -> bytes:
        try:
            chunk = self._socket.recv(CHUNK)
        except ConnectionError as error:
            raise EOFError from error
        if not chunk:
            raise EOFError
        return chunk

"""Numbered replies of one worker, each passed to the thread that waits for it."""

import math
import threading
import time
from collections.abc import Callable

from winnow.storage.json_types import JsonObject

Receive = Callable[[float | None, Callable[[], float]], JsonObject]
"""Reads the next message of a `WorkerProcess`, with a time limit in seconds and a maximum length."""


class Replies:
    """Read a worker's messages for several threads; one waiting thread reads for all of them.

    Args:
        receive: Reads one message; called by one thread at a time.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._changed = threading.Condition()  # guards everything below
        self._most_bytes: dict[int, int] = {}
        self._arrived: dict[int, JsonObject] = {}
        self._error: Exception | None = None
        self._is_read = False
        self._last = -math.inf  # time of the last message
        self._numbers = 0

    def expect(self, most_bytes: int) -> int:
        """Reserve a number for one more reply of at most `most_bytes`."""
        with self._changed:
            self._numbers += 1
            self._most_bytes[self._numbers] = most_bytes
            return self._numbers

    def wait(self, number: int, timeout: float | None) -> JsonObject:
        """Wait for the reply with this number.

        `timeout` limits the seconds without any reply; None means no limit.

        Raises:
            TimeoutError: If no thread received a reply for that long. Other threads continue waiting.
            ValueError: If a message is not a valid reply; raised in all threads.
            Exception: The exception that ended the reading; raised in all threads.
        """
        begun = time.monotonic()

        def left() -> float | None:
            return None if timeout is None else max(begun, self._last) + timeout - time.monotonic()

        try:
            while True:
                with self._changed:
                    self._changed.wait_for(
                        lambda: number in self._arrived or self._error or not self._is_read,
                        left(),
                    )
                    if number in self._arrived:
                        return self._arrived.pop(number)
                    if self._error is not None:
                        raise self._error
                    if (patience := left()) is not None and patience <= 0.0:
                        raise TimeoutError
                    if self._is_read:  # and a message for another thread arrived meanwhile
                        continue
                    self._is_read = True
                self._read(patience)
        finally:
            with self._changed:
                self._most_bytes.pop(number, None)

    def _read(self, timeout: float | None) -> None:
        """Read one message and pass it to the thread that waits for it."""
        error: Exception | None = None
        try:
            message = self._receive(timeout, self._longest)
            number = message.pop("number", None)
            if not isinstance(number, int) or number not in self._most_bytes:
                raise ValueError("a reply to no open request")
            with self._changed:
                self._arrived[number] = message
                self._last = time.monotonic()
        except TimeoutError:
            raise
        except Exception as caught:
            error = caught
        finally:
            with self._changed:
                self._is_read = False
                self._error = self._error or error
                self._changed.notify_all()

    def _longest(self) -> float:
        return max(self._most_bytes.copy().values(), default=0)

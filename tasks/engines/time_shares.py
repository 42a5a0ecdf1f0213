"""Shares of an engine's time for requests, if several groups share the engine."""

import threading
import time


class TimeShares:
    """Divide an engine's wall time equally among the requests that it is working on at each moment.

    So the shares of all requests add up to the time in which it was working. Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work = 0
        self._each = 0.0  # seconds of one that would have been there all the time
        self._last = 0.0

    def begin(self, count: int = 1) -> float:
        """Add `count` requests; return the value needed by `end`."""
        with self._lock:
            self._advance()
            self._at_work += count
            return self._each

    def end(self, begun: float, count: int = 1) -> float:
        """Remove requests; return the seconds of each."""
        with self._lock:
            self._advance()
            self._at_work -= count
            return self._each - begun

    def _advance(self) -> None:
        now = time.perf_counter()
        if self._at_work:
            self._each += (now - self._last) / self._at_work
        self._last = now

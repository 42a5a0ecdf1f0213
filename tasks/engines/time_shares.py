"""Shares of an engine's time that requests take, where several groups share the engine."""

import threading
import time


class TimeShares:
    """Divides the wall time of an engine equally among the requests that it is at work on at each moment.

    So the shares of all requests add up to the time in which it was at work on any. Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work = 0
        self._each = 0.0  # seconds of one that would have been there all the time
        self._last = 0.0

    def begin(self, count: int = 1) -> float:
        """Let so many requests take part; return what `end` wants of them."""
        with self._lock:
            self._advance()
            self._at_work += count
            return self._each

    def end(self, begun: float, count: int = 1) -> float:
        """Let them go; return the seconds of each."""
        with self._lock:
            self._advance()
            self._at_work -= count
            return self._each - begun

    def _advance(self) -> None:
        now = time.perf_counter()
        if self._at_work:
            self._each += (now - self._last) / self._at_work
        self._last = now

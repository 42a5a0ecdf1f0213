"""Division of an engine's wall time among the requests in progress."""

import threading
import time


class TimeShares:
    """Divide an engine's wall time equally among the requests in progress at each moment.

    So the shares of all requests add up to the time in which the engine was working. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at_work = 0
        self._each = 0.0  # share of a request in progress since the start, in seconds
        self._last = 0.0

    def begin(self, count: int = 1) -> float:
        """Add `count` requests; return the value that `end` needs."""
        with self._lock:
            self._advance()
            self._at_work += count
            return self._each

    def end(self, begun: float, count: int = 1) -> float:
        """Remove `count` requests; return the share of each in seconds.

        `begun` is the value that `begin` returned for them.
        """
        with self._lock:
            self._advance()
            self._at_work -= count
            return self._each - begun

    def _advance(self) -> None:
        now = time.perf_counter()
        if self._at_work:
            self._each += (now - self._last) / self._at_work
        self._last = now

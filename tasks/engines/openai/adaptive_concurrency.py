"""The number of requests that a server takes at once to its advantage.

Servers that queue what they cannot do at once never refuse it: more requests only wait longer there, and time
out. So the number begins small and doubles as long as that brings more answers a second. If a server says
that it has too much, the number is halved, and from then on it grows by one per full set of answers, as TCP
does.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import anyio

FIRST_WIDTH = 4
"""Requests at once to a server of which it is not known how many places it has."""

GROWTH = 1.05
"""The least by which answers a second have to grow so that twice as many requests are worth it."""

LEAST_MEASURED = 8
"""Answers, at least, by which their number a second is measured."""

SETTLED = 16
"""Measurements after which growth is tried again: what else the server did may have ended."""


class AdaptiveConcurrency:
    """Hands out turns to requests. For one event loop, in which it must be made.

    Args:
        largest: The most requests at once, at least 1.
        clock: Seconds that pass.
    """

    def __init__(self, largest: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._largest, self._clock = largest, clock
        self._width = float(min(FIRST_WIDTH, largest))
        self._limiter = anyio.CapacityLimiter(int(self._width))
        self._cuts = 0
        self._resume_at = float("-inf")
        self._before: tuple[float, float] | None = None  # width and rate before the last growth
        self._rest = 0  # measurements to pass over
        self._skipped = self._counted = 0
        self._since: float | None = None  # of the measurement

    @property
    def width(self) -> int:
        """Requests that may be under way now, in [1, `largest`]."""
        return int(self._limiter.total_tokens)

    def begin_at(self, places: int) -> None:
        """Begin with the number of places that the server says it has; before any request is answered."""
        self._set(float(places))

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[int]:
        """Wait for a free place and for the end of any pause; gives the number of cuts so far."""
        async with self._limiter:
            while (left := self._resume_at - anyio.current_time()) > 0:
                await anyio.sleep(left)
            yield self._cuts

    def widen(self) -> None:
        """A request was answered: grow if that may bring more. Call it within the turn."""
        if self._limiter.available_tokens >= 1:
            self._measure_again(0)  # a server with places to spare says nothing of more
        elif self._cuts:
            self._set(self._width + 1.0 / self._width)
        else:
            self._measure()

    def narrow(self, cuts: int) -> None:
        """The server had too much of a request whose turn began after so many cuts.

        Those that were sent together are refused together: they count once.
        """
        if cuts == self._cuts:
            self._cuts += 1
            self._set(self._width / 2)

    def pause(self, seconds: float) -> None:
        """Send nothing for so long; a longer pause that was asked for before stays."""
        self._resume_at = max(self._resume_at, anyio.current_time() + seconds)

    def _measure(self) -> None:
        """Count an answer; grow or go back where enough of them are counted."""
        now = self._clock()
        if self._skipped > 0:  # it was sent before the number changed
            self._skipped -= 1
            self._since = now
            return
        self._since = now if self._since is None else self._since
        self._counted += 1
        if self._counted < max(LEAST_MEASURED, self._width):
            return
        rate = self._counted / max(now - self._since, 1e-9)
        self._measure_again(0)
        if self._rest:
            self._rest -= 1
        elif self._before is not None and rate <= GROWTH * self._before[1]:
            self._change(self._before[0])
            self._before, self._rest = None, SETTLED
        elif self._width < self._largest:
            self._before = self._width, rate
            self._change(2 * self._width)

    def _change(self, width: float) -> None:
        under_way = self.width
        self._set(width)
        self._measure_again(under_way)

    def _measure_again(self, skipped: int) -> None:
        self._skipped, self._counted = skipped, 0
        self._since = None

    def _set(self, width: float) -> None:
        self._width = min(max(1.0, width), float(self._largest))
        self._limiter.total_tokens = int(self._width)

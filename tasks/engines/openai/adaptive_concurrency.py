"""The number of requests that a server takes at once without complaint, found by the rule of TCP.

The number doubles from one full set of answers to the next until the server first has too much; that halves
it, and from then on it grows by one per full set.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

FIRST_WIDTH = 16


class AdaptiveConcurrency:
    """Hands out turns to requests. For one event loop, in which it must be made.

    Args:
        largest: The most requests at once, at least 1.
    """

    def __init__(self, largest: int) -> None:
        self._largest = largest
        self._width = float(min(FIRST_WIDTH, largest))
        self._limiter = anyio.CapacityLimiter(int(self._width))
        self._cuts = 0
        self._resume_at = float("-inf")

    @property
    def width(self) -> int:
        """Requests that may be under way now, in [1, `largest`]."""
        return int(self._limiter.total_tokens)

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[int]:
        """Wait for a free place and for the end of any pause; gives the number of cuts so far."""
        async with self._limiter:
            while (left := self._resume_at - anyio.current_time()) > 0:
                await anyio.sleep(left)
            yield self._cuts

    def widen(self) -> None:
        """A request was answered: grow, if all places were taken. Call it within the turn."""
        if self._limiter.available_tokens < 1:
            self._set(self._width + (1.0 / self._width if self._cuts else 1.0))

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

    def _set(self, width: float) -> None:
        self._width = min(max(1.0, width), float(self._largest))
        self._limiter.total_tokens = int(self._width)

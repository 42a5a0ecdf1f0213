"""Many models asked at once, as far as their engines have places: an ask is one group of requests to one.

Which asks are made together and in which order is decided here, in the caller's thread, each time that an
engine has finished. Each ask then has a thread of its own, unless only one can be made at a time.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue

from winnow.tasks.engines.pool.load_plan import asking_order
from winnow.tasks.engines.pool.slots import SlotTable
from winnow.tasks.engines.protocol import Answer, ModelRef, Request

Outcome = list[Answer] | Exception


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGroup:
    """Requests that one model is to answer in one batch."""

    model: ModelRef
    requests: Sequence[Request]


@dataclass(kw_only=True)
class RequestScheduler:
    """Asks that are being made.

    Args:
        keys: The engine of each ask, by its number.
        widths: How many devices each engine takes; 0 for one that runs elsewhere.
        ask: Makes the ask of this number; called in threads.
        seats: Where engines find places.
        failed: Engines that are known to answer nothing; they need no place.
        later: Engines that are asked when these asks are done.
        aside: Whether asks are made in threads of their own.
    """

    keys: Sequence[str]
    widths: dict[str, int]
    ask: Callable[[int], list[Answer]]
    seats: SlotTable
    failed: Collection[str]
    later: Collection[str]
    aside: bool
    _done: "SimpleQueue[tuple[int, Outcome]]" = field(default_factory=SimpleQueue)
    _waiting: dict[str, deque[int]] = field(default_factory=dict)
    _running: set[str] = field(default_factory=set)

    def outcomes(self) -> Generator[tuple[int, list[Answer]]]:
        """The number of each ask and its answers, as they are finished.

        An error is raised when all asks that were begun with it are finished and their answers were given;
        no further ask is begun then. Whoever stops listening before the end ends all engines at once.
        """
        for number, asked in enumerate(self.keys):
            self._waiting.setdefault(asked, deque()).append(number)
        error: Exception | None = None
        try:
            while self._waiting or self._running:
                while error is None and self._done.empty() and (key := self._next()) is not None:
                    self._begin(key)
                if error is not None and not self._running:
                    break
                number, outcome = self._done.get()
                self._running.discard(self.keys[number])
                if isinstance(outcome, Exception):
                    error = error or outcome
                else:
                    yield number, outcome
        finally:
            if self._running:
                self.seats.abandon()
        if error is not None:
            raise error

    def _next(self) -> str | None:
        """The engine to ask now, its seat reserved; None if there is nothing to ask or no place."""
        if self._running and not self.aside:
            return None
        ready = [key for key in self._waiting if key not in self._running]
        order = asking_order(
            ready,
            loaded=self.seats.keys(placed=True),
            asleep=self.seats.keys(placed=False),
            later=self.later,
            seconds=self.seats.seconds,
        )
        for key in order:
            if key in self.failed or self.seats.reserve(
                key, self.widths[key], waiting=self._waiting, later=self.later
            ):
                return key
        # Somebody else holds the places: the first one waits like any other.
        return None if self._running else next(iter(order), None)

    def _begin(self, key: str) -> None:
        number = self._waiting[key].popleft()
        if not self._waiting[key]:
            del self._waiting[key]
        self._running.add(key)
        if self.aside:
            # A daemon: an ask that cannot be broken off must not keep the process from ending.
            # In a context of its own, so that its span belongs to that of the round.
            make = partial(copy_context().run, self._make, number)
            threading.Thread(target=make, name=f"ask-{number}", daemon=True).start()
        else:
            self._make(number)

    def _make(self, number: int) -> None:
        try:
            self._done.put((number, self.ask(number)))
        except Exception as error:
            self._done.put((number, error))
        finally:
            self.seats.cancel(self.keys[number])

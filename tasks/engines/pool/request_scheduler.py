"""Send groups of requests to many models in parallel, as engines have free places.

In names, an *ask* is one group of requests to one model. The caller's thread decides which groups run
together, and in which order, each time an engine has finished. Each group then has its own thread, unless
only one can run at a time.
"""

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue

from winnow.tasks.engines.pool.loads_and_evictions import SHORTEST, asking_order
from winnow.tasks.engines.pool.slots import SlotTable
from winnow.tasks.engines.protocol import Answer, Came, ModelRef, Request


class Replicas:
    """Engines of each model, and when loading another one on idle devices is worthwhile.

    The remaining work for a model is unknown. So the ski-rental rule applies: another engine of a model is
    loaded when the model's engines have been too few for as long as a load takes (Karlin, Manasse, Rudolph
    and Sleator, 1988). No bound on the saved time is proved. Thread-safe.

    Args:
        slots: The table of the engines' places.
        clock: Returns the time in seconds.
    """

    def __init__(self, slots: SlotTable, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots, self._clock = slots, clock
        self._lock = threading.Lock()  # guards everything below
        self._short: frozenset[str] = frozenset()
        self._since = 0.0
        self._seconds: defaultdict[str, float] = defaultdict(float)  # with too few engines for a model
        self._begun: Counter[str] = Counter()
        self._given_up: set[str] = set()

    def engines(self, key: str) -> list[str]:
        """Engines of a model: the first one, and its replicas in memory."""
        placed = self._slots.keys(placed=True)
        with self._lock:
            others = [_replica(key, number) for number in range(1, self._begun[key] + 1)]
        return [key, *(each for each in others if each in placed)]

    def watch(self, short: Collection[str]) -> None:
        """Add the time since the last call to models that had too few engines; replace their set."""
        now = self._clock()
        with self._lock:
            for key in self._short:
                self._seconds[key] += now - self._since
            self._short, self._since = frozenset(short), now

    def due(self, key: str) -> str | None:
        """Next replica to load for a model; None until a load is worthwhile."""
        needed = self._slots.seconds.get(key, SHORTEST)
        with self._lock:
            if key in self._given_up or self._seconds[key] < needed:
                return None
            return _replica(key, self._begun[key] + 1)

    def begin(self, key: str) -> None:
        """Record that the replica of `due` is loading; its successor must become worthwhile anew."""
        with self._lock:
            self._begun[key] += 1
            del self._seconds[key]

    def give_up(self, key: str) -> None:
        """Load no further replicas of a model, after one could not be loaded."""
        with self._lock:
            self._given_up.add(key)


def _replica(key: str, number: int) -> str:
    return f"{key}#{number}"


Outcome = list[Answer] | Exception

Parts = Mapping[int, Mapping[int, Answer]]
"""Answers of unfinished groups, by the number of the group and the position in it."""

TakeParts = Callable[[Parts], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestGroup:
    """Requests for one model in one batch."""

    model: ModelRef
    requests: Sequence[Request]


@dataclass(frozen=True, slots=True)
class _Part:
    """One answer of an unfinished group."""

    place: int
    answer: Answer


WAKE = -1
"""In place of a group's number: an engine is loaded that further groups can join."""


@dataclass(kw_only=True)
class RequestScheduler:
    """Groups of requests that wait or are in progress.

    Args:
        ask: Sends a group to an engine. It calls the first function that it receives when the engine is
            ready, and the second one, if given, with each answer as it arrives. Called in threads.
        slots: The table of the engines' places.
        replicas: The engines of each model; several if devices would be idle otherwise.
        failed: Engines that have failed and answer no request; they need no place.
        later: Engines that are used after these groups.
        aside: Whether each group runs in its own thread.
        beside: Whether several engines run at the same time.
        joins: Whether a working engine receives more groups, if it supports that.
        spreads: Whether a model's groups are distributed over its replicas, and more replicas are loaded.
        take_parts: Receives answers of unfinished groups, in the caller's thread, those since the last call
            together. None: only whole groups are returned, which contain all answers in any case.
    """

    ask: Callable[[RequestGroup, str, Callable[[], None], Came | None], list[Answer]]
    slots: SlotTable
    replicas: Replicas
    failed: Collection[str]
    later: Collection[str]
    aside: bool
    beside: bool
    joins: bool
    spreads: bool
    take_parts: TakeParts | None = None
    _added: int = 0
    _engines: dict[int, str] = field(default_factory=dict)
    _groups: dict[int, RequestGroup] = field(default_factory=dict)
    _widths: dict[str, int] = field(default_factory=dict)
    _done: "SimpleQueue[tuple[int, Outcome | _Part]]" = field(default_factory=SimpleQueue)
    _held: tuple[int, Outcome] | None = None
    """Outcome that was taken from the queue while parts of groups were collected."""
    _waiting: dict[str, deque[int]] = field(default_factory=dict)
    _running: Counter[str] = field(default_factory=Counter)
    _error: Exception | None = None

    def add(self, group: RequestGroup, key: str, width: int) -> int:
        """Queue a group after the earlier ones of its engine; return its number.

        Args:
            group: A group with at least one request.
            key: The group's engine.
            width: Number of devices of this engine; 0 for one that runs elsewhere.
        """
        number, self._added = self._added, self._added + 1
        self._groups[number], self._widths[key] = group, width
        self._waiting.setdefault(key, deque()).append(number)
        return number

    def outcomes(self) -> Generator[tuple[int, list[Answer]]]:
        """Yield the number of each group and its answers, in order of completion.

        After an error no other group begins. The error is raised when all groups in progress are finished and
        their answers were yielded. Closing the generator before its end ends all engines at once.
        """
        try:
            while self._waiting or self._running or self._error is not None:
                yield self.next_outcome()
        finally:
            self.close()

    def next_outcome(self) -> tuple[int, list[Answer]]:
        """Wait for the next outcome; at least one group must be left."""
        while True:
            self.begin()
            if self._error is not None and not self._running:
                error, self._error = self._error, None
                raise error
            if (found := self._one_done()) is not None:
                return found

    def begin(self) -> None:
        """Start all groups that can run now."""
        while self._error is None and self._is_empty and (found := self._next()) is not None:
            self._begin(*found)
        if self.spreads:
            self.replicas.watch(self._short_of_engines())

    def finished(self) -> Generator[tuple[int, list[Answer]]]:
        """Groups that are finished by now; an error is kept for `next_outcome`."""
        while not self._is_empty:
            if (found := self._one_done()) is not None:
                yield found

    def finish_begun(self) -> Generator[tuple[int, list[Answer]]]:
        """Yield the begun groups as they finish; drop errors and groups not begun."""
        for numbers in self._waiting.values():
            for number in numbers:
                del self._groups[number]
        self._waiting.clear()
        while self._running:
            if (found := self._one_done()) is not None:
                yield found
        self._error = None

    def close(self) -> None:
        """End the engines that are working."""
        if self.spreads:
            self.replicas.watch(())
        if self._running:
            self.slots.abandon()

    @property
    def _is_empty(self) -> bool:
        """Whether no outcome is ready."""
        return self._held is None and self._done.empty()

    def _one_done(self) -> tuple[int, list[Answer]] | None:
        """Wait for an event; return the finished group, or None for any other event.

        Other events are a failed group (the error is stored), a ready engine, and parts of groups.
        """
        (number, outcome), self._held = self._held or self._done.get(), None
        if isinstance(outcome, _Part):
            self._hand_on(number, outcome)
            return None
        if number == WAKE:
            return None
        engine = self._engines.pop(number)
        self._running[engine] -= 1
        if not self._running[engine]:
            del self._running[engine]
        if isinstance(outcome, Exception):
            self._error = self._error or outcome
            return None
        return number, outcome

    def _hand_on(self, number: int, part: _Part) -> None:
        """Pass on a part with all others that have arrived by now, so that they are stored together."""
        parts: dict[int, dict[int, Answer]] = {}
        while True:
            parts.setdefault(number, {})[part.place] = part.answer
            if self._done.empty():
                break
            number, outcome = self._done.get()
            if not isinstance(outcome, _Part):
                self._held = number, outcome
                break
            part = outcome
        if self.take_parts is not None:
            self.take_parts(parts)

    def _next(self) -> tuple[str, str] | None:
        """Model and engine of the next group; None if no group can begin.

        The slot of an idle engine is reserved, unless the model has failed or all places are taken.
        """
        if self._running and not self.aside:
            return None
        order = asking_order(
            [key for key in self._waiting if self._may_begin(key)],
            loaded=self.slots.keys(placed=True),
            asleep=self.slots.keys(placed=False),
            later=self.later,
            seconds=self.slots.seconds,
        )
        for key in order:
            if key in self.failed:
                return key, key
            if (engine := self._engine_for(key)) is not None:
                return key, engine
        # Another user holds the places, so the first model waits for one.
        return None if self._running or not order else (order[0], order[0])

    def _may_begin(self, key: str) -> bool:
        return self.beside or not self._running or any(map(self._may_join, self._engines_of(key)))

    def _may_join(self, engine: str) -> bool:
        return self.joins and engine in self._running and self.slots.may_be_joined(engine)

    def _engines_of(self, key: str) -> list[str]:
        return self.replicas.engines(key) if self.spreads else [key]

    def _engine_for(self, key: str) -> str | None:
        """Engine for a model's next group: an idle one, else a new one, else the least busy one.

        None if no engine can receive the group now.
        """
        engines = self._engines_of(key)
        for engine in engines:
            if engine not in self._running and self.slots.reserve(
                engine, self._widths[key], waiting=self._waiting, later=self.later, is_replica=engine != key
            ):
                return engine
        if key in self._running and (replica := self._new_replica(key)) is not None:
            return replica
        return min(filter(self._may_join, engines), key=self._running.__getitem__, default=None)

    def _new_replica(self, key: str) -> str | None:
        if not (self.spreads and self._has_room_beside(key)) or (engine := self.replicas.due(key)) is None:
            return None
        if not self.slots.reserve(engine, self._widths[key], waiting=self._wanted, is_replica=True):
            return None
        self.replicas.begin(key)
        return engine

    @property
    def _wanted(self) -> set[str]:
        """Engines that are in use now or soon, and are not evicted for a replica."""
        return {*self._waiting, *self.later, *self._running}

    def _has_room_beside(self, key: str) -> bool:
        return self._widths[key] > 0 and self.slots.has_room_beside(self._widths[key], self._wanted)

    def _short_of_engines(self) -> list[str]:
        """Models that have more work than their engines can begin, while a device is idle."""
        short = []
        for key in self._widths:
            running = [self._running[engine] for engine in self._engines_of(key) if engine in self._running]
            groups = sum(running) + len(self._waiting.get(key, ()))
            if running and groups > len(running) and self._has_room_beside(key):
                short.append(key)
        return short

    def _begin(self, key: str, engine: str) -> None:
        number = self._waiting[key].popleft()
        if not self._waiting[key]:
            del self._waiting[key]
        self._engines[number] = engine
        is_first = engine not in self._running
        self._running[engine] += 1
        if self.aside:
            # A daemon, so that a group that cannot be aborted does not keep the process alive.
            # In a copy of the context, so that its span is a child of the round's span.
            make = partial(copy_context().run, self._make, number, engine, is_first)
            threading.Thread(target=make, name=f"ask-{number}", daemon=True).start()
        else:
            self._make(number, engine, is_first)

    def _make(self, number: int, engine: str, is_first: bool) -> None:
        try:
            group = self._groups.pop(number)
            # In the caller's thread, no part could be received before the whole group is answered.
            came = partial(self._came, number) if self.aside and self.take_parts is not None else None
            answers = self.ask(group, engine, partial(self._wake, engine), came)
            self._done.put((number, answers))
        except Exception as error:
            self._done.put((number, error))
        finally:
            if is_first:
                self.slots.cancel(engine)

    def _came(self, number: int, place: int, answer: Answer) -> None:
        self._done.put((number, _Part(place, answer)))

    def _wake(self, engine: str) -> None:
        """Make the scheduler check whether more groups can join an engine that is ready."""
        if self._may_join(engine):
            self._done.put((WAKE, []))

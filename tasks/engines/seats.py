"""So many places for loaded engines, and who sits there."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from tasks.engines.protocol import Engine


@dataclass(slots=True)
class _Seat:
    engine: Engine | None = None
    busy: bool = False  # while True, only the thread that set it touches the engine


class Seats:
    """A bounded set of engines by key; the least recently used makes room for a new one.

    Threads may share it: each engine serves one of them at a time, the others wait.

    Args:
        count: Engines in memory at the same time, at least 1.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._changed = threading.Condition()  # guards everything below
        self._seats: OrderedDict[str, _Seat] = OrderedDict()  # least recently used first
        self._closed = False

    @contextmanager
    def taken(self, key: str, start: Callable[[], Engine]) -> Generator[Engine]:
        """The engine of `key`, started if need be, for this thread alone; waits until a place is free.

        Whatever goes wrong inside, the engine is closed: in the middle of a batch its state is unknown.

        Raises:
            RuntimeError: If `close` was called.
        """
        seat = self._take(key)
        try:
            if seat.engine is None:
                seat.engine = start()
            yield seat.engine
        except BaseException:
            self._give_up(key, seat)
            raise
        self._give_back(seat)

    def has_room(self) -> bool:
        """Whether an engine could start without closing another."""
        with self._changed:
            return not self._closed and len(self._seats) < self._count

    def close(self) -> None:
        """Close all engines, each when its batch is done, and refuse new ones. May be called again."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not any(seat.busy for seat in self._seats.values()))
            while self._seats:
                self._empty_least_recent_of(list(self._seats))

    def _take(self, key: str) -> _Seat:
        with self._changed:
            while not self._closed:
                if key not in self._seats and self._make_room():
                    self._seats[key] = _Seat()
                seat = self._seats.get(key)
                if seat is not None and not seat.busy:
                    seat.busy = True
                    self._seats.move_to_end(key)
                    return seat
                self._changed.wait()
        raise RuntimeError("the engine pool is closed")

    def _make_room(self) -> bool:
        if len(self._seats) < self._count:
            return True
        idle = [key for key, seat in self._seats.items() if not seat.busy]
        self._empty_least_recent_of(idle)
        return bool(idle)

    def _empty_least_recent_of(self, keys: list[str]) -> None:
        # The lock stays held: nobody may start an engine before the memory of this one is free.
        if keys and (engine := self._seats.pop(keys[0]).engine):
            engine.close()

    def _give_back(self, seat: _Seat) -> None:
        with self._changed:
            seat.busy = False
            self._changed.notify_all()

    def _give_up(self, key: str, seat: _Seat) -> None:
        with self._changed:
            del self._seats[key]
            try:
                if seat.engine is not None:
                    seat.engine.close()
            finally:
                self._changed.notify_all()

"""Threads that runs of agents take turns on, in the order in which they were asked for."""

import threading
from collections import deque
from collections.abc import Callable

Task = Callable[[], None]


class Seats:
    """A bounded number of threads, which start when they are needed.

    The threads are daemons: a run that cannot be broken off does not keep the process from ending.

    Args:
        count: Number of tasks at the same time.
        name: Name of the threads.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._changed = threading.Condition()  # guards everything below
        self._waiting: deque[Task] = deque()
        self._threads = self._idle = self._users = 0

    def submit(self, task: Task) -> None:
        """Run a task, which raises nothing, once a seat is free; tasks begin in the order of submission."""
        with self._changed:
            self._waiting.append(task)
            if self._idle >= len(self._waiting):
                self._changed.notify()
            elif self._threads < self._count:
                self._threads += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def take(self) -> "Seats":
        """Note one more user."""
        with self._changed:
            self._users += 1
            return self

    def leave(self) -> bool:
        """Note one user less; return whether it was the last, for which the threads end."""
        with self._changed:
            self._users -= 1
            self._changed.notify_all()
            return self._users <= 0

    def _work(self) -> None:
        while (task := self._next()) is not None:
            task()

    def _next(self) -> Task | None:
        with self._changed:
            self._idle += 1
            try:
                self._changed.wait_for(lambda: self._waiting or self._users <= 0)
                if self._waiting:
                    return self._waiting.popleft()
                self._threads -= 1
                return None
            finally:
                self._idle -= 1


_lock = threading.Lock()
_seats: dict[tuple[str, int], Seats] = {}


def take_seats(key: str, count: int) -> Seats:
    """The seats that all engines with this key share; give them back with `leave_seats`."""
    with _lock:
        if (key, count) not in _seats:
            _seats[key, count] = Seats(count, f"agent {key[:8]}")
        return _seats[key, count].take()


def leave_seats(key: str, count: int) -> None:
    """Give seats back; the last user ends their threads."""
    with _lock:
        if (key, count) in _seats and _seats[key, count].leave():
            del _seats[key, count]

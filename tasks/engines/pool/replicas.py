"""Further engines of one model, on devices that would do nothing: where fewer models are left than devices.

Nobody knows how much a campaign will still ask of a model. So a load is paid like skis that may be rented or
bought: a model is loaded once more when its engines have been short for as long as it takes to load it.
That is a rule for those who choose without knowing the future (Karlin, Manasse, Rudolph and Sleator, 1988);
how much sooner a campaign ends by it is not proved.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection

from winnow.tasks.engines.pool.loads_and_evictions import SHORTEST
from winnow.tasks.engines.pool.slots import SlotTable


class Replicas:
    """Engines of each model, and when another one is worth loading.

    Threads may share it.

    Args:
        slots: The table of the engines' places.
        clock: Returns the time in seconds.
    """

    def __init__(self, slots: SlotTable, clock: Callable[[], float] = time.monotonic) -> None:
        self._slots, self._clock = slots, clock
        self._lock = threading.Lock()  # guards everything below
        self._short: frozenset[str] = frozenset()
        self._since = 0.0
        self._seconds: defaultdict[str, float] = defaultdict(float)  # for which a model's engines were short
        self._begun: Counter[str] = Counter()
        self._given_up: set[str] = set()

    def engines(self, key: str) -> list[str]:
        """Engine of a model, and those of its replicas that are in memory."""
        placed = self._slots.keys(placed=True)
        with self._lock:
            others = [_replica(key, number) for number in range(1, self._begun[key] + 1)]
        return [key, *(each for each in others if each in placed)]

    def watch(self, short: Collection[str]) -> None:
        """Count the time since the last call for models then short of engines; note those short now."""
        now = self._clock()
        with self._lock:
            for key in self._short:
                self._seconds[key] += now - self._since
            self._short, self._since = frozenset(short), now

    def due(self, key: str) -> str | None:
        """Next replica to load for a model; None as long as that is not worthwhile."""
        needed = self._slots.seconds.get(key, SHORTEST)
        with self._lock:
            if key in self._given_up or self._seconds[key] < needed:
                return None
            return _replica(key, self._begun[key] + 1)

    def begin(self, key: str) -> None:
        """Note that the engine that was due is loading: the next one has to be worth as much again."""
        with self._lock:
            self._begun[key] += 1
            del self._seconds[key]

    def give_up(self, key: str) -> None:
        """Load no more replicas of a model, after one could not be loaded."""
        with self._lock:
            self._given_up.add(key)


def _replica(key: str, number: int) -> str:
    return f"{key}#{number}"

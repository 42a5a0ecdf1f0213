"""Slots for engines on devices: where each engine is, and whether it works or sleeps."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from winnow.tasks.engines.errors import EngineError
from winnow.tasks.engines.pool.loads_and_evictions import (
    SHORTEST,
    Allocation,
    ResidentModel,
    allocation_for,
    weight,
)
from winnow.tasks.engines.protocol import Engine, Sleeper

log = logging.getLogger(__name__)

ANYWHERE = (-1,)
"""Placeholder devices if none are assigned; then one engine works at a time."""


@dataclass(slots=True, eq=False)
class EngineSlot:
    """Place and state of one engine.

    While `busy`, the engine belongs to one thread, or to several if it `joins`.
    """

    key: str
    devices: tuple[int, ...]
    engine: Engine | None = None
    start_seconds: float = 0.0
    """Wall seconds of the engine's constructor."""
    ready: bool = False
    """Whether the engine is known to be loaded."""
    asleep: bool = False
    placed: bool = True
    """Whether the engine occupies a place; a sleeping engine, or one that is being evicted, does not."""
    is_replica: bool = False
    """Whether the model has another engine, so that this one is the cheapest to evict."""
    busy: bool = False
    users: int = 0
    """Number of threads that use the engine."""
    joins: bool = False
    """Whether several threads can use the engine."""
    is_closed: bool = False
    """Whether the engine has been ended for good; threads that share it get an error."""
    ended_by: BaseException | None = None
    """Error that ended the engine; errors of threads that share it follow from this one."""
    end_is_known: bool = False
    """Whether the end of the engine has been counted."""
    reserved: bool = False
    """Whether the slot is busy for a thread that has not taken it yet."""
    priority: float = 0.0
    """See `tasks.engines.pool.loads_and_evictions`."""
    leaving: tuple["EngineSlot", ...] = ()
    """Slots whose engines must be evicted before this slot's engine may start or wake."""

    @property
    def may_be_joined(self) -> bool:
        """Whether the engine is working and accepts more requests at the same time."""
        return self.joins and self.busy and self.placed

    @property
    def assigned(self) -> tuple[int, ...]:
        """Devices of the slot; empty if the engine chooses its own."""
        return () if self.devices == ANYWHERE else self.devices


class SlotTable:
    """A bounded set of engines by key; `loads_and_evictions` decides which ones to evict.

    Thread-safe: each engine serves one thread at a time, or several if it joins; the others wait. On each
    device one engine works at a time.

    Args:
        places: Maximum number of engines in memory on each device, at least 1.
        devices: Devices to choose from; if empty, the places belong to one unnumbered device.
        most_asleep: Maximum number of engines put to sleep, if they can, instead of being closed.
    """

    def __init__(self, places: int, devices: Sequence[int] = (), *, most_asleep: int = 0) -> None:
        self._places = places
        self._devices = tuple(devices) or ANYWHERE
        self._most_asleep = most_asleep
        self._changed = threading.Condition()  # guards everything below
        self._slots: OrderedDict[str, EngineSlot] = OrderedDict()  # least recently used first
        self._seconds: dict[str, float] = {}
        self._clock = 0.0  # priority of the engine evicted last
        self._closed = self._told = False

    def reserve(
        self,
        key: str,
        width: int,
        *,
        waiting: Collection[str] = (),
        later: Collection[str] = (),
        is_replica: bool = False,
    ) -> bool:
        """Reserve the slot of `key` for a thread that will take it; False if it would have to wait.

        Args:
            key: Key of the engine.
            width: Number of its devices; 0 for an engine that runs elsewhere, which never waits for a place.
            waiting: Engines that are about to be used; they are not evicted.
            later: Engines that are used soon; they are evicted last.
            is_replica: Whether the model has another engine.
        """
        with self._changed:
            slot = None if self._closed else self._acquire(key, width, waiting, later)
            if slot is None:
                return False
            slot.reserved, slot.is_replica = True, is_replica
            return True

    def cancel(self, key: str) -> None:
        """Release a reserved slot that no thread has taken."""
        with self._changed:
            slot = self._slots.get(key)
            if slot is None or not slot.reserved:
                return
            slot.reserved = False
        self._evict_all(slot)
        self._give_up(slot)

    @contextmanager
    def taken(
        self, key: str, width: int, start: Callable[[tuple[int, ...]], Engine]
    ) -> Generator[tuple[EngineSlot, Engine]]:
        """Take the slot of `key` for this thread, with a started engine; waits until it is free.

        An engine that joins can serve other threads at the same time. After any error in the block, the
        engine is closed, because its state in the middle of a batch is unknown.

        Args:
            key: Key of the engine.
            width: Number of its devices.
            start: Starts the engine on the devices that it receives.

        Raises:
            RuntimeError: If `close` was called.
        """
        slot = self._take(key, width)
        try:
            self._evict_all(slot)
            if slot.engine is None:
                started = time.monotonic()
                slot.engine = start(slot.assigned)
                slot.start_seconds = time.monotonic() - started
            yield slot, slot.engine
        except BaseException as error:
            self._give_up(slot, error)
            raise
        self._give_back(slot)

    def may_be_joined(self, key: str) -> bool:
        """Whether an engine is working and accepts more requests at the same time."""
        with self._changed:
            slot = self._slots.get(key)
            return slot is not None and slot.may_be_joined

    def note(self, key: str, seconds: float) -> None:
        """Record how many seconds an engine took to become ready."""
        with self._changed:
            self._seconds[key] = weight(seconds)

    @property
    def seconds(self) -> dict[str, float]:
        """Seconds that each engine last took to become ready, as rounded by `weight`."""
        with self._changed:
            return dict(self._seconds)

    def keys(self, *, placed: bool) -> set[str]:
        """Keys of engines in memory, or of sleeping ones if not `placed`."""
        with self._changed:
            return {key for key, slot in self._slots.items() if slot.placed is placed}

    def has_room_beside(self, width: int, wanted: Collection[str]) -> bool:
        """Whether an engine could start now without evicting one of `wanted`."""
        with self._changed:
            return not self._closed and self._allocation(width, waiting=wanted) is not None

    def has_room(self, width: int) -> bool:
        """Whether an engine could start now without evicting another."""
        with self._changed:
            allocation = self._allocation(width)
            return not self._closed and allocation is not None and not allocation.leaving

    def close(self) -> None:
        """Close all engines, each when its batch is done, and refuse new ones.

        Can be called repeatedly.
        """
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not any(slot.busy for slot in self._slots.values()))
            while self._slots:
                _close(self._slots.popitem(last=False)[1])

    def abandon(self) -> None:
        """Close all engines immediately, also during batches, and refuse new ones."""
        with self._changed:
            self._closed = True
            slots = list(self._slots.values())
            self._slots.clear()
            self._changed.notify_all()
        for slot in slots:
            _close(slot)

    def _take(self, key: str, width: int) -> EngineSlot:
        with self._changed:
            slot = self._await_slot(key, width)
            slot.users += 1
            return slot

    def _await_slot(self, key: str, width: int) -> EngineSlot:
        while True:
            slot = self._slots.get(key)
            if slot is not None and (slot.reserved or slot.may_be_joined):
                slot.reserved = False  # the first thread takes it; others join
                return slot
            if self._closed:
                raise RuntimeError("the engine pool is closed")
            if (slot := self._acquire(key, width)) is not None:
                return slot
            self._changed.wait()

    def _acquire(
        self, key: str, width: int, waiting: Collection[str] = (), later: Collection[str] = ()
    ) -> EngineSlot | None:
        """Mark the slot of `key` as busy and return it; None if it is busy or has no room now."""
        slot = self._slots.get(key)
        if slot is not None and (slot.busy or (slot.placed and self._disturbs(slot))):
            return None
        if slot is None or not slot.placed:
            allocation = self._allocation(width, slot, waiting, later)
            if allocation is None:
                return None
            slot = slot or self._slots.setdefault(key, EngineSlot(key=key, devices=allocation.devices))
            slot.placed = True
            slot.leaving = tuple(self._slots[leaving] for leaving in allocation.leaving)
            for each in slot.leaving:
                each.placed, each.busy = False, True
                self._clock = max(self._clock, each.priority)
        slot.busy = True
        self._slots.move_to_end(key)
        return slot

    def _allocation(
        self,
        width: int,
        slot: EngineSlot | None = None,
        waiting: Collection[str] = (),
        later: Collection[str] = (),
    ) -> Allocation | None:
        return allocation_for(
            min(width, len(self._devices)),
            devices=slot.devices if slot else self._devices,
            places=self._places,
            resident=[
                ResidentModel(key=each.key, devices=each.devices, busy=each.busy, priority=each.priority)
                for each in self._slots.values()
                if each.placed
            ],
            waiting=waiting,
            later=later,
        )

    def _disturbs(self, slot: EngineSlot) -> bool:
        """Whether another engine is working on one of the slot's devices."""
        others = (each for each in self._slots.values() if each.busy and each.placed)
        return any(set(slot.devices) & set(each.devices) for each in others)

    def _evict_all(self, slot: EngineSlot) -> None:
        """Evict all engines that must leave for a slot's engine, and wait for it."""
        with ExitStack() as evictions:
            for each in slot.leaving:
                evictions.callback(self._evict, each)
            slot.leaving = ()

    def _evict(self, slot: EngineSlot) -> None:
        """Put an evicted engine to sleep, or close it."""
        try:
            slot.asleep = self._fell_asleep(slot)
            if not slot.asleep:
                _close(slot)
        finally:
            with self._changed:
                slot.busy = False
                if not slot.asleep:
                    self._forget(slot)
                sleepers = [each for each in self._slots.values() if not each.placed and not each.busy]
                for each in sleepers[: max(0, len(sleepers) - self._most_asleep)]:
                    self._forget(each)
                    _close(each)
                self._changed.notify_all()

    def _fell_asleep(self, slot: EngineSlot) -> bool:
        if not (self._most_asleep and slot.ready and isinstance(slot.engine, Sleeper)):
            return False
        if not slot.engine.can_sleep:
            if not self._told:
                log.warning("models cannot sleep on this device: evicted models are closed")
            self._told = True
            return False
        try:
            slot.engine.sleep()
        except EngineError as error:
            log.warning("a model that should sleep is closed: %s", error)
            return False
        return True

    def _give_back(self, slot: EngineSlot) -> None:
        with self._changed:
            slot.users -= 1
            slot.busy = slot.users > 0
            kept = self._clock + self._seconds.get(slot.key, SHORTEST)
            slot.priority = 0.0 if slot.is_replica else kept
            self._changed.notify_all()

    def _give_up(self, slot: EngineSlot, error: BaseException | None = None) -> None:
        with self._changed:
            was_closed, slot.is_closed = slot.is_closed, True
            slot.joins = False
            slot.ended_by = slot.ended_by or error
        if was_closed:  # closed by a thread that shared it
            return
        # The slot stays busy until its memory is free, so that no engine starts there before.
        try:
            _close(slot)
        finally:
            with self._changed:
                self._forget(slot)
                self._changed.notify_all()

    def _forget(self, slot: EngineSlot) -> None:
        if self._slots.get(slot.key) is slot:  # not abandoned
            del self._slots[slot.key]


def _close(slot: EngineSlot) -> None:
    if slot.engine is not None:
        slot.engine.close()

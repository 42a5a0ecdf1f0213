"""Places for loaded engines on devices: who sits where, who is at work, who makes room, who sleeps."""

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from winnow.tasks.engines.errors import EngineError
from winnow.tasks.engines.pool.loads_and_evictions import SHORTEST, ResidentModel, Room, room_for, weight
from winnow.tasks.engines.protocol import Engine, Sleeper

log = logging.getLogger(__name__)

ANYWHERE = (-1,)
"""What stands for the devices where none are assigned: one engine is at work at a time."""


@dataclass(slots=True, eq=False)
class EngineSlot:
    """The place of one engine, and how it is.

    While `busy`, its engine belongs to one thread, or to several where it `joins`.
    """

    key: str
    devices: tuple[int, ...]
    engine: Engine | None = None
    start_seconds: float = 0.0
    """Wall time that the engine's constructor took."""
    ready: bool = False
    """Whether the engine was seen to be loaded."""
    asleep: bool = False
    placed: bool = True
    """Whether it takes a place; one that sleeps, or is about to, takes none."""
    is_replica: bool = False
    """Whether its model has another engine, so that it is the cheapest to do without."""
    busy: bool = False
    users: int = 0
    """Threads that it belongs to."""
    joins: bool = False
    """Whether it may belong to several."""
    is_closed: bool = False
    """Whether its engine was given up; threads that share it will find out."""
    ended_by: BaseException | None = None
    """What went wrong then; what they find out follows from it."""
    end_is_known: bool = False
    """Whether it was counted that its engine ended."""
    reserved: bool = False
    """Busy, and its thread has not come yet."""
    credit: float = 0.0
    """See `tasks.engines.pool.loads_and_evictions`."""
    leaving: tuple["EngineSlot", ...] = ()
    """Who has to be gone before its own engine may start or wake."""

    @property
    def may_be_joined(self) -> bool:
        """Whether its engine is at work and can be asked for more meanwhile."""
        return self.joins and self.busy and self.placed

    @property
    def assigned(self) -> tuple[int, ...]:
        """Its devices; empty where nobody assigned any."""
        return () if self.devices == ANYWHERE else self.devices


class SlotTable:
    """A bounded set of engines by key; `loads_and_evictions` says which of them make room for others.

    Threads may share it: each engine serves one of them at a time and the others wait, or several where
    it joins. On each device one engine is at work at a time.

    Args:
        places: Engines in memory at the same time on each device, at least 1.
        devices: Devices to choose from; without any, the places are those of one that has no number.
        most_asleep: How many engines that can sleep may do so in place of being closed.
    """

    def __init__(self, places: int, devices: Sequence[int] = (), *, most_asleep: int = 0) -> None:
        self._places = places
        self._devices = tuple(devices) or ANYWHERE
        self._most_asleep = most_asleep
        self._changed = threading.Condition()  # guards everything below
        self._seats: OrderedDict[str, EngineSlot] = OrderedDict()  # least recently used first
        self._seconds: dict[str, float] = {}
        self._clock = 0.0  # credit of the last one that made room
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
        """Keep the seat of `key` for the thread that will come for it; False if it would have to wait.

        Args:
            key: The engine's.
            width: Devices that it takes; 0 for one that runs elsewhere, which never waits for a place.
            waiting: Engines that are about to be asked and do not make room.
            later: Engines that are asked soon and make room last.
            is_replica: Whether its model has another engine.
        """
        with self._changed:
            seat = None if self._closed else self._seat(key, width, waiting, later)
            if seat is None:
                return False
            seat.reserved, seat.is_replica = True, is_replica
            return True

    def cancel(self, key: str) -> None:
        """Give up a seat that was reserved, if nobody came for it."""
        with self._changed:
            seat = self._seats.get(key)
            if seat is None or not seat.reserved:
                return
            seat.reserved = False
        self._see_off(seat)
        self._give_up(seat)

    @contextmanager
    def taken(
        self, key: str, width: int, start: Callable[[tuple[int, ...]], Engine]
    ) -> Generator[tuple[EngineSlot, Engine]]:
        """The seat of `key` for this thread, with an engine that was started; waits for a free one.

        An engine that joins may serve others at the same time.

        Whatever goes wrong inside, the engine is closed: in the middle of a batch its state is unknown.

        Args:
            key: The engine's.
            width: Devices that it takes.
            start: Starts the engine on the devices it is given.

        Raises:
            RuntimeError: If `close` was called.
        """
        seat = self._take(key, width)
        try:
            self._see_off(seat)
            if seat.engine is None:
                started = time.monotonic()
                seat.engine = start(seat.assigned)
                seat.start_seconds = time.monotonic() - started
            yield seat, seat.engine
        except BaseException as error:
            self._give_up(seat, error)
            raise
        self._give_back(seat)

    def may_be_joined(self, key: str) -> bool:
        """Whether an engine is at work that can be asked for more meanwhile."""
        with self._changed:
            seat = self._seats.get(key)
            return seat is not None and seat.may_be_joined

    def note(self, key: str, seconds: float) -> None:
        """Learn what it took to get an engine ready."""
        with self._changed:
            self._seconds[key] = weight(seconds)

    @property
    def seconds(self) -> dict[str, float]:
        """What it took to get each engine ready, the last time, as `weight` has it."""
        with self._changed:
            return dict(self._seconds)

    def keys(self, *, placed: bool) -> set[str]:
        """The engines that are in memory, or those that sleep."""
        with self._changed:
            return {key for key, seat in self._seats.items() if seat.placed is placed}

    def has_room_beside(self, width: int, wanted: Collection[str]) -> bool:
        """Whether an engine could start now without one of these making room."""
        with self._changed:
            return not self._closed and self._room(width, waiting=wanted) is not None

    def has_room(self, width: int) -> bool:
        """Whether an engine could start without another making room."""
        with self._changed:
            room = self._room(width)
            return not self._closed and room is not None and not room.leaving

    def close(self) -> None:
        """Close all engines, each when its batch is done, and refuse new ones. May be called again."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: not any(seat.busy for seat in self._seats.values()))
            while self._seats:
                _close(self._seats.popitem(last=False)[1])

    def abandon(self) -> None:
        """Close all engines at once, in the middle of their batches, and refuse new ones."""
        with self._changed:
            self._closed = True
            seats = list(self._seats.values())
            self._seats.clear()
            self._changed.notify_all()
        for seat in seats:
            _close(seat)

    def _take(self, key: str, width: int) -> EngineSlot:
        with self._changed:
            seat = self._await_seat(key, width)
            seat.users += 1
            return seat

    def _await_seat(self, key: str, width: int) -> EngineSlot:
        while True:
            seat = self._seats.get(key)
            if seat is not None and (seat.reserved or seat.may_be_joined):
                seat.reserved = False  # whoever comes first; the others join
                return seat
            if self._closed:
                raise RuntimeError("the engine pool is closed")
            if (seat := self._seat(key, width)) is not None:
                return seat
            self._changed.wait()

    def _seat(
        self, key: str, width: int, waiting: Collection[str] = (), later: Collection[str] = ()
    ) -> EngineSlot | None:
        """The seat of `key`, made busy; None if it is, or there is no room for it now."""
        seat = self._seats.get(key)
        if seat is not None and (seat.busy or (seat.placed and self._disturbs(seat))):
            return None
        if seat is None or not seat.placed:
            room = self._room(width, seat, waiting, later)
            if room is None:
                return None
            seat = seat or self._seats.setdefault(key, EngineSlot(key=key, devices=room.devices))
            seat.placed = True
            seat.leaving = tuple(self._seats[leaving] for leaving in room.leaving)
            for each in seat.leaving:
                each.placed, each.busy = False, True
                self._clock = max(self._clock, each.credit)
        seat.busy = True
        self._seats.move_to_end(key)
        return seat

    def _room(
        self,
        width: int,
        seat: EngineSlot | None = None,
        waiting: Collection[str] = (),
        later: Collection[str] = (),
    ) -> Room | None:
        return room_for(
            min(width, len(self._devices)),
            devices=seat.devices if seat else self._devices,
            places=self._places,
            seated=[
                ResidentModel(key=each.key, devices=each.devices, busy=each.busy, credit=each.credit)
                for each in self._seats.values()
                if each.placed
            ],
            waiting=waiting,
            later=later,
        )

    def _disturbs(self, seat: EngineSlot) -> bool:
        """Whether another engine is at work on one of its devices."""
        others = (each for each in self._seats.values() if each.busy and each.placed)
        return any(set(seat.devices) & set(each.devices) for each in others)

    def _see_off(self, seat: EngineSlot) -> None:
        """Wait until all that make room for a seat's engine are gone."""
        with ExitStack() as goodbyes:
            for each in seat.leaving:
                goodbyes.callback(self._put_away, each)
            seat.leaving = ()

    def _put_away(self, seat: EngineSlot) -> None:
        """Have an engine that makes room sleep, or close it."""
        try:
            seat.asleep = self._fell_asleep(seat)
            if not seat.asleep:
                _close(seat)
        finally:
            with self._changed:
                seat.busy = False
                if not seat.asleep:
                    self._forget(seat)
                sleepers = [each for each in self._seats.values() if not each.placed and not each.busy]
                for each in sleepers[: max(0, len(sleepers) - self._most_asleep)]:
                    self._forget(each)
                    _close(each)
                self._changed.notify_all()

    def _fell_asleep(self, seat: EngineSlot) -> bool:
        if not (self._most_asleep and seat.ready and isinstance(seat.engine, Sleeper)):
            return False
        if not seat.engine.can_sleep:
            if not self._told:
                log.warning("models cannot sleep on this device: those that make room are closed")
            self._told = True
            return False
        try:
            seat.engine.sleep()
        except EngineError as error:
            log.warning("a model that should sleep is closed: %s", error)
            return False
        return True

    def _give_back(self, seat: EngineSlot) -> None:
        with self._changed:
            seat.users -= 1
            seat.busy = seat.users > 0
            kept = self._clock + self._seconds.get(seat.key, SHORTEST)
            seat.credit = 0.0 if seat.is_replica else kept
            self._changed.notify_all()

    def _give_up(self, seat: EngineSlot, error: BaseException | None = None) -> None:
        with self._changed:
            was_closed, seat.is_closed = seat.is_closed, True
            seat.joins = False
            seat.ended_by = seat.ended_by or error
        if was_closed:  # by a thread that shared it
            return
        # It stays busy until its memory is free: nobody may start an engine in its place before.
        try:
            _close(seat)
        finally:
            with self._changed:
                self._forget(seat)
                self._changed.notify_all()

    def _forget(self, seat: EngineSlot) -> None:
        if self._seats.get(seat.key) is seat:  # not abandoned
            del self._seats[seat.key]


def _close(seat: EngineSlot) -> None:
    if seat.engine is not None:
        seat.engine.close()

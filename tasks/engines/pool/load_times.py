"""Measured times of loading models, and of waking sleeping ones."""

import datetime as dt
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from winnow.tasks.engines.pool.slots import EngineSlot, SlotTable
from winnow.tasks.engines.protocol import Engine, JoinsBatches, LoadsAside, ModelRef, Sleeper


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTime:
    """Time of one load or one wake-up of a model."""

    model: str
    """Name of the requested model, among those that share its engine."""
    devices: tuple[int, ...]
    """Devices on which the engine runs; empty if no devices were assigned."""
    kind: Literal["load", "wake"]
    seconds: float
    """Wall seconds until the engine was ready."""
    ended_at: dt.datetime
    """Time at which the engine was found to be ready, in UTC."""


class LoadTimes:
    """Wait for engines to be ready, and record how long that takes.

    Args:
        slots: Receives the time of each engine, so that expensive ones are kept longer.
        joins: Whether engines that support it can accept more requests while they work.
    """

    def __init__(self, slots: SlotTable, *, joins: bool = True) -> None:
        self._slots, self._joins = slots, joins
        self._lock = threading.Lock()
        self._times: list[LoadTime] = []
        self._begun: dict[str, float] = {}
        self._n_loading = self._n_answering = 0
        self._stalled, self._stalled_since = 0.0, 0.0

    def have_ready(self, model: ModelRef, slot: EngineSlot, engine: Engine) -> None:
        """Wait until an engine is ready, and wake it if it sleeps; the caller holds its slot.

        Raises:
            EngineError: If the engine cannot be loaded or woken in time.
        """
        if slot.ready and not slot.asleep:
            return
        with self.loading(model.name):
            self._have_ready(model, slot, engine)

    @property
    def under_way(self) -> dict[str, float]:
        """Seconds since each current load or wake-up began, by the model's name."""
        now = time.monotonic()
        with self._lock:
            return {name: now - begun for name, begun in self._begun.items()}

    @property
    def stalled(self) -> float:
        """Total seconds in which models were being loaded or woken and no engine was working."""
        with self._lock:
            return self._stalled + (time.monotonic() - self._stalled_since if self._is_stalled else 0.0)

    @property
    def _is_stalled(self) -> bool:
        return self._n_loading > 0 and self._n_answering == 0

    def _count(self, *, loading: int = 0, answering: int = 0) -> None:
        """Change the numbers of loads and of working engines; the caller holds the lock."""
        now = time.monotonic()
        if self._is_stalled:
            self._stalled += now - self._stalled_since
        self._n_loading += loading
        self._n_answering += answering
        self._stalled_since = now

    @contextmanager
    def loading(self, name: str) -> Generator[None, None, None]:
        """Count a model as loading until the block ends."""
        with self._lock:
            self._begun[name] = time.monotonic()
            self._count(loading=1)
        try:
            yield
        finally:
            with self._lock:
                self._begun.pop(name, None)
                self._count(loading=-1)

    @contextmanager
    def answering(self) -> Generator[None, None, None]:
        """Count an engine as working until the block ends."""
        with self._lock:
            self._count(answering=1)
        try:
            yield
        finally:
            with self._lock:
                self._count(answering=-1)

    def _have_ready(self, model: ModelRef, slot: EngineSlot, engine: Engine) -> None:
        started = time.monotonic()
        if slot.asleep and isinstance(engine, Sleeper):
            engine.wake()
            slot.asleep = False
            self._add(model, slot, "wake", time.monotonic() - started)
        elif not slot.ready and slot.devices:  # remote models need no loading
            engine.identity  # noqa: B018 -- waits until the model is loaded
            waited = slot.start_seconds + time.monotonic() - started
            self._add(model, slot, "load", engine.load_seconds if isinstance(engine, LoadsAside) else waited)
        slot.joins = self._joins and isinstance(engine, JoinsBatches) and engine.joins
        slot.ready = True

    def take(self) -> list[LoadTime]:
        """Times since the last call, in the order in which engines became ready."""
        with self._lock:
            taken, self._times = self._times, []
            return taken

    def _add(self, model: ModelRef, slot: EngineSlot, kind: Literal["load", "wake"], seconds: float) -> None:
        self._slots.note(slot.key, seconds)
        time_ = LoadTime(
            model=model.name,
            devices=slot.assigned,
            kind=kind,
            seconds=seconds,
            ended_at=dt.datetime.now(dt.UTC),
        )
        with self._lock:
            self._times.append(time_)

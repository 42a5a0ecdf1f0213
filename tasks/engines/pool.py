"""Engines on demand: at most so many loaded at once, each restarted a bounded number of times."""

import json
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tasks.engines.errors import EngineError, EngineLoadFailed
from tasks.engines.protocol import Answer, Engine, GenerationFailure, ModelRef, Request
from tasks.engines.providers import EngineFactory, EngineSettings, start_engine
from tasks.engines.seats import Seats


class EnginePool:
    """Answers requests for many models with few engines in memory.

    A model's engine starts when the model is first asked; the least recently used one is closed, for
    real, before another takes its place. References that differ only in their name share an engine.
    Threads may share a pool. It is a context manager, and leaving it closes all engines.

    Args:
        log_folder: Where engines write their logs; made when needed.
        max_loaded: Engines in memory at the same time, at least 1.
        max_restarts: How often a model's engine may die or time out and be started again.
        load_timeout: Seconds a model may take to load.
        batch_timeout: Seconds a batch may take; None waits for ever.
        factory: Starts an engine; by default that of the model's provider.

    Raises:
        ValueError: If `max_loaded` is below 1 or `max_restarts` below 0.
    """

    def __init__(
        self,
        *,
        log_folder: Path,
        max_loaded: int = 1,
        max_restarts: int = 2,
        load_timeout: float = 600.0,
        batch_timeout: float | None = 600.0,
        factory: EngineFactory = start_engine,
    ) -> None:
        if max_loaded < 1:
            raise ValueError(f"max_loaded must be at least 1, got {max_loaded}")
        if max_restarts < 0:
            raise ValueError(f"max_restarts must be 0 or more, got {max_restarts}")
        self._settings = EngineSettings(
            log_folder=log_folder, load_timeout=load_timeout, batch_timeout=batch_timeout
        )
        self._max_restarts = max_restarts
        self._factory = factory
        self._seats = Seats(max_loaded)
        self._counting = threading.Lock()
        self._ends: Counter[str] = Counter()
        self._failed: dict[str, GenerationFailure] = {}
        self._identities: dict[str, str] = {}

    def generate(self, model: ModelRef, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; answer i belongs to request i.

        A model that cannot be loaded, or whose engine ended more than `max_restarts` times, answers every
        request with a `GenerationFailure`, now and later; other models go on.

        Raises:
            EngineDied: If the engine ended and may be started again: call again.
            EngineTimeout: If it took too long and may be started again: call again.
        """
        if not requests:
            return []
        key = _engine_key(model)
        failure = self._failed.get(key)
        if failure is None:
            try:
                with self._seats.taken(key, lambda: self._start(model)) as engine:
                    answers = engine.generate(requests)
                    self._identities[key] = engine.identity
                    return answers
            except EngineError as error:
                failure = self._record(key, error)
                if failure is None:
                    raise
        return [failure] * len(requests)

    def identity(self, model: ModelRef) -> str:
        """Software, version, device and precision of the model's engine, which is loaded if it never was.

        Raises:
            EngineLoadFailed: If the model has failed, now or before.
            EngineDied: If the engine ended and may be started again: call again.
            EngineTimeout: If it took too long and may be started again: call again.
        """
        key = _engine_key(model)
        if key in self._identities:
            return self._identities[key]
        if key in self._failed:
            raise EngineLoadFailed(model.name, self._failed[key].detail)
        try:
            with self._seats.taken(key, lambda: self._start(model)) as engine:
                self._identities[key] = engine.identity
                return self._identities[key]
        except EngineError as error:
            if failure := self._record(key, error):
                raise EngineLoadFailed(model.name, failure.detail) from error
            raise

    def preload(self, model: ModelRef) -> None:
        """Start loading if there is a free place; trouble shows when the model is asked.

        An engine in a process of its own goes on loading after this returns, others load in this call.
        """
        key = _engine_key(model)
        if key in self._failed or not self._seats.has_room():
            return
        try:
            with self._seats.taken(key, lambda: self._start(model)):
                pass
        except EngineError as error:
            self._record(key, error)

    def close(self) -> None:
        """Close all engines, each when its batch is done, and wait until they are gone."""
        self._seats.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _start(self, model: ModelRef) -> Engine:
        return self._factory(model, self._settings)

    def _record(self, key: str, error: EngineError) -> GenerationFailure | None:
        """Remember how an engine ended; return the model's failure once there is no more hope for it."""
        with self._counting:
            self._ends[key] += 1
            if isinstance(error, EngineLoadFailed):
                self._failed[key] = GenerationFailure(reason="load_failed", detail=str(error))
            elif self._ends[key] > self._max_restarts:
                detail = (
                    f"model {error.model!r}: given up after {self._ends[key]} engines; the last: {error.why}"
                )
                self._failed[key] = GenerationFailure(reason="engine_failed", detail=detail)
            return self._failed.get(key)


def _engine_key(model: ModelRef) -> str:
    """All of a reference that decides what an engine loads, in one spelling."""
    parts = (model.provider, model.model, model.revision, model.chat)
    return json.dumps([*parts, dict(model.model_args), dict(model.chat_template_args)], sort_keys=True)

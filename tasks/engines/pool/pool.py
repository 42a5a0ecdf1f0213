"""Engines on demand: a limited number loaded at once, each with a limited number of restarts."""

import logging
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from winnow.tasks.engines.errors import EngineDied, EngineError, EngineLoadFailed
from winnow.tasks.engines.pool.load_times import LoadTime, LoadTimes
from winnow.tasks.engines.pool.loads_and_evictions import memory_share
from winnow.tasks.engines.pool.request_scheduler import Replicas, RequestGroup, RequestScheduler, TakeParts
from winnow.tasks.engines.pool.slots import EngineSlot, SlotTable
from winnow.tasks.engines.protocol import (
    Answer,
    AnswersAsTheyCome,
    BatchUnfinished,
    Came,
    Engine,
    GenerationFailure,
    ModelRef,
    Request,
)
from winnow.tasks.engines.providers import (
    EngineFactory,
    EngineSettings,
    adapters_by_engine,
    devices_wanted,
    engine_key,
    start_engine,
)
from winnow.tasks.engines.tracing import engine_call, record_usage

LOGGER = logging.getLogger("winnow.engines")


class EnginePool:
    """Answer requests for many models with few engines in memory.

    A model's engine starts at its first request. If no place is free, `loads_and_evictions` chooses another
    engine, which is first closed or put to sleep. References that differ only in their name or their adapter
    share an engine. Threads may share a pool. It is a context manager, and leaving it closes all engines.

    Args:
        log_folder: Folder in which engines write their logs; created if needed.
        max_loaded: Maximum number of engines in memory, on each device if there are devices; at least 1.
        devices: Numbers of the devices that engines are assigned to; if empty, engines choose for themselves
            and are used one at a time.
        width: Returns the number of devices of a model's engine; 0 for an engine that runs elsewhere.
        most_asleep: Maximum number of engines put to sleep, if they can, instead of being closed; 0 for none.
        models: All models that will be used: an engine is started for all adapters among them.
        max_restarts: Maximum number of times that a model's engine is started again after an end or time-out.
        load_timeout: Maximum seconds for loading a model.
        batch_timeout: Maximum seconds of a batch, or, if an engine works on several, maximum seconds without
            any answer; None means no limit.
        streaming: Whether requests may join those that an engine is working on. If not, an engine answers one
            group at a time and discards its state after it.
        logs_ends: Whether to log how an engine ended; False for callers that log it themselves.
        factory: Starts an engine; by default that of the model's provider.

    Raises:
        ValueError: If `max_loaded` is below 1 or `max_restarts` or `most_asleep` below 0.
    """

    def __init__(
        self,
        *,
        log_folder: Path,
        max_loaded: int = 1,
        devices: Sequence[int] = (),
        width: Callable[[ModelRef], int] = devices_wanted,
        most_asleep: int = 0,
        models: Sequence[ModelRef] = (),
        max_restarts: int = 2,
        load_timeout: float = 600.0,
        batch_timeout: float | None = 600.0,
        streaming: bool = True,
        logs_ends: bool = True,
        factory: EngineFactory = start_engine,
    ) -> None:
        if max_loaded < 1:
            raise ValueError(f"max_loaded must be at least 1, got {max_loaded}")
        for name, value in (("max_restarts", max_restarts), ("most_asleep", most_asleep)):
            if value < 0:
                raise ValueError(f"{name} must be 0 or more, got {value}")
        self._settings = EngineSettings(
            log_folder=log_folder,
            load_timeout=load_timeout,
            batch_timeout=batch_timeout,
            memory_share=memory_share(max_loaded, most_asleep),
            sleeps=most_asleep > 0,
            is_fresh=not streaming,
        )
        self._adapters, self._streaming = adapters_by_engine(models), streaming
        self._max_restarts = max_restarts
        self._logs_ends = logs_ends
        self._factory = factory
        self._n_devices = len(devices)
        self._width = width
        self._slots = SlotTable(max_loaded, devices, most_asleep=most_asleep)
        self._times = LoadTimes(self._slots, joins=streaming)
        self._replicas = Replicas(self._slots)
        self._counting = threading.Lock()
        self._ends: Counter[str] = Counter()
        self._failed: dict[str, GenerationFailure] = {}
        self._identities: dict[str, str] = {}
        self._kept = KeptAnswers()

    def generate(
        self,
        model: ModelRef,
        requests: Sequence[Request],
        *,
        engine: str | None = None,
        is_ready: Callable[[], None] = lambda: None,
        came: Came | None = None,
        keeps: bool = True,
    ) -> list[Answer]:
        """Answer every request; answer i belongs to request i.

        `is_ready` is called when the model's engine is loaded, right before its first request. `engine` is
        the number of one of its `Replicas`, if it is not the first; if a replica cannot be loaded, the first
        one does its work. `came` is called for answers that arrive before the others, if the engine reports
        them.

        A model that cannot be loaded, or whose engine ended more than `max_restarts` times, answers every
        request with a `GenerationFailure`, now and later; other models continue. If an engine ends during a
        batch, its answers so far are kept, and not requested again with the rest, unless `keeps` is false.

        Raises:
            EngineDied: If the engine ended and may be started again: call again.
            EngineTimeout: If the engine took too long and may be started again: call again.
        """
        if not requests:
            return []
        key = engine_key(model)
        if model.lora is not None:
            requests = [replace(request, adapter=model.lora) for request in requests]
        failure = self._failed.get(key)
        if failure is None:
            slot = None
            try:
                with engine_call(model, len(requests)) as span, self._taken(model, engine) as (slot, started):
                    self._times.have_ready(model, slot, started)
                    is_ready()
                    answers = self._answers(model, started, requests, came=came, keeps=keeps)
                    record_usage(span, answers)
                    return answers
            except Exception as error:
                cause = _cause(error, slot)
                if not isinstance(cause, EngineError):
                    raise
                if engine not in (None, key) and isinstance(cause, EngineLoadFailed):
                    _log_end(cause)
                    self._replicas.give_up(key)
                    return self.generate(model, requests, is_ready=is_ready, came=came, keeps=keeps)
                failure = self._record(key, cause, slot)
                if failure is None:
                    raise cause from cause.__cause__
        kept = self._kept.of(key, requests)
        self._kept.forget(key, requests)
        return [kept.get(request, failure) for request in requests]

    def _answers(
        self,
        model: ModelRef,
        engine: Engine,
        requests: Sequence[Request],
        *,
        came: Came | None,
        keeps: bool,
    ) -> list[Answer]:
        """Send an engine only the requests that no earlier engine answered before it ended."""
        key = engine_key(model)
        known = self._kept.of(key, requests)
        places = [place for place, request in enumerate(requests) if request not in known]
        left = [requests[place] for place in places]
        try:
            with self._times.answering():
                if came is not None and isinstance(engine, AnswersAsTheyCome):
                    self._identities[key] = engine.identity
                    answers = engine.generate_each(left, lambda i, answer: came(places[i], answer))
                else:
                    answers = engine.generate(left)
        except BatchUnfinished as error:
            if keeps:
                self._identities[key] = engine.identity
                self._kept.keep(key, {left[i]: answer for i, answer in error.answered.items()})
            raise error.cause from error.cause.__cause__
        if len(answers) != len(left):
            raise EngineDied(model.name, f"it answered {len(left)} requests with {len(answers)} texts")
        self._identities[key] = engine.identity
        self._kept.forget(key, requests)
        new = iter(answers)
        return [known[request] if request in known else next(new) for request in requests]

    def answers(
        self,
        asks: Sequence[RequestGroup],
        *,
        later: Sequence[ModelRef] = (),
        take_parts: TakeParts | None = None,
    ) -> Generator[tuple[int, list[Answer]]]:
        """Answer groups of requests for many models with few loads, in parallel on the devices.

        An engine that implements `JoinsBatches` receives all of its groups at once, unless the pool does not
        stream. A model with more work is also loaded on devices that would be idle; see `Replicas`.

        Args:
            asks: Groups with at least one request each; those of one engine begin in this order.
            later: Models that will be used soon after.
            take_parts: Receives answers of unfinished groups, if the pool streams; see `RequestScheduler`.

        Yields:
            The number of a group, and answer i to its request i, in the order in which groups are finished.
            Always close the generator: stopping before its end ends all engines.

        Raises:
            EngineDied: Like `generate`, after every group that began is finished and its answers are yielded.
            EngineTimeout: Like `EngineDied`.
        """
        widths = {engine_key(ask.model): self._width(ask.model) for ask in asks}
        joins = self._streaming and len(asks) > len(widths)
        spreads = self._n_devices > 1 and len(asks) > len(widths)
        at_once = spreads or (len(widths) > 1 and (self._n_devices > 1 or 0 in widths.values()))
        tells = self._streaming and take_parts is not None and 0 in widths.values()
        scheduler = self._scheduler(
            later,
            take_parts,
            aside=joins or at_once or tells,
            beside=at_once,
            joins=joins,
            spreads=spreads,
        )
        for ask in asks:
            scheduler.add(ask, engine_key(ask.model), widths[engine_key(ask.model)])
        return scheduler.outcomes()

    def stream(
        self, *, later: Sequence[ModelRef] = (), take_parts: TakeParts | None = None
    ) -> "RequestStream":
        """Open a stream of groups to which more can be added; the arguments are those of `answers`."""
        spreads = self._n_devices > 1
        scheduler = self._scheduler(later, take_parts, aside=True, beside=True, joins=True, spreads=spreads)
        return RequestStream(scheduler, self._width)

    def _scheduler(
        self,
        later: Sequence[ModelRef],
        take_parts: TakeParts | None,
        *,
        aside: bool,
        beside: bool,
        joins: bool,
        spreads: bool,
    ) -> RequestScheduler:
        if not self._streaming:
            take_parts = None  # a group is stored as a whole
        return RequestScheduler(
            ask=lambda group, engine, is_ready, came: self.generate(
                group.model, group.requests, engine=engine, is_ready=is_ready, came=came
            ),
            slots=self._slots,
            replicas=self._replicas,
            failed=self._failed.keys(),
            later={engine_key(model) for model in later},
            aside=aside,
            beside=beside,
            joins=joins,
            spreads=spreads,
            take_parts=take_parts,
        )

    def failure(self, model: ModelRef) -> GenerationFailure | None:
        """Reason why a model has failed and answers no more requests; None if it has not failed."""
        return self._failed.get(engine_key(model))

    def identity(self, model: ModelRef) -> str:
        """Software, version, device and precision of the model's engine; loads it if necessary.

        Raises:
            EngineLoadFailed: If the model has failed, now or before.
            EngineDied: If the engine ended and may be started again: call again.
            EngineTimeout: If the engine took too long and may be started again: call again.
        """
        key = engine_key(model)
        if key in self._identities:
            return self._identities[key]
        if key in self._failed:
            raise EngineLoadFailed(model.name, self._failed[key].detail)
        try:
            with self._taken(model) as (slot, engine):
                self._times.have_ready(model, slot, engine)
                self._identities[key] = engine.identity
                return self._identities[key]
        except EngineError as error:
            if failure := self._record(key, error):
                raise EngineLoadFailed(model.name, failure.detail) from error
            raise

    def preload(self, model: ModelRef) -> None:
        """Start loading if a place is free; errors appear when the model is used.

        An engine in a separate process continues loading after this returns; others load in this call.
        """
        key, width = engine_key(model), self._width(model)
        if key in self._failed or not width or not self._slots.has_room(width):
            return
        try:
            with self._taken(model):
                pass
        except EngineError as error:
            self._record(key, error)

    @property
    def loading(self) -> dict[str, float]:
        """Seconds since each current load or wake-up began, by the model's name."""
        return self._times.under_way

    @property
    def stalled(self) -> float:
        """Total seconds in which models were being loaded or woken and no engine was working."""
        return self._times.stalled

    def take_loads(self) -> list[LoadTime]:
        """Loads since the last call, in the order in which the engines became ready."""
        return self._times.take()

    def close(self) -> None:
        """Close all engines, each when its batch is done, and wait until they have ended."""
        self._slots.close()

    def abandon(self) -> None:
        """Close all engines immediately; batches in progress fail in their threads."""
        self._slots.abandon()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _taken(
        self, model: ModelRef, engine: str | None = None
    ) -> AbstractContextManager[tuple[EngineSlot, Engine]]:
        return self._slots.taken(
            engine or engine_key(model), self._width(model), lambda devices: self._start(model, devices)
        )

    def _start(self, model: ModelRef, devices: tuple[int, ...]) -> Engine:
        own = () if model.lora is None else (model.lora,)
        adapters = tuple(sorted(self._adapters.get(engine_key(model), frozenset()).union(own)))
        with self._times.loading(model.name):
            return self._factory(model, replace(self._settings, devices=devices, adapters=adapters))

    def _record(
        self, key: str, error: EngineError, slot: EngineSlot | None = None
    ) -> GenerationFailure | None:
        """Record once how an engine ended.

        Returns:
            The model's failure if it failed to load or has no restart left; else None.
        """
        with self._counting:
            if slot is not None and slot.end_is_known:
                return self._failed.get(key)
            if slot is not None:
                slot.end_is_known = True
        if self._logs_ends:
            _log_end(error)
        with self._counting:
            self._ends[key] += 1
            if isinstance(error, EngineLoadFailed):
                self._failed[key] = GenerationFailure(reason="load_failed", detail=str(error))
            elif self._ends[key] > self._max_restarts:
                detail = str(error)
                if (ended := self._ends[key]) > 1:
                    detail = f"model {error.model!r}: {ended} engines ended; the last one: {error.why}"
                self._failed[key] = GenerationFailure(reason="engine_failed", detail=detail)
            return self._failed.get(key)


def _cause(error: Exception, slot: EngineSlot | None) -> BaseException:
    """Error by which an engine ended, which may be one in another thread that shared it."""
    return error if slot is None or slot.ended_by is None else slot.ended_by


class RequestStream:
    """Groups of requests, sent when engines have room; more can be added at any time.

    An engine that implements `JoinsBatches` receives all of its groups at once, another one group after
    group, in order of addition. Always close the stream, which ends all engines that are working.
    """

    def __init__(self, scheduler: RequestScheduler, width: Callable[[ModelRef], int]) -> None:
        self._scheduler, self._width = scheduler, width

    def add(self, groups: Sequence[RequestGroup]) -> list[int]:
        """Queue groups after those added before; return the number of each."""
        return [self._scheduler.add(each, engine_key(each.model), self._width(each.model)) for each in groups]

    def begin(self) -> None:
        """Start all requests for which engines have room now."""
        self._scheduler.begin()

    def next_answers(self) -> tuple[int, list[Answer]]:
        """Wait for the next answered group; return its number, and answer i to its request i.

        Raises:
            EngineDied, EngineTimeout: If an engine ended and may be started again. Raised after every group
                that began is finished and its answers were returned; no other group begins before that.
        """
        return self._scheduler.next_outcome()

    def answered(self) -> Iterator[tuple[int, list[Answer]]]:
        """Numbers and answers of the groups that are answered by now."""
        return self._scheduler.finished()

    def finish_begun(self) -> Iterator[tuple[int, list[Answer]]]:
        """Groups that had begun, as they are answered; all others are dropped."""
        return self._scheduler.finish_begun()

    def close(self) -> None:
        """End the engines that are working."""
        self._scheduler.close()


def _log_end(error: EngineError) -> None:
    """Log that an engine did not load, ended or timed out."""
    event = "load_failed" if isinstance(error, EngineLoadFailed) else "engine_ended"
    LOGGER.warning("%s", error, extra={"event": event, "model": error.model})


class KeptAnswers:
    """Charged answers of batches that an engine did not finish, by engine and request.

    Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._answers: dict[tuple[str, Request], Answer] = {}

    def keep(self, engine: str, answers: Mapping[Request, Answer]) -> None:
        """Store answers of an engine."""
        with self._lock:
            self._answers.update({(engine, request): answer for request, answer in answers.items()})

    def of(self, engine: str, requests: Sequence[Request]) -> dict[Request, Answer]:
        """Answers of an earlier engine to these requests, by request."""
        with self._lock:
            if not (known := self._answers):
                return {}
            return {each: known[engine, each] for each in requests if (engine, each) in known}

    def forget(self, engine: str, requests: Sequence[Request]) -> None:
        """Remove the answers of a finished batch, because its caller has received them."""
        with self._lock:
            for each in requests if self._answers else ():
                self._answers.pop((engine, each), None)

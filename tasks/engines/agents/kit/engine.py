"""Engine of an agent: each request is a separate run, answered as soon as it ends."""

import importlib
import json
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, cast

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.agents.kit.calls import Caller, CallFailed, Unreachable
from winnow.tasks.engines.agents.kit.replies import Reply, read_reply, spent_of
from winnow.tasks.engines.agents.kit.settings import COST, AgentSettings
from winnow.tasks.engines.errors import EngineDied, EngineError, EngineLoadFailed, one_sentence
from winnow.tasks.engines.protocol import (
    TOKEN_LIMIT,
    Answer,
    BatchUnfinished,
    Came,
    Completion,
    GenerationFailure,
    ModelRef,
    Request,
)
from winnow.tasks.engines.providers import EngineSettings
from winnow.tasks.engines.time_shares import TimeShares
from winnow.tasks.plugins.allowed_code import require_allowed
from winnow.tasks.text.canonical_json import sha256

Task = Callable[[], None]


class Seats:
    """A bounded number of threads, which start when they are needed.

    The threads are daemons, so that a run that cannot be aborted does not keep the process alive.

    Args:
        count: Maximum number of tasks at the same time.
        name: Name of the threads.
    """

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._changed = threading.Condition()  # guards everything below
        self._waiting: deque[Task] = deque()
        self._threads = self._idle = self._users = 0

    def submit(self, task: Task) -> None:
        """Run a task as soon as a thread is free; tasks begin in the order of submission.

        The task must not raise an exception.
        """
        with self._changed:
            self._waiting.append(task)
            if self._idle >= len(self._waiting):
                self._changed.notify()
            elif self._threads < self._count:
                self._threads += 1
                threading.Thread(target=self._work, name=self._name, daemon=True).start()

    def take(self) -> "Seats":
        """Register one more user of the threads."""
        with self._changed:
            self._users += 1
            return self

    def leave(self) -> bool:
        """Remove a user; return whether it was the last one, after which the threads end."""
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


def _take_seats(key: str, count: int) -> Seats:
    """Threads that all engines with this key share; release them with `_leave_seats`."""
    with _lock:
        if (key, count) not in _seats:
            _seats[key, count] = Seats(count, f"agent {key[:8]}")
        return _seats[key, count].take()


def _leave_seats(key: str, count: int) -> None:
    """Release shared threads; they end after the last user."""
    with _lock:
        if (key, count) in _seats and _seats[key, count].leave():
            del _seats[key, count]


FIRST_DELAY = 0.5
LONGEST_DELAY = 30.0
"""Seconds before a run is tried again: `FIRST_DELAY`, doubled after each attempt up to this maximum."""

NEEDS_COST = "needs_cost"
"""Key of a setup: whether each run must report its cost, because a limit on costs needs it."""

LONGEST_SHOWN = 80


def seats_key(model: ModelRef) -> str:
    """Key of the threads that an agent shares with its other combinations of `params`."""
    kept = {key: value for key, value in model.setup.items() if key not in ("params", NEEDS_COST)}
    return sha256([model.provider, kept])


class AgentEngine:
    """Run an agent for each request, at most `concurrency` runs at the same time.

    Args:
        model: The agent.
        settings: The agent's keys of the campaign's file.
        caller: Makes one attempt.
    """

    def __init__(self, model: ModelRef, settings: AgentSettings, caller: Caller) -> None:
        self._model, self._settings, self._caller = model, settings, caller
        self._key = seats_key(model)
        self._seats = _take_seats(self._key, settings.concurrency)
        self._shares = TimeShares()
        self._closed = threading.Event()
        self._has_left = False

    @property
    def joins(self) -> bool:
        """See `JoinsBatches`; True because runs are independent of each other."""
        return True

    @property
    def identity(self) -> str:
        """Provider of the agent, and its shortened command, URL or function."""
        shown = self._settings.shown
        shown = shown if len(shown) <= LONGEST_SHOWN else f"{shown[: LONGEST_SHOWN - 1]}…"
        return f"{self._model.provider} {shown}"

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer every request; see `Engine.generate`."""
        return self.generate_each(requests, lambda place, answer: None)

    def generate_each(self, requests: Sequence[Request], came: Came) -> list[Answer]:
        """Answer every request, and report each answer when it arrives; see `AnswersAsTheyCome`."""
        done: SimpleQueue[tuple[int, Answer | Exception]] = SimpleQueue()
        ended = threading.Event()
        for place, request in enumerate(requests):
            self._seats.submit(partial(self._run, place, request, done, ended))
        answers: dict[int, Answer] = {}
        first: Exception | None = None
        for _ in requests:
            place, found = done.get()
            if isinstance(found, Exception):
                ended.set()  # runs that have not begun are skipped
                first = first or found
            else:
                answers[place] = found
                came(place, found)
        if first is None:
            return [answers[place] for place in range(len(requests))]
        if answers and isinstance(first, EngineError):
            raise BatchUnfinished(answers, first) from first
        raise first

    def close(self) -> None:
        """End all runs immediately."""
        self._closed.set()
        self._caller.close()
        if not self._has_left:
            self._has_left = True
            _leave_seats(self._key, self._settings.concurrency)

    def _run(
        self,
        place: int,
        request: Request,
        done: "SimpleQueue[tuple[int, Answer | Exception]]",
        ended: threading.Event,
    ) -> None:
        if self._closed.is_set() or ended.is_set():
            done.put((place, self._gone()))
            return
        try:
            found: Answer | Exception = self._answer(request)
        except Exception as error:
            found = self._gone() if self._closed.is_set() else error
        done.put((place, found))

    def _gone(self) -> EngineDied:
        return EngineDied(self._model.name, "it was closed before it had answered")

    def _answer(self, request: Request) -> Answer:
        if request.continuations or request.sampling.choices:
            return GenerationFailure(reason="no_logprobs", detail="an agent returns no log-likelihoods")
        message, attempts = self._message(request), _Attempts(self._shares)
        for attempt in range(self._settings.retries + 1):
            try:
                with attempts:
                    reply = read_reply(self._caller.answer(message))
            except CallFailed as error:
                attempts.add(spent_of(error.said))
                if self._closed.is_set():
                    raise
                if not error.may_retry or attempt == self._settings.retries:
                    return self._failed(error, attempt + 1, attempts)
                delay = min(FIRST_DELAY * 2**attempt, LONGEST_DELAY)
                self._closed.wait(delay if error.wait is None else max(delay, error.wait))
            except ValueError as error:
                why = f"the agent's reply cannot be used: {error}"
                return self._without_output("bad_reply", why, attempts)
            else:
                attempts.add(reply)
                return self._checked(reply, attempts)
        raise AssertionError("the last attempt returns")

    def _message(self, request: Request) -> JsonObject:
        limits = self._settings.limits.model_dump(exclude_none=True)
        return {
            **json.loads(request.prompt),
            "params": dict(self._settings.params),
            "sampling": request.sampling.as_json(),
            "seed": request.seed,
            **({"limits": limits} if limits else {}),
        }

    def _failed(self, error: CallFailed, n_attempts: int, attempts: "_Attempts") -> Answer:
        times = f" (after {n_attempts} attempts)" if n_attempts > 1 else ""
        if isinstance(error, Unreachable):
            raise EngineDied(self._model.name, f"{error.detail}{times}") from error
        return self._without_output(error.reason, f"{error.detail}{times}", attempts)

    def _without_output(self, reason: str, detail: str, attempts: "_Attempts") -> Answer:
        """Outcome of a failed run: a failure, or an empty output with `on_failure: empty`."""
        if self._settings.on_failure == "empty":
            return attempts.completion(Reply(output="", trace=f"{reason}: {detail}"))
        return attempts.failure(reason, detail)

    def _checked(self, reply: Reply, attempts: "_Attempts") -> Answer:
        """Output of a run, unless the run exceeded `limits` (see `on_failure`).

        A run without a cost is a failure if `stopping.budget.cost` needs the cost.
        """
        if self._model.setup.get(NEEDS_COST) and reply.cost is None:
            return attempts.failure(
                "no_cost",
                "the run reported no cost, which stopping.budget.cost needs; let the agent report "
                f"`cost`, or set execution.prices.{self._model.name}",
            )
        limits, completion = self._settings.limits, attempts.completion(reply)
        tokens = completion.input_tokens + completion.output_tokens
        cost = (completion.reported or {}).get(COST, 0.0)
        for name, took, limit in (("tokens", tokens, limits.tokens), ("cost", cost, limits.cost)):
            if limit is not None and took > limit:
                why = f"the run reported {name}: {took:g}, above limits.{name}: {limit:g}"
                return self._without_output("over_limit", why, attempts)
        return completion


class _Attempts:
    """Time and cost of the attempts of one run."""

    def __init__(self, shares: TimeShares) -> None:
        self._shares = shares
        self._seconds = self._latency = 0.0
        self._input = self._output = 0
        self._cost: float | None = None
        self._begun = self._since = 0.0

    def __enter__(self) -> None:
        self._begun, self._since = self._shares.begin(), time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._latency = time.perf_counter() - self._since
        self._seconds += self._shares.end(self._begun)

    def add(self, reply: Reply | None) -> None:
        """Add the tokens and cost that an attempt reported."""
        if reply is not None:
            self._input += reply.input_tokens
            self._output += reply.output_tokens
            if reply.cost is not None:
                self._cost = (self._cost or 0.0) + reply.cost

    def completion(self, reply: Reply) -> Completion:
        """Output of the run, with the tokens, time and cost of all its attempts."""
        numbers = dict(reply.numbers or {})
        if self._cost is not None:
            numbers[COST] = self._cost
        return Completion(
            text=reply.output,
            finish_reason="stop",
            input_tokens=min(self._input, TOKEN_LIMIT - 1),
            output_tokens=min(self._output, TOKEN_LIMIT - 1),
            seconds=self._seconds,
            latency=self._latency,
            reasoning=reply.trace,
            reported=numbers or None,
        )

    def failure(self, reason: str, detail: str) -> GenerationFailure:
        """Failure of the run, with its tokens and cost if an attempt reported any."""
        took = bool(self._input or self._output or self._cost)
        return GenerationFailure(
            reason=reason, detail=detail, spent=self.completion(Reply(output="")) if took else None
        )


class Provider(NamedTuple):
    """Settings class and caller class of a provider's file."""

    settings: type[AgentSettings]
    caller: type


@cache
def provider_of(name: str) -> Provider:
    """Settings class and caller class of an agent's provider; imports its file."""
    module = importlib.import_module(f"winnow.tasks.engines.agents.{name}")
    return Provider(module.Settings, module.Caller)


def settings_of(provider: str, setup: Mapping[str, object]) -> AgentSettings:
    """Settings of an agent, from the setup in its `ModelRef`."""
    kept = {key: value for key, value in setup.items() if key != NEEDS_COST}
    return provider_of(provider).settings.of(kept)


def start(model: ModelRef, engine_settings: EngineSettings) -> AgentEngine:
    """Create the engine of an agent.

    Raises:
        EngineLoadFailed: If the agent cannot run on this machine.
        NotAllowed: If the user has not permitted its code.
    """
    settings = settings_of(model.provider, model.setup)
    try:
        settings.check()
        for _, act in settings.acts(Path.cwd()):
            require_allowed(*act)
        caller = cast(
            "Caller", provider_of(model.provider).caller(model.name, settings, engine_settings.log_folder)
        )
    except (OSError, ValueError) as error:
        why = str(error) if isinstance(error, ValueError) else one_sentence(error)
        raise EngineLoadFailed(model.name, why) from error
    return AgentEngine(model, settings, caller)

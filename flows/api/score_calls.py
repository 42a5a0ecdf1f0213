"""Call a program's scoring function: in parallel, with retries, plain or as a coroutine."""

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Generic, Literal, TypeVar

import numpy as np

from winnow.algorithms.errors import at_bound
from winnow.flows.api.call_checks import require_count
from winnow.tasks.errors import SpecError, WinnowError

Candidate = TypeVar("Candidate")
Example = TypeVar("Example")

OnError = Literal["raise", "unscored"]

AWAITED_AT_ONCE = 16
"""Number of concurrent calls of a coroutine function if `max_workers` is None."""

LONGEST_PAUSE = 30.0
"""Maximum pause between two attempts, in seconds. The first pause is 0.5 s; each further one is doubled."""


@dataclass(frozen=True, slots=True)
class FailedCall(Generic[Candidate, Example]):
    """A call of the scoring function that raised at every attempt; it counts as a missing score."""

    candidate: Candidate
    example: Example
    error: Exception


class ScoreCalls(Generic[Candidate, Example]):
    """Compute the scores of pairs (arm, example) by calls of a program's function.

    On exit, this context manager waits for running calls and cancels those that have not started.

    Args:
        score: The function, or a coroutine function; see `winnow.select`.
        candidates: Candidates, indexed by arm.
        examples: Examples, indexed by the second number of a pair.
        max_workers: Number of concurrent calls, at least 1; with 1, calls run in the caller's thread. None is
            1, or `AWAITED_AT_ONCE` for a coroutine function.
        retries: Maximum number of further attempts after a call raises, at least 0.
        on_error: "raise" to raise the last attempt's error, "unscored" to count it as a missing score.

    Raises:
        SpecError: If an argument is invalid.
    """

    def __init__(
        self,
        score: Callable[[Candidate, Example], object],
        candidates: Sequence[Candidate],
        examples: Sequence[Example],
        *,
        max_workers: int | None = None,
        retries: int = 0,
        on_error: OnError = "raise",
    ) -> None:
        if max_workers is None:
            max_workers = AWAITED_AT_ONCE if _is_coroutine_function(score) else 1
        require_count("max_workers", max_workers, at_least=1)
        require_count("retries", retries, at_least=0)
        if on_error not in ("raise", "unscored"):
            raise SpecError(f"on_error is {on_error!r}; give 'raise' or 'unscored'")
        self._score, self._candidates, self._examples = score, candidates, examples
        self._retries, self._on_error = retries, on_error
        self._workers = ThreadPoolExecutor(max_workers, "winnow-score") if max_workers > 1 else None
        self._loop = _Loop()
        self._begun: dict[tuple[int, int], Future[float]] = {}
        self.failed: list[FailedCall[Candidate, Example]] = []
        """Calls that count as missing scores because they raised, in order of completion."""

    def __enter__(self) -> "ScoreCalls[Candidate, Example]":
        return self

    def __exit__(self, *_: object) -> None:
        if self._workers is not None:
            self._workers.shutdown(cancel_futures=True)
        self._loop.close()

    @property
    def are_parallel(self) -> bool:
        """Whether calls run in parallel, in threads of their own."""
        return self._workers is not None

    def begin(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Submit the calls of pairs to the worker threads; do nothing if calls are not parallel."""
        if self._workers is None:
            return
        for arm, example in pairs:
            if (arm, example) not in self._begun:
                call = partial(copy_context().run, self._scored, arm, example)
                self._begun[arm, example] = self._workers.submit(call)

    def is_made(self, arm: int, example: int) -> bool:
        """Whether the call of a pair was submitted and ends without an error.

        Waits for a running call; cancels a call that has not started.
        """
        begun = self._begun.get((arm, example))
        return begun is not None and not begun.cancel() and begun.exception() is None

    def __call__(self, arm: int, example: int) -> float:
        """The score of a pair; NaN if it is missing.

        A score is missing if the function returned None, or if it raised and `on_error` is "unscored".

        Raises:
            WinnowError: If the function returned neither None nor a number in [0, 1].
            Exception: The function's error at the last attempt, if `on_error` is "raise".
        """
        begun = self._begun.pop((arm, example), None)
        return self._scored(arm, example) if begun is None else begun.result()

    def _scored(self, arm: int, example: int) -> float:
        candidate, given = self._candidates[arm], self._examples[example]
        for attempt in range(self._retries + 1):
            try:
                value = self._loop.awaited(self._score(candidate, given))
            except Exception as error:
                if attempt < self._retries:
                    time.sleep(min(2.0**attempt / 2, LONGEST_PAUSE))
                elif self._on_error == "raise":
                    raise
                else:
                    self.failed.append(FailedCall(candidate, given, error))
            else:
                return _as_score(value, arm, example)
        return np.nan


class _Loop:
    """An event loop in a separate thread, which starts with the first awaitable."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def awaited(self, value: object) -> object:
        """Wait for an awaitable and return its result; return any other value unchanged."""
        if not inspect.isawaitable(value):
            return value

        async def waits() -> tuple[object, BaseException | None]:
            try:
                return await value, None
            except (KeyboardInterrupt, SystemExit) as error:  # would end the loop while other calls wait
                return None, error

        found, ended = asyncio.run_coroutine_threadsafe(waits(), self._running()).result()
        if ended is not None:
            raise ended
        return found

    def close(self) -> None:
        """Cancel pending tasks and stop the loop; do nothing if it never started."""
        if self._loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(_cancel_others(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._starting:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="winnow-await", daemon=True
                )
                self._thread.start()
            return self._loop


async def _cancel_others() -> None:
    """Cancel all tasks of the running loop except this one, and wait until they end."""
    others = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _is_coroutine_function(score: object) -> bool:
    while isinstance(score, partial):
        score = score.func
    return any(map(inspect.iscoroutinefunction, (score, type(score).__call__)))


def _as_score(value: object, arm: int, example: int) -> float:
    """A returned value as a float; NaN for None. See `ScoreCalls.__call__` for the error."""
    if value is None:
        return np.nan
    if isinstance(value, (bool, int, float, np.integer, np.floating, np.bool_)) and -1 < value < 2:
        number = at_bound(float(value))  # cannot overflow, because the value is below 2
        if 0.0 <= number <= 1.0:
            return number
    raise WinnowError(
        f"the score of candidate {arm} on example {example} is {value!r}; return a number in [0, 1], or "
        "None for a missing score"
    )

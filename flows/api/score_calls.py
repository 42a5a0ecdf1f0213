"""Calls of a program's scoring function: in parallel, with retries, awaiting coroutines."""

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
"""Concurrent calls of a coroutine function unless `max_workers` is set."""

LONGEST_PAUSE = 30.0
"""Maximum seconds between two attempts at a call. The first pause is 0.5 s, each next one twice as long."""


@dataclass(frozen=True, slots=True)
class FailedCall(Generic[Candidate, Example]):
    """A call of the scoring function that raised at every attempt, and counts as no score."""

    candidate: Candidate
    example: Example
    error: Exception


class ScoreCalls(Generic[Candidate, Example]):
    """Scores of pairs of positions, by calls of a program's function; each pair is called once.

    Leaving this context manager waits for running calls and starts no other.

    Args:
        score: The function, or a coroutine function; see `winnow.select`.
        candidates: Candidates, to which the first position of a pair refers.
        examples: Examples, to which the second position of a pair refers.
        max_workers: Concurrent calls, at least 1; 1 calls in the caller's thread. None for 1, or for
            `AWAITED_AT_ONCE` if the function is a coroutine function.
        retries: Number of retries of a call that raises, at least 0.
        on_error: Whether the error of the last attempt is raised, or counts as no score.

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
        """Failed calls that count as no score, in order of completion."""

    def __enter__(self) -> "ScoreCalls[Candidate, Example]":
        return self

    def __exit__(self, *_: object) -> None:
        if self._workers is not None:
            self._workers.shutdown(cancel_futures=True)
        self._loop.close()

    @property
    def are_parallel(self) -> bool:
        """Whether calls run in parallel."""
        return self._workers is not None

    def begin(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Start the calls of pairs, as many as can run in parallel."""
        if self._workers is None:
            return
        for arm, example in pairs:
            if (arm, example) not in self._begun:
                call = partial(copy_context().run, self._scored, arm, example)
                self._begun[arm, example] = self._workers.submit(call)

    def is_made(self, arm: int, example: int) -> bool:
        """Whether a started call returns a score, or none, without an error; waits for its end."""
        begun = self._begun.get((arm, example))
        return begun is not None and not begun.cancel() and begun.exception() is None

    def __call__(self, arm: int, example: int) -> float:
        """The score of a pair; NaN if the function returned None, or a failure that counts as no score.

        Raises:
            WinnowError: If the function did not return a number in [0, 1].
            Exception: Raised by the function, unless it counts as no score.
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
                return _checked(value, arm, example)
        return np.nan


class _Loop:
    """An event loop in its own thread, started with the first coroutine."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def awaited(self, value: object) -> object:
        """The value, or the result of an awaitable; waits for it."""
        if not inspect.isawaitable(value):
            return value

        async def waits() -> tuple[object, BaseException | None]:
            try:
                return await value, None
            except (KeyboardInterrupt, SystemExit) as error:  # it would end the loop while others wait
                return None, error

        found, ended = asyncio.run_coroutine_threadsafe(waits(), self._running()).result()
        if ended is not None:
            raise ended
        return found

    def close(self) -> None:
        """Cancel pending tasks, and stop the loop, if it was started."""
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
    """Cancel all other tasks of the running loop, and wait for them."""
    others = [each for each in asyncio.all_tasks() if each is not asyncio.current_task()]
    for each in others:
        each.cancel()
    await asyncio.gather(*others, return_exceptions=True)


def _is_coroutine_function(score: object) -> bool:
    while isinstance(score, partial):
        score = score.func
    return any(map(inspect.iscoroutinefunction, (score, type(score).__call__)))


def _checked(value: object, arm: int, example: int) -> float:
    """A score as a float, NaN for None."""
    if value is None:
        return np.nan
    if isinstance(value, (bool, int, float, np.integer, np.floating, np.bool_)) and -1 < value < 2:
        number = at_bound(float(value))  # no whole number is too large for that
        if 0.0 <= number <= 1.0:
            return number
    raise WinnowError(
        f"the score of candidate {arm} on example {example} is {value!r}; return a number in [0, 1], or "
        "None if there is no score"
    )

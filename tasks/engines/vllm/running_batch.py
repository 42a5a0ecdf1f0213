"""Requests in progress of one vLLM engine; more can join at any time."""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.protocol import Answer, GenerationFailure
from winnow.tasks.engines.time_shares import TimeShares

Params = JsonObject
"""Keyword arguments of `vllm.SamplingParams`."""
TakeIn = Callable[[str, list[int], Params], GenerationFailure | None]
"""Callback that queues an encoded prompt in vLLM under our id; returns the reason if vLLM refuses it."""


Output = Any
"""A `vllm.RequestOutput`, which only `loaded_model` imports."""


@dataclass(slots=True, kw_only=True)
class _Group:
    answers: dict[int, Answer]
    size: int


@dataclass(frozen=True, slots=True)
class _Waiting:
    group: int
    place: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    share: float
    """Value that `TimeShares.begin` returned for the request."""
    at: float
    """Value of `time.perf_counter` when the request got a place."""


class RunningBatch:
    """Groups of requests in progress; a group is answered when all its outputs are complete.

    vLLM starts requests when others end, in order of arrival, and does not wait for the slowest of a group.
    Time is shared only among the requests that have a place, so waiting for a place costs a request nothing.

    Args:
        places: Maximum number of concurrent requests in vLLM.
        step: Makes the engine generate one token for each request; returns those that changed. No other code
            may do so while requests are in progress.
        take_in: Queues prompts.
        read: Converts an output, its share of the engine's time, and the seconds since it got a place, to an
            answer.
    """

    def __init__(
        self,
        step: Callable[[], Sequence[Output]],
        *,
        places: int,
        take_in: TakeIn,
        read: Callable[[Output, float, float], Answer],
    ) -> None:
        self._step, self._take_in, self._read = step, take_in, read
        self._taken_in, self._places = 0, places
        self._shares = TimeShares()
        self._groups: dict[int, _Group] = {}
        self._unfinished: dict[str, _Waiting] = {}
        self._queue: deque[str] = deque()  # ids of requests that wait for a place
        self._begun: dict[str, _Begun] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(
        self, number: int, prompts: Sequence[list[int] | GenerationFailure], params: Sequence[Params]
    ) -> None:
        """Add a group of encoded prompts; a failure stands for a prompt that could not be encoded."""
        answers: dict[int, Answer] = {}
        for place, (prompt, how) in enumerate(zip(prompts, params, strict=True)):
            id_ = f"text-{self._taken_in}"
            self._taken_in += 1
            refused = prompt if isinstance(prompt, GenerationFailure) else self._take_in(id_, prompt, how)
            if refused is None:
                self._unfinished[id_] = _Waiting(number, place)
                self._queue.append(id_)
            else:
                answers[place] = refused
        self._begin_next()
        self._groups[number] = _Group(answers=answers, size=len(prompts))

    def step(self) -> list[tuple[int, list[Answer]]]:
        """Generate one token for each request; return the complete groups, by number."""
        if self._unfinished:
            for output in self._step():
                if output.finished:
                    self._finish(output)
            self._begin_next()
        complete = [number for number, group in self._groups.items() if len(group.answers) == group.size]
        return [(number, self._taken(number)) for number in complete]

    def _begin_next(self) -> None:
        """Start the time of requests that got a place now."""
        while self._queue and len(self._begun) < self._places:
            self._begun[self._queue.popleft()] = _Begun(share=self._shares.begin(), at=time.perf_counter())

    def _finish(self, output: Output) -> None:
        id_ = output.request_id
        if id_ not in self._begun:  # vLLM had more room than it reports
            self._queue.remove(id_)
            self._begun[id_] = _Begun(share=self._shares.begin(), at=time.perf_counter())
        ended, begun = self._unfinished.pop(id_), self._begun.pop(id_)
        seconds, latency = self._shares.end(begun.share), time.perf_counter() - begun.at
        self._groups[ended.group].answers[ended.place] = self._read(output, seconds, latency)

    def _taken(self, number: int) -> list[Answer]:
        group = self._groups.pop(number)
        return [group.answers[place] for place in range(group.size)]

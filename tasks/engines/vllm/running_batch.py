"""The requests that one vLLM engine is at work on, which others join at any time."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.pool.time_shares import TimeShares
from winnow.tasks.engines.protocol import Answer, GenerationFailure

Params = JsonObject
"""Keyword arguments of `vllm.SamplingParams`."""
TakeIn = Callable[[str, list[int], Params], GenerationFailure | None]
"""Gives vLLM an encoded prompt by an id of ours; returns why it refuses it, where it does."""


Output = Any
"""A `vllm.RequestOutput`, which is imported in `model` alone."""


@dataclass(slots=True, kw_only=True)
class _Group:
    answers: dict[int, Answer]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    group: int
    place: int
    begun: float
    """Start of its share of the time, as `TimeShares.begin` returns it."""
    taken_in: float
    """Time at which it was taken in, by `time.perf_counter`."""


class RunningBatch:
    """Groups of texts that are being written, each answered once all of its texts are there.

    vLLM takes them up as others end, and does not wait for the slowest of a group.

    Args:
        step: Has the engine write a token of each text; returns those that changed. Nobody else may do so
            while this is not empty.
        take_in: Gives it prompts.
        read: Makes an answer of what it wrote, of its share of the engine's time and of the seconds that went
            by from when it was taken in.
    """

    def __init__(
        self,
        step: Callable[[], Sequence[Output]],
        *,
        take_in: TakeIn,
        read: Callable[[Output, float, float], Answer],
    ) -> None:
        self._step, self._take_in, self._read = step, take_in, read
        self._taken_in = 0
        self._shares = TimeShares()
        self._groups: dict[int, _Group] = {}
        self._running: dict[str, _Running] = {}

    def __bool__(self) -> bool:
        return bool(self._groups)

    def add(
        self, number: int, prompts: Sequence[list[int] | GenerationFailure], params: Sequence[Params]
    ) -> None:
        """Have a group join.

        Args:
            number: The group's number.
            prompts: Encoded, or why one cannot be.
            params: Sampling parameters of each prompt.
        """
        answers: dict[int, Answer] = {}
        for place, (prompt, how) in enumerate(zip(prompts, params, strict=True)):
            id_ = f"text-{self._taken_in}"
            self._taken_in += 1
            refused = prompt if isinstance(prompt, GenerationFailure) else self._take_in(id_, prompt, how)
            if refused is None:
                self._running[id_] = _Running(
                    group=number, place=place, begun=self._shares.begin(), taken_in=time.perf_counter()
                )
            else:
                answers[place] = refused
        self._groups[number] = _Group(answers=answers, size=len(prompts))

    def step(self) -> list[tuple[int, list[Answer]]]:
        """Let the engine write a token of each text; return the groups that are complete, by number."""
        if self._running:
            for output in self._step():
                if output.finished:
                    ended = self._running.pop(output.request_id)
                    seconds, latency = self._shares.end(ended.begun), time.perf_counter() - ended.taken_in
                    answer = self._read(output, seconds, latency)
                    self._groups[ended.group].answers[ended.place] = answer
        complete = [number for number, group in self._groups.items() if len(group.answers) == group.size]
        return [(number, self._taken(number)) for number in complete]

    def _taken(self, number: int) -> list[Answer]:
        group = self._groups.pop(number)
        return [group.answers[place] for place in range(group.size)]

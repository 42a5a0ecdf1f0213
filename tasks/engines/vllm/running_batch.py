"""The requests that one vLLM engine is at work on, which others join at any time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from winnow.tasks.engines.pool.time_shares import TimeShares
from winnow.tasks.engines.protocol import Answer, GenerationFailure

if TYPE_CHECKING:
    from vllm import LLM, RequestOutput

Params = dict[str, Any]
"""Keyword arguments of `vllm.SamplingParams`."""
Enqueue = Callable[[list[list[int]], list[Params]], "list[str | GenerationFailure]"]
"""Gives encoded prompts to vLLM and returns the id of each, or why it refuses it."""
Read = Callable[["RequestOutput", float], Answer]
"""Makes an answer of vLLM's output, and of the seconds that it took."""


@dataclass(slots=True, kw_only=True)
class _Group:
    answers: dict[int, Answer]
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    group: int
    place: int
    begun: float


class RunningBatch:
    """Groups of texts that are being written, each answered once all of its texts are there.

    vLLM takes them up as others end, and does not wait for the slowest of a group.

    Args:
        llm: The engine; nobody else may run it while this is not empty.
        enqueue: Gives it prompts.
        read: Reads what it wrote.
    """

    def __init__(self, llm: "LLM", *, enqueue: Enqueue, read: Read) -> None:
        self._llm, self._enqueue, self._read = llm, enqueue, read
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
            number: Its own.
            prompts: Encoded, or why one cannot be.
            params: How each is sampled.
        """
        answers: dict[int, Answer] = {}
        asked: dict[int, list[int]] = {}
        for place, prompt in enumerate(prompts):
            if isinstance(prompt, GenerationFailure):
                answers[place] = prompt
            else:
                asked[place] = prompt
        ids = self._enqueue(list(asked.values()), [params[place] for place in asked])
        for place, id_ in zip(asked, ids, strict=True):
            if isinstance(id_, GenerationFailure):
                answers[place] = id_
            else:
                self._running[id_] = _Running(group=number, place=place, begun=self._shares.begin())
        self._groups[number] = _Group(answers=answers, size=len(prompts))

    def step(self) -> list[tuple[int, list[Answer]]]:
        """Let the engine write a token of each text; return the groups that are complete, by their numbers."""
        if self._running:
            for output in self._llm.llm_engine.step():
                if output.finished:
                    ended = self._running.pop(output.request_id)
                    seconds = self._shares.end(ended.begun)
                    self._groups[ended.group].answers[ended.place] = self._read(output, seconds)
        complete = [number for number, group in self._groups.items() if len(group.answers) == group.size]
        return [(number, self._taken(number)) for number in complete]

    def _taken(self, number: int) -> list[Answer]:
        group = self._groups.pop(number)
        return [group.answers[place] for place in range(group.size)]

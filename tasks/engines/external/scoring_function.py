"""Engine that calls a program's own function, whose scores the judge `score` reads.

A campaign's file cannot name it. It exists while `winnow.select` runs a campaign with a database. The
function's values are stored and found again like outputs of models, and never computed twice.
"""

import math
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.protocol import Answer, Completion, GenerationFailure, ModelRef, Request

NO_SCORE = "no score"
"""Text of an answer if the function returned no score."""

NOT_CALLED = GenerationFailure(reason="not_called", detail="the function has raised an error")
"""Answer after the function has raised an error; no round is recorded with it."""

PROMPT = "{{ place }}: {{ input }}"
"""The "prompt" of an example: its position, which distinguishes it from all others, and its text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scoring:
    """Scoring function of a running program, with the errors that it raised."""

    score: Callable[[int, int], float]
    """Called with the positions of a candidate and an example; returns NaN for no score."""
    is_made: Callable[[int, int], bool]
    """Whether a call for these positions has begun and will return a score; that score is stored even if
    another call fails."""
    arms: Mapping[str, int]
    """Position of each candidate, by the name of its model."""
    raised: list[BaseException] = field(default_factory=list)
    """Errors that the function has raised. After the first error the function is not called again, but the
    scores that it has returned are still stored."""

    def pass_on(self) -> None:
        """Raise the function's first error, if it raised any."""
        if self.raised:
            raise self.raised[0]


_SCORING: ContextVar[Scoring | None] = ContextVar("scoring", default=None)


@contextmanager
def scoring_by(scoring: Scoring) -> Generator[None, None, None]:
    """Answer requests to this provider's models with a function's scores, until the block ends."""
    token = _SCORING.set(scoring)
    try:
        yield
    finally:
        _SCORING.reset(token)


def is_scoring() -> bool:
    """Whether a scoring function is set in this context."""
    return _SCORING.get() is not None


class FunctionEngine:
    """Engine that calls a function instead of a model."""

    identity = "function"

    def __init__(self, scoring: Scoring, model: ModelRef) -> None:
        self._scoring, self._arm = scoring, scoring.arms[model.name]

    def generate(self, requests: Sequence[Request]) -> list[Answer]:
        """Score each request by a call of the function; the text is the score."""
        return [self._answer(int(request.prompt.partition(":")[0])) for request in requests]

    def _answer(self, example: int) -> Answer:
        if self._scoring.raised and not self._scoring.is_made(self._arm, example):
            return NOT_CALLED
        started = time.perf_counter()
        try:
            score = self._scoring.score(self._arm, example)
        except BaseException as error:
            self._scoring.raised.append(error)
            return NOT_CALLED
        return Completion(
            text=NO_SCORE if math.isnan(score) else repr(score),
            finish_reason="stop",
            input_tokens=0,
            output_tokens=0,
            seconds=time.perf_counter() - started,
        )

    def close(self) -> None:
        """Do nothing, because the engine holds no resources."""


def start(model: ModelRef, _settings: object) -> FunctionEngine:
    """Create the engine that calls the program's function for a model.

    Raises:
        EngineLoadFailed: If no function is set in this context.
    """
    scoring = _SCORING.get()
    if scoring is None:
        raise EngineLoadFailed(
            model.name, "its scores come from a function of a program; run that program again"
        )
    return FunctionEngine(scoring, model)

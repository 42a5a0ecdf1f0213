"""Calls from a judge to a model, and the parsed replies."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from winnow.tasks.engines.protocol import Completion, GenerationFailure, ModelRef, Sampling

VERDICT_MISSING = "verdict_missing"
PATTERN_TIMEOUT = "pattern_timeout"
NO_PROBABILITIES = "no_probabilities"
PROMPT_FAILED = "prompt_failed"
TOO_FEW_JUDGES = "too_few_judges"

FALLS_BACK = frozenset({"no_logprobs", "bad_choices", "refused", NO_PROBABILITIES})
"""Failure reasons of a request for probabilities after which a text is requested instead."""


PresentationOrder = Literal["original", "swapped"]
"""Whether answer A of a duel is shown first or second; a single output is in the original order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """One call of a model. Equal calls have the same reply, for any output."""

    judge: str
    """Id of the calling judge."""
    model: ModelRef = field(hash=False)
    """The model to call."""
    prompt: str
    """The prompt as rendered; holds untrusted text."""
    sampling: Sampling
    """Settings for sampling the reply."""
    repeat: int = 0
    """0 and up: number of the repetition of the same question."""
    attempt: int = 0
    """0, then 1 and up if the previous reply was unreadable."""
    replicate: int = 0
    """Distinguishes calls whose replies are drawn again; 0 if decoding is greedy."""
    presentation_order: PresentationOrder = "original"
    """The order in which the prompt shows the answers of a duel."""
    seed: int | None = None
    """Seed of the request, in [0, 2**31); None if it follows from the campaign's seed and `replicate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """A model's reply, if only this part of a `Completion` was stored."""

    text: str
    """The text of the reply, untrusted."""
    choice_logprobs: Mapping[str, float] | None = None
    """See `Completion`."""
    finish_reason: str = "stop"
    """"stop", or "length" if the reply was cut off."""


Completed = Completion | JudgeReply

Reply = Completed | GenerationFailure
"""The answer to a call."""

Replies = Mapping[JudgeCall, Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReply:
    """A call and its parsed reply: a score, or the reason why there is none."""

    call: JudgeCall
    score: float | None = None
    """The score that was read, in [0, 1]."""
    reason: str | None = None

"""The calls by which a judge asks a model, and the replies as it reads them."""

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
"""Reasons for which a model that was requested probabilities is asked for a text."""


PresentationOrder = Literal["original", "swapped"]
"""Whether answer A of a duel is shown first or second; a single output is in the original order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """One call of a model. Equal calls have the same reply, whichever output they are about."""

    judge: str
    """Id of the judge that asks."""
    model: ModelRef = field(hash=False)
    """The model that is asked."""
    prompt: str
    """The prompt as rendered; holds untrusted text."""
    sampling: Sampling
    """Settings for sampling the reply."""
    repeat: int = 0
    """0 and up: the same question asked again."""
    attempt: int = 0
    """0, then 1 and up where the reply before could not be read."""
    replicate: int = 0
    """Tells apart calls whose replies are drawn again; 0 if decoding is greedy."""
    presentation_order: PresentationOrder = "original"
    """The order in which the prompt shows the answers of a duel."""
    seed: int | None = None
    """Seed of the request, in [0, 2**31); None if it follows from the campaign's seed and `replicate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """A model's reply, where only this part of a `Completion` was kept."""

    text: str
    """The text of the reply, untrusted."""
    choice_logprobs: Mapping[str, float] | None = None
    """See `Completion`."""
    finish_reason: str = "stop"
    """"stop", or "length" where the reply was cut off."""


Completed = Completion | JudgeReply

Reply = Completed | GenerationFailure
"""The answer to a call."""

Replies = Mapping[JudgeCall, Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReply:
    """A call, and what its reply was read as: a score or the reason why there is none."""

    call: JudgeCall
    score: float | None = None
    """The score that was read, in [0, 1]."""
    reason: str | None = None

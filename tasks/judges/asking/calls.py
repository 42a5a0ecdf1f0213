"""Calls from a judge to a model, and the replies with their scores."""

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
"""Reasons of failed requests for probabilities after which a text is requested instead."""


PresentationOrder = Literal["original", "swapped"]
"""Whether answer A of a duel is shown first or second; "original" for single outputs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCall:
    """One call of a model; equal calls have the same reply, for any output."""

    judge: str
    """Id of the calling judge."""
    model: ModelRef = field(hash=False)
    """The model to call."""
    prompt: str
    """The rendered prompt; contains untrusted text."""
    sampling: Sampling
    """Sampling settings of the reply."""
    repeat: int = 0
    """Number of the repetition of the same question, from 0."""
    attempt: int = 0
    """Number of the attempt, from 0; increased after each unreadable reply."""
    replicate: int = 0
    """Number that distinguishes calls whose replies are drawn separately; 0 if decoding is greedy."""
    presentation_order: PresentationOrder = "original"
    """Order in which the prompt shows the answers of a duel."""
    seed: int | None = None
    """Seed of the request, in [0, 2**31); None if it is derived from the campaign's seed and `replicate`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeReply:
    """A model's reply, for data that stored only these parts of a `Completion`."""

    text: str
    """The text of the reply, untrusted."""
    choice_logprobs: Mapping[str, float] | None = None
    """See `Completion`."""
    finish_reason: str = "stop"
    """"stop", or "length" if the reply was cut off."""


Completed = Completion | JudgeReply

Reply = Completed | GenerationFailure
"""A model's reply to a call, or its failure."""

Replies = Mapping[JudgeCall, Reply]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReply:
    """A call and the score that was read from its reply, or the reason why it has no score."""

    call: JudgeCall
    score: float | None = None
    """Score in [0, 1]; None if the reply has no score."""
    reason: str | None = None

"""Protocol of third-party pair judges; `tasks.judges.plugin` adapts them to `Judge`.

A pair judge calls no model itself. `calls` returns the missing calls; Winnow makes them, stores the replies,
and repeats until no call is missing. Then `verdict` is ready. A judge keeps no state between calls: the same
duel and replies give the same calls and the same verdict, so an interrupted run continues with the stored
replies.

A verdict has either an outcome or a reason, never both or neither.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from winnow.tasks.engines.protocol import ModelRef, Sampling
from winnow.tasks.judges.asking.calls import PresentationOrder, Reply
from winnow.tasks.judges.protocol import Duel, InvalidScore, check_words, checked_kind, checked_score


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgmentCall:
    """One call of a model, identified in a duel by judge, order, repeat and attempt."""

    judge: str
    """Id of the calling judge."""
    model: ModelRef = field(hash=False)
    """The model to call."""
    prompt: str
    """The rendered prompt; contains untrusted text."""
    sampling: Sampling
    """Sampling settings of the reply."""
    seed: int
    """Seed of the request, in [0, 2**31); 0 if decoding is greedy."""
    presentation_order: PresentationOrder
    """Order in which the prompt shows the answers."""
    repeat: int
    """Number of the repetition of the same question, from 0."""
    attempt: int
    """Number of the attempt, from 0; increased after each reply without a readable verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgment:
    """One call, with the verdict from its reply, or the reason why it has none."""

    judge: str
    presentation_order: PresentationOrder
    repeat: int
    attempt: int
    reply: str | None
    """The unprocessed reply; None if the engine returned no reply."""
    verdict: float | None
    """Preference for A, in [0, 1], whichever answer was shown first; None if the reply has no verdict."""
    reason: str | None
    """Reason why the verdict is missing; None if `verdict` is set."""

    def __post_init__(self) -> None:
        check_words(self.reason, reply=self.reply)
        if (self.verdict is None) == (self.reason is None):
            raise InvalidScore(
                f"a judgment has a verdict or a reason, got verdict={self.verdict!r}, reason={self.reason!r}"
            )
        if self.verdict is not None:
            object.__setattr__(self, "verdict", checked_score(self.verdict, "a judgment's verdict"))


@dataclass(frozen=True, slots=True, kw_only=True)
class PairVerdict:
    """Verdict of the whole judge on a duel."""

    outcome: float | None = None
    """1 if A is preferred, 0 if B is, 0.5 for a tie; numbers in between for probabilities and means."""
    reason: str | None = None
    """Reason why the outcome is missing; None if `outcome` is set."""
    answer: str | None = None
    """Short note for users on how the outcome was derived."""
    detail: str | None = None
    """The reason as a sentence, with more detail."""
    judgments: tuple[Judgment, ...] = ()
    """All calls with their replies, earlier attempts included."""

    def __post_init__(self) -> None:
        check_words(self.reason, answer=self.answer, detail=self.detail)
        for judgment in self.judgments:
            checked_kind(judgment, Judgment)
        if (self.outcome is None) == (self.reason is None):
            raise InvalidScore(
                f"a verdict has an outcome or a reason, got outcome={self.outcome!r}, reason={self.reason!r}"
            )
        if self.outcome is not None:
            object.__setattr__(self, "outcome", checked_score(self.outcome, "an outcome"))


class PairJudge(Protocol):
    """Interface of a third-party judge that prefers one of two answers.

    An answer or a reply never causes an exception.
    """

    @property
    def models(self) -> Sequence[ModelRef]:
        """The models that the judge calls; empty for rules."""

    @property
    def identity(self) -> Mapping[str, object]:
        """JSON values that verdicts depend on and the spec lacks, such as a template's text."""

    @property
    def is_deterministic(self) -> bool:
        """Whether the same two answers always get the same verdict, in either order and for any seed."""

    def calls(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> Sequence[JudgmentCall]:
        """Calls that are still missing, given the replies so far; empty if the verdict is ready.

        Calls must depend only on the duel and the replies, and on no clock. `winnow db check` computes them
        again with the stored replies, and reports calls that differ as wrong, or as impossible to check.
        """

    def verdict(self, duel: Duel, replies: Mapping[JudgmentCall, Reply]) -> PairVerdict:
        """Verdict on a duel; called when `calls` returns no calls."""

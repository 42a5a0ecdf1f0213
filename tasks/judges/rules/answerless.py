"""The option `no_answer`, for any judge: whether an output that holds no answer is wrong or unscored."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.judges.asking.calls import JudgeCall, Replies
from winnow.tasks.judges.protocol import (
    INVALID_SCORE,
    JUDGE_FAILED,
    UNREADABLE_TARGET,
    InvalidScore,
    Judge,
    Sample,
    Verdict,
    ahead,
    calls_of,
    checked_kind,
    models_of,
    told,
    try_out,
)
from winnow.tasks.judges.target_forms import Use, with_forms
from winnow.tasks.plugins.entry_points import PluginFailed

VERSION = 1
"""Raised when a verdict can change; see `tasks.judges.catalogue`."""

NoAnswer = Literal["wrong", "unscored"]

ANSWERLESS = frozenset({"no_answer", "no_number", "no_choice"})
"""Reasons that are the output's fault. A missing target or a slow pattern is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerlessJudge:
    """Marks the outputs that another judge finds no answer in, and says how they count."""

    inner: Judge
    """Judges the output; one of `ANSWERLESS` is its reason where it finds no answer."""
    forms: Use = "never"
    """Whether it is shown targets in their other forms, where the campaign has that rule."""
    no_answer: NoAnswer
    """Wrong by default: who was asked and gives no answer did not solve the example, and leaving it out
    would raise the mean of whoever answers only what it knows."""

    def try_out(self) -> None:
        """See `tasks.judges.protocol.try_out`."""
        try_out(self.inner)

    def ahead(self, samples: Sequence[Sample]) -> None:
        """See `tasks.judges.protocol.ahead`."""
        ahead(self.inner, [self._shown(sample) for sample in samples])

    @property
    def models(self) -> Sequence[ModelRef]:
        """See `Judge`."""
        return models_of(self.inner)

    def calls(self, sample: Sample, replies: Replies) -> Sequence[JudgeCall]:
        """See `Judge`."""
        return calls_of(self.inner, sample, replies)

    def told(self, replies: Replies) -> Self:
        """See `Judge`."""
        return replace(self, inner=told(self.inner, replies))

    def judge(self, sample: Sample) -> Verdict:
        """The inner judge's verdict; marked, and with `wrong` a zero, where it found no answer.

        Every judge is asked through here, so this is where what is no verdict becomes a reason, and what a
        plug-in raises.
        """
        try:
            verdict = checked_kind(self.inner.judge(self._shown(sample)), Verdict)
            if verdict.reason == UNREADABLE_TARGET and sample.has_forms and self.forms == "if unreadable":
                verdict = checked_kind(self.inner.judge(_in_all_forms(sample)), Verdict)
        except InvalidScore as error:
            return Verdict.unscored(INVALID_SCORE, detail=str(error))
        except PluginFailed as failed:
            return Verdict.unscored(JUDGE_FAILED, detail=failed.what)
        if verdict.reason not in ANSWERLESS:
            return verdict
        if self.no_answer == "unscored":
            return replace(verdict, no_answer=True)
        return Verdict(score=0.0, answer=verdict.answer, no_answer=True)

    def _shown(self, sample: Sample) -> Sample:
        return _in_all_forms(sample) if sample.has_forms and self.forms == "always" else sample


def _in_all_forms(sample: Sample) -> Sample:
    return replace(sample, targets=with_forms(sample.targets), has_forms=False)

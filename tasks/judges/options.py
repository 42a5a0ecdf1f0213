"""Options of every judge of outputs: `extract` and `no_answer`.

`extract` first finds the answer in the output, and then only this answer is judged. `no_answer` sets whether
an output without an answer is wrong or unscored.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import regex

from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.judges.asking.calls import JudgeCall, Replies
from winnow.tasks.judges.protocol import UNREADABLE_TARGET, Judge, Sample, Verdict, verdict_of
from winnow.tasks.judges.target_forms import Use, with_forms
from winnow.tasks.text.patterns import last_answer

NO_ANSWER_VERSION = 1
EXTRACT_VERSION = 1
"""Version of the option's code, increased when a verdict can change; see `tasks.spec.judge_tree`."""

NoAnswer = Literal["wrong", "unscored"]

ANSWERLESS = frozenset({"no_answer", "no_number", "no_choice"})
"""Reasons that are the output's fault, unlike a missing target or a slow pattern."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WithOptions(Judge[Sample]):
    """Judge the extracted answer by another judge; count outputs without an answer."""

    inner: Judge[Sample]
    """Judge of the extracted answer, which it receives as the whole output."""
    pattern: regex.Pattern[str] | None = None
    """The last match of this pattern is the answer: its group 1 if it has one, otherwise all of it."""
    forms: Use = "never"
    """When the inner judge gets targets in their other forms, if the campaign uses `target_forms`."""
    no_answer: NoAnswer
    """"wrong" by default: an output without an answer did not solve the example, and excluding it would raise
    the mean of a candidate that answers only easy examples."""

    @property
    def models(self) -> Sequence[ModelRef]:
        """See `Judge`."""
        return self.inner.models

    @property
    def parts(self) -> Sequence[Judge[Sample]]:
        """The inner judge."""
        return (self.inner,)

    def try_out(self) -> None:
        """See `Judge`."""
        self.inner.try_out()

    def ahead(self, subjects: Sequence[Sample], /) -> None:
        """See `Judge`."""
        found = (self._extracted(self._shown(subject)) for subject in subjects)
        self.inner.ahead([each for each in found if isinstance(each, Sample)])

    def calls(self, subject: Sample, replies: Replies, /) -> Sequence[JudgeCall]:
        """See `Judge`."""
        found = self._extracted(subject)
        return self.inner.calls(found, replies) if isinstance(found, Sample) else ()

    def told(self, replies: Replies, /) -> Self:
        """See `Judge`."""
        return replace(self, inner=self.inner.told(replies))

    def judge(self, subject: Sample, /) -> Verdict:
        """Verdict of the inner judge; an output without an answer is marked, and scores 0 if "wrong"."""
        verdict = verdict_of(lambda: self._judged(self._shown(subject)))
        if verdict.reason == UNREADABLE_TARGET and subject.has_forms and self.forms == "if unreadable":
            verdict = verdict_of(lambda: self._judged(_in_all_forms(subject)))
        if verdict.reason not in ANSWERLESS:
            return verdict
        if self.no_answer == "unscored":
            return replace(verdict, no_answer=True)
        return Verdict(score=0.0, answer=verdict.answer, no_answer=True)

    def _judged(self, sample: Sample) -> Verdict:
        found = self._extracted(sample)
        return self.inner.judge(found) if isinstance(found, Sample) else found

    def _extracted(self, sample: Sample) -> Sample | Verdict:
        """The sample with its answer as output, or a verdict if the pattern finds no answer."""
        if self.pattern is None:
            return sample
        try:
            answer = last_answer(self.pattern, sample.output)
        except TimeoutError:
            return Verdict.unscored("extract_timeout")
        return Verdict.unscored("no_answer") if answer is None else replace(sample, output=answer)

    def _shown(self, sample: Sample) -> Sample:
        return _in_all_forms(sample) if sample.has_forms and self.forms == "always" else sample


def _in_all_forms(sample: Sample) -> Sample:
    return replace(sample, targets=with_forms(sample.targets), has_forms=False)

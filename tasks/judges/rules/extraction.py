"""The option `extract`, for any judge: find the answer in the output first, then judge the answer alone."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import regex

from winnow.tasks.engines.protocol import ModelRef
from winnow.tasks.judges.asking.calls import JudgeCall, Replies
from winnow.tasks.judges.protocol import Judge, Sample, Verdict, ahead, calls_of, models_of, told, try_out
from winnow.tasks.text.patterns import last_answer

VERSION = 1
"""Raised when a verdict can change; see `tasks.judges.catalogue`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractingJudge:
    """Passes the last match of a pattern to another judge."""

    pattern: regex.Pattern[str]
    """Its group 1, if it has one, is the answer; otherwise the whole match is."""
    inner: Judge
    """Judges the answer as if it were the whole output."""

    def try_out(self) -> None:
        """See `tasks.judges.protocol.try_out`."""
        try_out(self.inner)

    def ahead(self, samples: Sequence[Sample]) -> None:
        """See `tasks.judges.protocol.ahead`."""
        found = map(self._extracted, samples)
        ahead(self.inner, [each for each in found if isinstance(each, Sample)])

    @property
    def models(self) -> Sequence[ModelRef]:
        """See `Judge`."""
        return models_of(self.inner)

    def calls(self, sample: Sample, replies: Replies) -> Sequence[JudgeCall]:
        """See `Judge`."""
        found = self._extracted(sample)
        return calls_of(self.inner, found, replies) if isinstance(found, Sample) else ()

    def told(self, replies: Replies) -> Self:
        """See `Judge`."""
        return replace(self, inner=told(self.inner, replies))

    def judge(self, sample: Sample) -> Verdict:
        """Judge the answer; an output without one has the reason no_answer."""
        found = self._extracted(sample)
        return self.inner.judge(found) if isinstance(found, Sample) else found

    def _extracted(self, sample: Sample) -> Sample | Verdict:
        """The sample with its answer for an output, or the verdict on one that holds none."""
        try:
            answer = last_answer(self.pattern, sample.output)
        except TimeoutError:
            return Verdict.unscored("extract_timeout")
        return Verdict.unscored("no_answer") if answer is None else replace(sample, output=answer)

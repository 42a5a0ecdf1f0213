"""The option `extract`, for any judge: find the answer in the output first, then judge the answer alone."""

from dataclasses import dataclass, replace

import regex

from winnow.tasks.judges.protocol import Judge, Sample, Verdict, try_out
from winnow.tasks.judges.rules.patterns import last_answer

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

    def judge(self, sample: Sample) -> Verdict:
        """Judge the answer; an output without one has the reason no_answer."""
        try:
            answer = last_answer(self.pattern, sample.output)
        except TimeoutError:
            return Verdict.unscored("extract_timeout")
        if answer is None:
            return Verdict.unscored("no_answer")
        return self.inner.judge(replace(sample, output=answer))

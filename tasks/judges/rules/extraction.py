"""The option `extract`, for any judge: find the answer in the output first, then judge the answer alone."""

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from winnow.tasks.judges.protocol import Judge, Verdict
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

    def judge(self, output: str, targets: Sequence[str]) -> Verdict:
        """Judge the answer; an output without one has the reason no_answer."""
        try:
            answer = last_answer(self.pattern, output)
        except TimeoutError:
            return Verdict.unscored("extract_timeout")
        return Verdict.unscored("no_answer") if answer is None else self.inner.judge(answer, targets)

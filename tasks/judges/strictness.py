"""The option `no_answer`, for any judge: whether an output without a readable answer is unscored or wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.judges.protocol import Judge, Verdict

VERSION = 1
"""Raised when a verdict can change; see `tasks.judges.catalogue`."""

NoAnswer = Literal["unscored", "wrong"]

UNREADABLE = frozenset({"no_answer", "no_number", "no_choice"})
"""Reasons that are the output's fault. A missing target or a slow pattern is not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictJudge:
    """Counts an output that another judge finds no answer in as wrong."""

    inner: Judge
    """Judges the output."""

    def judge(self, output: str, targets: Sequence[str]) -> Verdict:
        """The inner judge's verdict, or a zero where it found nothing to judge."""
        verdict = self.inner.judge(output, targets)
        return Verdict.scored(False, verdict.answer) if verdict.reason in UNREADABLE else verdict

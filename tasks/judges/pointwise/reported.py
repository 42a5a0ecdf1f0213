"""Judge for numbers that an agent reports about its run, such as its steps or its cost."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, ClassVar

from pydantic import Field

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.protocol import INVALID_SCORE, Judge, Sample, Scale, Verdict

NOT_REPORTED = "not_reported"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedJudge(Judge[Sample]):
    """A number that the agent reported: one of its metrics, or its cost."""

    scale: ClassVar = Scale(unit="number within `range`", formula="(number - low) / (high - low)")

    number: Annotated[str, Field(min_length=1)]
    """Name of the metric, or `cost`."""
    range: Annotated[Sequence[float], Field(min_length=2, max_length=2)]
    """Lowest and highest number that counts; they score 0 and 1, and a number beyond them is unscored."""

    def __post_init__(self) -> None:
        low, high = self.range
        if not (isfinite(low) and isfinite(high) and low < high):
            raise JudgeError(f"must be [low, high] with low below high, got {[low, high]}", "judge.range")

    def judge(self, sample: Sample) -> Verdict:
        """The number's place in the range; a reason if it was not reported or is beyond the range."""
        if (number := sample.reported.get(self.number)) is None:
            return Verdict.unscored(NOT_REPORTED, detail=f"the agent reported no {self.number!r}")
        low, high = self.range
        if not low <= number <= high:
            why = f"{self.number} is {number:g}, which is not from {low:g} to {high:g}"
            return Verdict.unscored(INVALID_SCORE, f"{number:g}", detail=f"{why}; widen range")
        return Verdict(score=(number - low) / (high - low), answer=f"{number:g}")

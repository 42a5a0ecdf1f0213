"""Judges that read an existing score: from the data, an agent's report, or the output."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Annotated, ClassVar

import regex
from pydantic import Field

from winnow.tasks.dotted_names import value_of
from winnow.tasks.engines.external.scoring_function import NO_SCORE
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.protocol import INVALID_SCORE, SHARE, Judge, Sample, Scale, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJudge(Judge[Sample]):
    """Read the score that the example holds for the candidate's model."""

    scale: ClassVar = SHARE

    scores: str = "scores"
    """Field of the example with an object of scores in [0, 1], by the names of models."""

    def judge(self, sample: Sample) -> Verdict:
        """Score that the data holds for the model; unscored if missing or not in [0, 1]."""
        found = value_of(sample.fields, self.scores)
        score = found.get(sample.candidate.get("model")) if isinstance(found, Mapping) else None
        if isinstance(score, bool | int | float) and 0.0 <= score <= 1.0:
            return Verdict(score=float(score))
        return Verdict.unscored("no_recorded_score")


NOT_REPORTED = "not_reported"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedJudge(Judge[Sample]):
    """Scale a number that the agent reported: one of its metrics, or its cost."""

    scale: ClassVar = Scale(unit="number within `range`", formula="(number - low) / (high - low)")

    number: Annotated[str, Field(min_length=1)]
    """Name of the metric, or `cost`."""
    range: Annotated[Sequence[float], Field(min_length=2, max_length=2)]
    """Numbers that score 0 and 1; a number outside this range is unscored."""

    def __post_init__(self) -> None:
        low, high = self.range
        if not (isfinite(low) and isfinite(high) and low < high):
            raise JudgeError(f"must be [low, high] with low below high, got {[low, high]}", "judge.range")

    def judge(self, sample: Sample) -> Verdict:
        """Scale the reported number to [0, 1] by `range`; unscored if missing or outside."""
        if (number := sample.reported.get(self.number)) is None:
            return Verdict.unscored(NOT_REPORTED, detail=f"the agent reported no {self.number!r}")
        low, high = self.range
        if not low <= number <= high:
            why = f"{self.number} is {number:g}, which is outside [{low:g}, {high:g}]"
            return Verdict.unscored(INVALID_SCORE, f"{number:g}", detail=f"{why}; widen range")
        return Verdict(score=(number - low) / (high - low), answer=f"{number:g}")


_SCORE = regex.compile(r"[+-]?(\d{1,20}(\.\d{0,40})?|\.\d{1,40})(e[+-]?\d{1,3})?", regex.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreJudge(Judge[Sample]):
    """Read the output as a score: a number from 0 to 1, and no other text."""

    scale: ClassVar = SHARE

    def judge(self, sample: Sample) -> Verdict:
        """Score that the output states; unscored if it is no number from 0 to 1, or "no score"."""
        said = sample.output.strip()
        if said == NO_SCORE:
            return Verdict.unscored("no_score")
        if not _SCORE.fullmatch(said):
            return Verdict.unscored("no_number")
        if not 0.0 <= (score := float(said)) <= 1.0:
            return Verdict.unscored(INVALID_SCORE, said, detail=f"{said} is not from 0 to 1")
        return Verdict(score=score + 0.0, answer=said)

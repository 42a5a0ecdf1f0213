"""Judge of scores that stand in the data already."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from winnow.tasks.dotted_names import value_of
from winnow.tasks.judges.protocol import SHARE, Judge, Sample, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedJudge(Judge[Sample]):
    """The example holds a score for the candidate's model, given by somebody else."""

    scale: ClassVar = SHARE

    scores: str = "scores"
    """Field of the example with an object of scores in [0, 1], by the names of models."""

    def judge(self, sample: Sample) -> Verdict:
        """Return the score in the data; no score if there is none for this model."""
        found = value_of(sample.fields, self.scores)
        score = found.get(sample.candidate.get("model")) if isinstance(found, Mapping) else None
        if isinstance(score, bool | int | float) and 0.0 <= score <= 1.0:
            return Verdict(score=float(score))
        return Verdict.unscored("no_recorded_score")

"""Judge for outputs that are scores themselves, such as those of a scoring program."""

from dataclasses import dataclass
from typing import ClassVar

import regex

from winnow.tasks.engines.external.scoring_function import NO_SCORE
from winnow.tasks.judges.protocol import INVALID_SCORE, SHARE, Judge, Sample, Verdict

_SCORE = regex.compile(r"[+-]?(\d{1,20}(\.\d{0,40})?|\.\d{1,40})(e[+-]?\d{1,3})?", regex.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreJudge(Judge[Sample]):
    """The output is the score: a number from 0 to 1, and nothing else."""

    scale: ClassVar = SHARE

    def judge(self, sample: Sample) -> Verdict:
        """The number; no score if the output says so, or is not a valid number."""
        said = sample.output.strip()
        if said == NO_SCORE:
            return Verdict.unscored("no_score")
        if not _SCORE.fullmatch(said):
            return Verdict.unscored("no_number")
        if not 0.0 <= (score := float(said)) <= 1.0:
            return Verdict.unscored(INVALID_SCORE, said, detail=f"{said} is not from 0 to 1")
        return Verdict(score=score + 0.0, answer=said)

"""Equality, character for character."""

from dataclasses import dataclass
from typing import ClassVar

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactJudge(Judge[Sample]):
    """The output equals a target, character for character."""

    scale: ClassVar = RIGHT_OR_WRONG

    strip: bool = True
    """Whether white space around both is ignored."""

    def judge(self, sample: Sample) -> Verdict:
        """One if the output is a target, else zero."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        answer = self._bare(sample.output)
        return Verdict.scored(any(answer == self._bare(target) for target in sample.targets), answer)

    def _bare(self, text: str) -> str:
        return text.strip() if self.strip else text

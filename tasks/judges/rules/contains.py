"""The targets as parts of the output."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainsJudge(Judge[Sample]):
    """The output contains a target, or all of them, as they are written."""

    scale: ClassVar = RIGHT_OR_WRONG

    match: Literal["any", "all"] = "any"
    """Whether one target is enough or every one is needed."""
    ignore_case: bool = False
    """Whether upper and lower case are the same."""

    def judge(self, sample: Sample) -> Verdict:
        """One if enough targets are in the output, else zero; the answer is the first one found."""
        targets = sample.targets
        if not targets:
            return Verdict.unscored("no_target")
        if "" in targets:  # it is part of every output
            return Verdict.unscored("unreadable_target")
        text = self._folded(sample.output)
        found = [target for target in targets if self._folded(target) in text]
        enough = len(found) == len(targets) if self.match == "all" else bool(found)
        return Verdict.scored(enough, found[0] if found else None)

    def _folded(self, text: str) -> str:
        return text.casefold() if self.ignore_case else text

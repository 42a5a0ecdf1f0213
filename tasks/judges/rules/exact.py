"""Equality, character for character."""

from collections.abc import Sequence
from dataclasses import dataclass

from winnow.tasks.judges.protocol import Verdict

VERSION = 1
"""Raised when a verdict can change; see `tasks.judges.catalogue`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactJudge:
    """The output equals a target, character for character."""

    strip: bool = True
    """Whether white space around both is ignored."""

    def judge(self, output: str, targets: Sequence[str]) -> Verdict:
        """One if the output is a target, else zero."""
        if not targets:
            return Verdict.unscored("no_target")
        answer = self._bare(output)
        return Verdict.scored(any(answer == self._bare(target) for target in targets), answer)

    def _bare(self, text: str) -> str:
        return text.strip() if self.strip else text

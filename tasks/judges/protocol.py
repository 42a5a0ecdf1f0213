"""What a judge is, and what it answers.

A verdict is a score or a reason, never both and never neither. The reasons of the built-in judges:

* no_answer          the pattern of `extract` or of the judge is not in the output
* extract_timeout    the `extract` pattern took too long on this output
* pattern_timeout    the judge's own pattern took too long on this output
* no_number          the output holds no number that can be read
* no_choice          the output names no option, or several without saying which
* no_target          the example has no target to compare with
* unreadable_target  the example has targets, but none that this judge can read
* invalid_score      a plug-in gave what is no number in [0, 1], such as NaN, or no verdict
* judge_failed       a plug-in raised an exception; see `tasks.plugins.entry_points`

An output with the reason no_answer, no_number or no_choice holds no answer: it counts as wrong, unless the
judge's option `no_answer` is "unscored"; see `tasks.judges.rules.answerless`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

from winnow.tasks.judges.scores import InvalidScore, check_words, checked_score


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One judge's opinion of one output."""

    score: float | None = None
    """In [0, 1]; None when the output could not be judged, which is not a zero."""
    answer: str | None = None
    """What was read from the output and compared; None when nothing was."""
    reason: str | None = None
    """Why there is no score, a short name such as "no_number"; None when there is one."""
    detail: str | None = None
    """The reason in a sentence, where there is more to say."""
    no_answer: bool = False
    """Whether the output holds no answer, however that is scored; set by `create_judge`, not by a judge."""

    def __post_init__(self) -> None:
        check_words(self.reason, answer=self.answer, detail=self.detail)
        if (self.score is None) == (self.reason is None):
            raise InvalidScore(
                f"a verdict has a score or a reason, got score={self.score!r}, reason={self.reason!r}"
            )
        if self.score is not None:
            object.__setattr__(self, "score", checked_score(self.score, "a score"))

    @classmethod
    def scored(cls, right: bool, answer: str | None) -> Self:
        """One if the answer is right, zero if it is wrong."""
        return cls(score=float(right), answer=answer)

    @classmethod
    def unscored(cls, reason: str, answer: str | None = None, *, detail: str | None = None) -> Self:
        """No score, and why."""
        return cls(reason=reason, answer=answer, detail=detail)


class Judge(Protocol):
    """Compares an output with the targets of its example.

    A judge keeps nothing between calls: the same output and targets get the same verdict. The output is
    untrusted text of any length and content; a judge raises nothing because of it. Only a time limit on
    a user's own pattern depends on the machine.
    """

    def judge(self, output: str, targets: Sequence[str]) -> Verdict:
        """Judge one output; with several targets it is enough to be right about one of them."""
        ...

r"""Match outputs by the user's own pattern, in one of three ways.

* The pattern contains `{target}`: the output is right if the pattern, with the target's text inserted
  literally, is found anywhere in it. Example: `\bversion {target}\b`.
* The pattern does not contain `{target}`: group 1 of the last match (the whole match if the pattern has no
  group) is the answer. It is right if it equals a target, ignoring white space around both. Example: `answer:
  (\w+)`.
* The pattern also has no group, and is found in none of the targets, ignoring case. No match could equal a
  target, so the output is right if the pattern is found in it. Example: `(?i)\bI can't help\b` for the target
  "refusal".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import regex

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Verdict
from winnow.tasks.text.patterns import TARGET, TIMEOUT_SECONDS, compiled, last_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class RegexJudge(Judge[Sample]):
    """The pattern is found in the output, or the last text that it captures is a target."""

    scale: ClassVar = RIGHT_OR_WRONG

    pattern: str
    """A regular expression of the `regex` package; `{target}` stands for the target, taken literally."""
    ignore_case: bool = False
    """Whether upper and lower case count as the same, in the pattern and between answer and target."""

    def __post_init__(self) -> None:
        compiled(self.pattern.replace(TARGET, regex.escape("a target")), self.ignore_case)

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if the pattern is found or its answer is a target, else 0; see the module."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        try:
            is_enough = TARGET in self.pattern or self.is_found_alone(sample.targets)
            judge = self._found if is_enough else self._captured
            return judge(sample.output, sample.targets)
        except (TimeoutError, MemoryError):
            return Verdict.unscored("pattern_timeout")

    def is_found_alone(self, targets: Sequence[str]) -> bool:
        """Whether it is enough to find the pattern, because no match of it could be a target.

        Raises:
            TimeoutError, MemoryError: If matching the targets takes too long or too much memory.
        """
        pattern = compiled(self.pattern.replace(TARGET, ""), ignore_case=True)
        if TARGET in self.pattern or pattern.groups:
            return False
        return not any(pattern.search(each, timeout=TIMEOUT_SECONDS) for each in targets)

    def _found(self, output: str, targets: Sequence[str]) -> Verdict:
        for target in targets:
            try:
                pattern = compiled(self.pattern.replace(TARGET, regex.escape(target)), self.ignore_case)
            except ValueError:  # some targets are invalid in some patterns, for example after a backslash
                return Verdict.unscored("unreadable_target")
            if found := pattern.search(output, timeout=TIMEOUT_SECONDS):
                return Verdict.scored(True, found.group())
        return Verdict.scored(False, None)

    def _captured(self, output: str, targets: Sequence[str]) -> Verdict:
        answer = last_answer(compiled(self.pattern, self.ignore_case), output)
        if answer is None:
            return Verdict.unscored("no_answer")
        return Verdict.scored(any(self._same(answer, target.strip()) for target in targets), answer)

    def _same(self, answer: str, target: str) -> bool:
        return answer.casefold() == target.casefold() if self.ignore_case else answer == target

"""The scorers of Inspect 0.3.285 that follow a rule, with its verdicts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import ClassVar, Literal

import regex

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.protocol import Judge, Sample, Scale, Verdict
from winnow.tasks.judges.rules.inspect.matching import Location, f1, includes, is_exact, matches
from winnow.tasks.judges.rules.inspect.multiple_choice import chosen, right_choices
from winnow.tasks.text.patterns import TIMEOUT_SECONDS, compiled

Scorer = Literal["answer", "choice", "exact", "f1", "includes", "match", "pattern"]

OPTIONS: Mapping[Scorer, tuple[str, ...]] = {
    "answer": ("pattern",),
    "choice": ("multiple_correct",),
    "exact": (),
    "f1": ("stop_words",),
    "includes": ("ignore_case",),
    "match": ("location", "ignore_case", "numeric"),
    "pattern": ("pattern", "ignore_case", "match_all"),
}

ANSWERS = {
    "letter": r"(?is)ANSWER\s*:\s*([A-Za-z])(?:[^\w]|\n|$)(?!.*ANSWER\s*:)",
    "word": r"(?is)ANSWER\s*:\s*(\S+?)(?=[.,;:!?]?\s*(?:\n|$))(?!.*ANSWER\s*:)",
    "line": r"(?i)ANSWER\s*:\s*([^\n]+)\s*\Z",
}


@dataclass(frozen=True, kw_only=True)
class InspectJudge(Judge[Sample]):
    """The output is scored as by a scorer of Inspect that follows a rule."""

    scale: ClassVar = Scale(
        unit="right or wrong; of f1, score, 0 to 1", formula="1 if right, 0 if wrong; as it is"
    )

    scorer: Scorer
    """Name of the scorer."""
    location: Location = "end"
    """For match: where the target is searched."""
    ignore_case: bool = True
    """For match, includes and pattern: whether case is ignored."""
    numeric: bool = False
    """For match: whether a numeric target is compared by its value."""
    pattern: str | None = None
    """For pattern, a regular expression whose groups are compared; for answer, letter, word or line."""
    match_all: bool = False
    """For pattern: whether all groups must be targets, not only one."""
    stop_words: Sequence[str] = ()
    """For f1: words that are ignored."""
    multiple_correct: bool = False
    """For choice: whether several choices may be right."""
    _pattern: regex.Pattern[str] | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for each in fields(self):
            is_default = getattr(self, each.name) == each.default
            if each.init and each.name not in ("scorer", *OPTIONS[self.scorer]) and not is_default:
                raise JudgeError(f"is not an option of {self.scorer}; remove it", f"judge.{each.name}")
        if "pattern" in OPTIONS[self.scorer]:
            object.__setattr__(self, "_pattern", self._compiled())

    def judge(self, sample: Sample) -> Verdict:
        """The score by Inspect's rules; an output without the required form has no answer."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        try:
            if self.scorer == "choice":
                return self._choice(sample)
            if self._pattern is not None:
                return self._extracted(self._pattern, sample)
            return self._compared(sample)
        except (TimeoutError, MemoryError):
            return Verdict.unscored("pattern_timeout")

    def _compiled(self) -> regex.Pattern[str]:
        given = self.pattern
        if given is None or (self.scorer == "answer" and given not in ANSWERS):
            wanted = "a regular expression" if self.scorer == "pattern" else "letter, word or line"
            raise JudgeError(f"must be {wanted} for {self.scorer}, got {given!r}", "judge.pattern")
        try:
            source = ANSWERS[given] if self.scorer == "answer" else given
            return compiled(source, ignore_case=self.ignore_case)
        except ValueError as error:
            raise JudgeError(str(error), "judge.pattern") from error

    def _compared(self, sample: Sample) -> Verdict:
        output, targets = sample.output, sample.targets
        if self.scorer == "f1":
            return Verdict(score=f1(output, targets, self.stop_words))
        if self.scorer == "exact":
            return Verdict.scored(is_exact(output, targets), None)
        if self.scorer == "includes":
            return Verdict.scored(
                any(includes(output, each, ignore_case=self.ignore_case) for each in targets), None
            )
        found = (
            matches(output, each, self.location, ignore_case=self.ignore_case, numeric=self.numeric)
            for each in targets
        )
        return Verdict.scored(any(found), None)

    def _extracted(self, pattern: regex.Pattern[str], sample: Sample) -> Verdict:
        found = pattern.search(sample.output, timeout=TIMEOUT_SECONDS)
        if found is None:
            return Verdict.unscored("no_answer")
        said = [each for each in found.groups() or (found.group(),) if each is not None]
        targets = [self._folded(each) for each in sample.targets]
        right = [self._folded(each) in targets for each in said]
        if self.match_all:
            # An empty group is no answer to Inspect, even where it is the target.
            return Verdict.scored(bool(right) and all(right), ", ".join(said))
        first = next((each for each, is_right in zip(said, right, strict=True) if is_right), None)
        return Verdict.scored(bool(first), ", ".join(said))

    def _folded(self, text: str) -> str:
        return text.lower() if self.ignore_case else text

    def _choice(self, sample: Sample) -> Verdict:
        choices = sample.fields.get("choices")
        if not isinstance(choices, list) or not choices:
            return Verdict.unscored("unreadable_target", detail="the example has no list of choices")
        try:
            right = right_choices(tuple(sample.targets), len(choices))
        except ValueError as error:
            return Verdict.unscored("unreadable_target", detail=str(error))
        named = chosen(sample.output, len(choices), several=self.multiple_correct)
        if not named and right:
            return Verdict.unscored("no_choice")
        return Verdict.scored(named == right, ", ".join(str(choices[each])[:100] for each in named))

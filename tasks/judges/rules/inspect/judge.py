"""Judge with the rule-based scorers of Inspect 0.3.285, and with their verdicts.

`match`, `includes`, `exact` and `f1` compare an output with targets. `choice` reads the letters that an
answer and a target name, as Inspect's `multiple_choice` does.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from math import isfinite
from typing import ClassVar, Literal

import regex

from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.protocol import Judge, Sample, Scale, Verdict
from winnow.tasks.judges.rules.inspect.numbers import number
from winnow.tasks.text.patterns import TIMEOUT_SECONDS, compiled

Location = Literal["begin", "end", "any", "exact"]

_ESCAPED = re.compile(r"\\([$,£€*_])")
_DECORATION = re.compile(r"[$,£€*_]")
_FULL_STOP = re.compile(r"\.(?=\s|$|\D)")
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def _matches(output: str, target: str, location: Location, *, ignore_case: bool, numeric: bool) -> bool:
    """Whether the target is at the searched location; with `numeric`, by numeric value."""
    said, wanted = output.strip(), target.strip()
    if ignore_case:
        said, wanted = said.casefold(), wanted.casefold()
    if numeric:
        wanted = _undecorated(wanted)
        if number(wanted) is not None:
            return _same_number(_undecorated(said), _normal(wanted), location)
    said, wanted = _bare(said), _bare(wanted)
    if location == "begin":
        return said.startswith(wanted)
    if location == "end":
        return said.endswith(wanted)
    return said == wanted if location == "exact" else wanted in said


def _same_number(said: str, wanted: str, location: Location) -> bool:
    """Whether the text has the wanted number: as a whole, as its first or last number, or anywhere."""
    if location == "exact":
        return _normal(said, trims=False) == wanted
    words = re.split(r"\s+", said)
    if location == "end":
        words.reverse()
    numbers = (_normal(word) for word in words if number(word) is not None)
    return wanted in numbers if location == "any" else next(numbers, "") == wanted


def _normal(text: str, *, trims: bool = True) -> str:
    value = number(text, trims=trims)
    return text if value is None else f"{value:.5g}"


def _bare(text: str) -> str:
    return text.strip(string.whitespace + string.punctuation)


def _undecorated(text: str) -> str:
    """The text without currency signs, thousands separators, emphasis marks and full stops."""
    return _FULL_STOP.sub("", _DECORATION.sub("", _ESCAPED.sub(r"\1", text)))


def _includes(output: str, target: str, *, ignore_case: bool) -> bool:
    """Whether the output contains the target."""
    return target.casefold() in output.casefold() if ignore_case else target in output


def _is_exact(output: str, targets: Sequence[str]) -> bool:
    """Whether the output has the same words as a target; a target without words never matches."""
    said = _words(output, ())
    return any(said == wanted for target in targets if (wanted := _words(target, ())))


def f1(output: str, targets: Sequence[str], stop_words: Sequence[str]) -> float:
    """Highest F1 of words over the targets, rounded to hundredths, in [0, 1]."""
    left_out = [_token(word) for word in stop_words]
    said = Counter(_words(output, left_out))
    wanted = (Counter(_words(target, left_out)) for target in targets)
    return round(max((_f1(said, each) for each in wanted if each), default=0.0), 2)


def _f1(said: Counter[str], wanted: Counter[str]) -> float:
    common = (said & wanted).total()
    precision = common / said.total() if said else 1.0
    recall = common / wanted.total()
    return 0.0 if precision == recall == 0.0 else 2 * precision * recall / (precision + recall)


def _words(text: str, left_out: Sequence[str]) -> list[str]:
    tokens = (_token(each) for each in re.split(" |-", text))
    return " ".join(each for each in tokens if each not in left_out and each.strip()).split()


def _token(text: str) -> str:
    text = _without_punctuation(text.casefold())
    text = str(float(text)) if _is_number(text) else text
    return " ".join(_ARTICLES.sub(" ", text).split())


def _without_punctuation(text: str) -> str:
    if _is_number(text):
        return text
    bare = _bare(text)
    return bare if _is_number(bare) else text.translate(_PUNCTUATION)


def _is_number(text: str) -> bool:
    try:
        return isfinite(float(text))
    except ValueError:
        return False


_LETTERS = r"([A-Za-z\d][A-Za-z\d ,]*?)"
_IN_DOLLARS = regex.compile(rf"\$\s*{_LETTERS}\s*\$")
_IN_STARS = regex.compile(rf"\*\*\s*{_LETTERS}\s*\*\*")
_IN_BRACKETS = regex.compile(r"(?i)(^|[:,])(\s*)\(([A-Za-z\d])\)(?=\s*(?:,|\.|\n|\Z))")
_STRICT = regex.compile(r"(?im)^ANSWER\s*:\s*([A-Za-z\d ,]+)\s*(?:$|\n|\.)")
_LENIENT = regex.compile(r"(?i)ANSWER\s*:\s*([A-Za-z\d ,]+)(?:[^\w]|\n|$|\.)")


def _choice_positions(output: str, n_choices: int, *, several: bool) -> list[int]:
    """Positions of the choices that an output selects, in order; empty if it selects no choice.

    Args:
        output: Output of a model whose prompt requests "ANSWER: LETTER" at the end.
        n_choices: Number of choices.
        several: Whether more than one choice may be right.

    Raises:
        TimeoutError: If a pattern takes too long.
    """
    text = _IN_DOLLARS.sub(r"\1", output, timeout=TIMEOUT_SECONDS)
    text = _IN_STARS.sub(r"\1", text, timeout=TIMEOUT_SECONDS)
    text = _IN_BRACKETS.sub(r"\1\2\3", text, timeout=TIMEOUT_SECONDS)
    found = _STRICT.findall(text, timeout=TIMEOUT_SECONDS) or _LENIENT.findall(text, timeout=TIMEOUT_SECONDS)
    if not found:
        return []
    said = found[-1].strip().rstrip(".").upper()
    letters = [_letter(position) for position in range(n_choices)]
    named = _several(said, letters) if several else _one(said, letters)
    return sorted(letters.index(each) for each in named)


def _several(said: str, letters: list[str]) -> set[str]:
    said = said.replace(" AND ", ",").replace(" ", "")
    for named in ({each for each in said.split(",") if each}, set(said)):
        if named <= set(letters):
            return named
    return set()


def _one(said: str, letters: list[str]) -> set[str]:
    named = [each for each in said.split(",") if each]
    return set(named) & set(letters) if len(named) == 1 else set()


def _right_choices(targets: tuple[str, ...], n_choices: int) -> list[int]:
    """Positions named by targets such as "B", "AC" or "27", in order.

    Raises:
        ValueError: If a target does not name a choice.
    """
    words = [word for target in targets for word in target.replace(",", " ").split()]
    named = [each for word in words for each in ([word] if word.isnumeric() else word)]
    positions = sorted(map(_position, named))
    if positions and positions[-1] >= n_choices:
        raise ValueError(f"a target must name one of the {n_choices} choices")
    return positions


def _letter(position: int) -> str:
    return chr(ord("A") + position) if position < 26 else str(position - 25)


def _position(name: str) -> int:
    if len(name) == len(name.upper()) == 1 and name.isalpha():
        return ord(name.upper()) - ord("A")
    if not name.isnumeric() or (value := int(name)) == 0:
        raise ValueError(f"{name!r} is neither a letter nor a number of a choice")
    return 25 + value


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
    """Score as a rule-based scorer of Inspect."""

    scale: ClassVar = Scale(
        unit="right or wrong; of f1, score, 0 to 1", formula="1 if right, 0 if wrong; as it is"
    )

    scorer: Scorer
    """Name of Inspect's scorer."""
    location: Location = "end"
    """For match: where the target must be."""
    ignore_case: bool = True
    """For match, includes and pattern: whether case is ignored."""
    numeric: bool = False
    """For match: whether a numeric target is compared by value."""
    pattern: str | None = None
    """For pattern: a regular expression whose groups are compared. For answer: letter, word or line."""
    match_all: bool = False
    """For pattern: whether all groups must be targets; otherwise one is enough."""
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
        """Score by Inspect's rules; an output without the required form has no answer."""
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
            return Verdict.scored(_is_exact(output, targets), None)
        if self.scorer == "includes":
            return Verdict.scored(
                any(_includes(output, each, ignore_case=self.ignore_case) for each in targets), None
            )
        found = (
            _matches(output, each, self.location, ignore_case=self.ignore_case, numeric=self.numeric)
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
            # For Inspect, an empty group is no answer, even if it is the target.
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
            right = _right_choices(tuple(sample.targets), len(choices))
        except ValueError as error:
            return Verdict.unscored("unreadable_target", detail=str(error))
        named = _choice_positions(sample.output, len(choices), several=self.multiple_correct)
        if not named and right:
            return Verdict.unscored("no_choice")
        return Verdict.scored(named == right, ", ".join(str(choices[each])[:100] for each in named))

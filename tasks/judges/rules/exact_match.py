"""lm-eval's exact_match after its filters: whether the extracted answer equals a target.

Verdicts are those of lm-eval 0.4.13, except for letters whose lower case is longer: numpy, and so lm-eval,
cuts a text that grows. The library `regex` runs the patterns, because it accepts the syntax of `re` and
supports timeouts.
"""

import string
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import regex

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.errors import JudgeError
from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Verdict
from winnow.tasks.text.patterns import TIMEOUT_SECONDS, compiled

Step = Callable[[str], str]

PLAIN: Mapping[str, Step] = {
    "lowercase": str.lower,
    "remove_whitespace": str.strip,
    "uppercase": str.upper,
}
"""Filters without options."""

OPTIONS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(PLAIN, frozenset[str]()),
    "map": frozenset({"mapping_dict", "default_value"}),
    "regex": frozenset({"regex_pattern", "group_select", "fallback"}),
}
"""Options of each filter, by the filter's name."""

NUMBER_AFTER_HASHES = r"#### (\-?[0-9\.\,]+)"
INVALID = "[invalid]"
"""Default of the parameter `fallback` of lm-eval's filter regex."""


@dataclass(frozen=True, kw_only=True)
class ExactMatchJudge(Judge[Sample]):
    """The output equals a target after lm-eval's filters."""

    scale: ClassVar = RIGHT_OR_WRONG

    filters: Sequence[JsonObject] = ()
    """Filters, applied in order, as in a task's filter_list: {function: regex, regex_pattern: ...,
    group_select: -1}, {function: remove_whitespace}, lowercase, uppercase, or map with its mapping_dict."""
    ignore_case: bool = False
    """Whether case is ignored in output and targets; the other options apply to both, too."""
    ignore_punctuation: bool = False
    ignore_numbers: bool = False
    regexes_to_ignore: Sequence[str] = ()
    """Patterns whose matches are removed from output and targets."""
    _steps: Sequence[Step] = field(init=False, repr=False, compare=False)
    _ignored: Sequence[regex.Pattern[str]] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        steps = [_step(each, f"judge.filters[{at}]") for at, each in enumerate(self.filters)]
        object.__setattr__(self, "_steps", steps)
        ignored = [_pattern(each, "judge.regexes_to_ignore") for each in self.regexes_to_ignore]
        object.__setattr__(self, "_ignored", ignored)

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if the filtered output equals a target, else 0."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        try:
            answer = self.filtered(sample.output)
            said = self._compared(answer)
            return Verdict.scored(any(said == self._compared(each) for each in sample.targets), answer)
        except (TimeoutError, MemoryError):
            return Verdict.unscored("pattern_timeout")

    def filtered(self, output: str) -> str:
        """The output after all filters; raises `TimeoutError` if a pattern takes too long."""
        for step in self._steps:
            output = step(output)
        return output

    def _compared(self, text: str) -> str:
        for pattern in self._ignored:
            text = pattern.sub("", text, timeout=TIMEOUT_SECONDS)
        text = text.lower() if self.ignore_case else text
        dropped = string.punctuation * self.ignore_punctuation + string.digits * self.ignore_numbers
        return text.translate(str.maketrans("", "", dropped))


def _step(given: JsonView, path: str) -> Step:
    name = given.get("function")
    if not isinstance(name, str) or name not in OPTIONS:
        raise JudgeError(f"function must be one of {', '.join(OPTIONS)}, got {name!r}", path)
    if others := given.keys() - {"function"} - OPTIONS[name]:
        raise JudgeError(f"{name} has no option {min(others)!r}; remove it", path)
    if name in PLAIN:
        return PLAIN[name]
    return _mapping(given, path) if name == "map" else _regex(given, path)


def _mapping(given: JsonView, path: str) -> Step:
    mapping, default = given.get("mapping_dict", {}), given.get("default_value")
    if not isinstance(mapping, dict) or not all(isinstance(each, str) for each in mapping.values()):
        raise JudgeError("mapping_dict must map texts to texts", path)
    if not isinstance(default, str):
        raise JudgeError("map needs a text as default_value, for texts that mapping_dict lacks", path)
    return lambda text: mapping.get(text, default)


def _regex(given: JsonView, path: str) -> Step:
    pattern = _pattern(given.get("regex_pattern", NUMBER_AFTER_HASHES), path)
    at, fallback = given.get("group_select", 0), given.get("fallback", INVALID)
    if not isinstance(at, int) or not isinstance(fallback, str):
        raise JudgeError("group_select must be a whole number, and fallback text", path)
    return lambda text: _selected(pattern, text, at, fallback)


def _selected(pattern: regex.Pattern[str], text: str, at: int, fallback: str) -> str:
    """Match at an index; if the pattern has several groups, the first group that matched."""
    found = pattern.findall(text, timeout=TIMEOUT_SECONDS)
    if not -len(found) <= at < len(found):
        return fallback
    match = found[at]
    if isinstance(match, tuple):
        match = next((each for each in match if each), fallback)
    said: str = match.strip()
    return said


def _pattern(pattern: object, path: str) -> regex.Pattern[str]:
    if not isinstance(pattern, str):
        raise JudgeError(f"a pattern must be text, got {pattern!r}", path)
    try:
        return compiled(pattern)
    except ValueError as error:
        raise JudgeError(str(error), path) from error

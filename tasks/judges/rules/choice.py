r"""Multiple choice: which option did the model settle on?

An output says so clearly where it states it ("the answer is (B)", "Answer: b"), boxes it (`\boxed{B}`) or
gives it a line of its own; the last clear choice wins, whatever was weighed before. Where nothing is
clear, a single option set apart somewhere ("(B)", "B) London", "I think B") is the choice; if several are,
none is, for guessing between them would score the guess.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Annotated, ClassVar

import regex
from pydantic import Field

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Sample, Verdict

VERSION = 1
"""Raised when a verdict can change; see `tasks.judges.catalogue`."""

# Repetitions are possessive and bounded, so a position is left after a bounded number of steps.
_OPEN = r"""[ \t>*_"'`(\[{]{0,12}+"""
_CLOSE = r"""[ \t<*_"'`)\]}.,:;!]{0,12}+"""
_LEAD = r"\b(?i:answer|choose|chose|select|pick|(?:correct|right|best)\s{1,4}+(?:option|choice|letter))\b"
_LINKING = r"\b(?i:is|was|be|would|should|must|option|choice|letter|clearly|therefore)\b"
_FILLER = rf"""(?:[\s>*_"'`(\[{{:=-]|{_LINKING}){{0,24}}+"""
_AFTER = r"(?!\w|['’-]\w)"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceJudge:
    """The option that the output settles on is a target."""

    scale: ClassVar = RIGHT_OR_WRONG

    options: Annotated[Sequence[str], Field(min_length=2)] = ("A", "B", "C", "D", "E")
    """The labels to choose between: letters, or words such as yes and no."""
    _clear: regex.Pattern[str] = field(init=False, repr=False)
    _set_apart: regex.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        labels = [_folded(option) for option in self.options]
        if "" in labels or len(set(labels)) < len(labels):
            raise ValueError(f"options must be different and not empty, got {list(self.options)}")
        parts = [regex.escape(option) for option in sorted(self.options, key=len, reverse=True)]
        any_case = f"(?i:{'|'.join(parts)})"
        # Only a capital is clear in running text: "the answer is a number" does not choose A.
        exact = "|".join(part if len(part) == 1 else f"(?i:{part})" for part in parts)
        object.__setattr__(self, "_clear", _clear_pattern(exact, any_case))
        object.__setattr__(self, "_set_apart", _set_apart_pattern(exact, any_case))

    def judge(self, sample: Sample) -> Verdict:
        """One if the choice is a target, else zero; an output that does not choose has none."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        names = self._names()
        wanted = {_folded(target) for target in sample.targets} & names.keys()
        if not wanted:
            return Verdict.unscored("unreadable_target")
        choice = self._choice(sample.output)
        if choice is None:
            return Verdict.unscored("no_choice")
        return Verdict.scored(choice in wanted, names[choice])

    def _choice(self, output: str) -> str | None:
        if clear := self._labels(self._clear, output):
            return clear[-1]
        apart = set(self._labels(self._set_apart, output))
        return apart.pop() if len(apart) == 1 else None

    def _labels(self, pattern: regex.Pattern[str], output: str) -> list[str]:
        found = (_folded(match.group("label")) for match in pattern.finditer(output))
        names = self._names()
        # Ignoring case, the pattern takes a dotless ı for an I, and folding does not.
        return [label for label in found if label in names]

    def _names(self) -> dict[str, str]:
        return {_folded(option): option for option in self.options}


def _clear_pattern(exact: str, any_case: str) -> regex.Pattern[str]:
    closed = rf"(?={_CLOSE}(?:$|[\r\n]))|(?=[ \t]?[).\]}},;!\"'`*<])"
    stated = rf"{_LEAD}{_FILLER}(?:(?P<label>{exact}){_AFTER}|(?P<label>{any_case})(?:{closed}))"
    boxed = rf"\\boxed\s?\{{{_OPEN}(?:\\text\w{{0,4}}\s?\{{)?+\(?(?P<label>{any_case})\)?\s?\}}"
    alone = rf"^{_OPEN}(?P<label>{any_case}){_CLOSE}\r?$"
    return regex.compile(f"{stated}|{boxed}|{alone}", regex.MULTILINE)


def _set_apart_pattern(exact: str, any_case: str) -> regex.Pattern[str]:
    bracketed = rf"(?:\((?P<label>{any_case})\)|\[(?P<label>{any_case})\]|\*(?P<label>{any_case})\*)"
    listed = rf"^{_OPEN}(?P<label>{exact})[.):]"
    # A and I are also words, clear only where no word follows.
    in_text = rf"(?<![\w'’.-])(?P<label>{exact}){_AFTER}(?:(?<!\b[AI])|(?!\s+\p{{Ll}}))"
    return regex.compile(f"{bracketed}|{listed}|{in_text}", regex.MULTILINE)


def _folded(label: str) -> str:
    return label.strip(" \t\n()[]{}.:*").casefold()

"""Numbers in outputs: equal to a target, exactly or within a tolerance, or the score itself.

A number is written as in English: an optional sign, an optional currency sign, digits with or without
separators of thousands (comma, underscore, apostrophe or a no-break space), a decimal point, an exponent;
with `fractions`, two of these joined by a slash. A letter just before the digits makes them part of a name
(H2O, x1), not a number. A unit or a percent sign after it is ignored.
"""

from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Annotated, ClassVar, Literal

import regex
from pydantic import Field

from winnow.tasks.engines.external.scoring_function import NO_SCORE
from winnow.tasks.judges.protocol import INVALID_SCORE, RIGHT_OR_WRONG, SHARE, Sample, Verdict

VERSION = 1
"""Raised when a verdict can change; see `tasks.judges.catalogue`."""

MAX_DIGITS = 1_000  # beyond it, exact arithmetic on what a model wrote could cost seconds
MAX_EXPONENT = 1_000

_SEPARATORS = ",_'’\u00a0\u2009\u202f"
# Every repetition is possessive: no digit is read twice, so the time is linear whatever the text.
_UNSIGNED = (
    rf"(?:\d{{1,3}}+(?:[{_SEPARATORS}]\d{{3}}(?!\d))++|\d++)(?:\.\d++)?+(?:[eE][-+−]?\d++)?+"
    r"|\.\d++(?:[eE][-+−]?\d++)?+"
)
# A minus after a word, a digit or a bracket is a subtraction or a hyphen.
_SIGN = r"(?:(?<![\w)\]}])[-+−])?+[$€£¥]?+"
_NUMBER = regex.compile(
    rf"(?P<sign>{_SIGN})(?<![\p{{L}}\d])(?P<top>{_UNSIGNED})(?:\s?/\s?(?P<bottom>(?>{_UNSIGNED})))?+"
)
_WHOLE_NUMBER = regex.compile(rf"(?P<sign>{_SIGN})(?<![\p{{L}}\d])(?P<top>{_UNSIGNED})")
_IGNORED = str.maketrans({**dict.fromkeys(_SEPARATORS), "−": "-"})


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericJudge:
    """The last number in the output equals the last number in a target, within a tolerance."""

    scale: ClassVar = RIGHT_OR_WRONG

    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Largest difference that still counts as equal; zero compares exactly, digit for digit."""
    relative: bool = False
    """Whether the tolerance is a share of the target's size and not a difference."""
    fractions: bool = True
    """Whether 3/4 is one number; if not, it is a 3 followed by a 4."""
    which: Literal["last", "first"] = "last"
    """The number that is the answer, where there are several."""

    def judge(self, sample: Sample) -> Verdict:
        """One if the numbers are equal, else zero; an output without a number has none."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        wanted = [value for _, value in map(self._read, sample.targets) if value is not None]
        if not wanted:
            return Verdict.unscored("unreadable_target")
        answer, value = self._read(sample.output)
        if value is None:
            return Verdict.unscored("no_number", answer)
        return Verdict.scored(any(self._equal(value, target) for target in wanted), answer)

    def _read(self, text: str) -> tuple[str | None, Fraction | None]:
        """The number as it is written and its exact value; None where there is none, or no value."""
        matches = (_NUMBER if self.fractions else _WHOLE_NUMBER).finditer(text)
        found = list(islice(matches, 1)) if self.which == "first" else list(deque(matches, maxlen=1))
        return (found[0].group(), _value(found[0])) if found else (None, None)

    def _equal(self, value: Fraction, target: Fraction) -> bool:
        # By way of its decimal digits: 0.3 as a binary number is a little less than 0.3.
        allowed = Fraction(str(self.tolerance)) * (abs(target) if self.relative else 1)
        return abs(value - target) <= allowed


_SCORE = regex.compile(r"[+-]?(\d{1,20}(\.\d{0,40})?|\.\d{1,40})(e[+-]?\d{1,3})?", regex.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreJudge:
    """The output is the score: a number from 0 to 1, and nothing else."""

    scale: ClassVar = SHARE

    def judge(self, sample: Sample) -> Verdict:
        """The number; no score where the output says so, or is a number that is none."""
        said = sample.output.strip()
        if said == NO_SCORE:
            return Verdict.unscored("no_score")
        if not _SCORE.fullmatch(said):
            return Verdict.unscored("no_number")
        if not 0.0 <= (score := float(said)) <= 1.0:
            return Verdict.unscored(INVALID_SCORE, said, detail=f"{said} is not from 0 to 1")
        return Verdict(score=score + 0.0, answer=said)


def _value(match: regex.Match[str]) -> Fraction | None:
    """The exact value of a matched number; None if it is too long to compute with or divides by zero."""
    parts = match.groupdict()
    top, bottom = _unsigned_value(parts["top"]), _unsigned_value(parts.get("bottom") or "1")
    if top is None or not bottom:
        return None
    return (-1 if parts["sign"].startswith(("-", "−")) else 1) * top / bottom


def _unsigned_value(digits: str) -> Fraction | None:
    """The exact value of an unsigned number; None if it has too many digits or too large an exponent."""
    plain = digits.translate(_IGNORED).lower()
    mantissa, _, exponent = plain.partition("e")
    if len(mantissa) > MAX_DIGITS or len(exponent) > MAX_DIGITS or abs(int(exponent or "0")) > MAX_EXPONENT:
        return None
    return Fraction(plain if mantissa[0] != "." else f"0{plain}")

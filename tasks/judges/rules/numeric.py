"""Numbers in outputs that equal a target, exactly or within a tolerance.

`tasks.judges.rules.reading.numbers` defines how numbers are written and which number is the answer. A unit or
a percent sign after a number is ignored.
"""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Verdict
from winnow.tasks.judges.rules.reading.numbers import Number, NumberReader


@dataclass(frozen=True, slots=True, kw_only=True)
class NumericJudge(Judge[Sample]):
    """The number in the output's answer equals a target's number, within a tolerance."""

    scale: ClassVar = RIGHT_OR_WRONG

    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    """Largest difference that counts as equal; 0 compares exactly, digit for digit."""
    relative: bool = False
    """Whether the tolerance is relative to the target's size."""
    fractions: bool = True
    """Whether 3/4 is one number; otherwise it is a 3 followed by a 4."""
    which: Literal["last", "first"] = "last"
    """Which number is the answer. "last": the number declared as the answer, or else the last; "first":
    always the first."""
    _reader: NumberReader = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_reader", NumberReader(fractions=self.fractions))

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if the numbers are equal, else 0; without a number, the output has no answer."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        wanted = [each for each in map(self._target, sample.targets) if each is not None]
        if not wanted:
            return Verdict.unscored("unreadable_target")
        found = (
            self._reader.first(sample.output) if self.which == "first" else self._reader.answer(sample.output)
        )
        if found is None or found.value is None:
            return Verdict.unscored("no_number", None if found is None else found.written)
        return Verdict.scored(any(self._equal(found, target) for target in wanted), found.written)

    def _target(self, text: str) -> Number | None:
        if self.which == "first":
            found = self._reader.first(text)
        else:
            found = self._reader.answer(text) or self._reader.last(text)
        return found if found is not None and found.value is not None else None

    def _equal(self, found: Number, target: Number) -> bool:
        assert target.value is not None
        # From its decimal digits, because the binary number 0.3 is slightly less than 0.3.
        allowed = Fraction(str(self.tolerance)) * (abs(target.value) if self.relative else 1)
        return found.equals(target, allowed)

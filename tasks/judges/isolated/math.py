r"""Equality of mathematical expressions, by math-verify.

What the output settles on is found and compared as `verify(parse(target), parse(output))` does with its own
settings: \boxed{...} first, then what is said to be the answer, then the last LaTeX or number. Two answers
that are written differently are equal where they mean the same: 1/2, 0.5 and \frac{1}{2}.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Literal

from winnow.tasks.judges.isolated.libraries import library_judge
from winnow.tasks.judges.isolated.process import IsolatedJudge
from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Sample, Verdict

VERSION = 1
"""Raised when a verdict can change; see `tasks.judges.catalogue`."""

TargetFormat = Literal["expression", "text"]

_ANCHORS = ("$", "\\boxed", "\\(", "\\[")


@dataclass(frozen=True, kw_only=True)
class MathJudge:
    """The mathematical expression that the output ends in equals a target, by math-verify."""

    scale: ClassVar = RIGHT_OR_WRONG
    libraries: ClassVar = ("math-verify", "latex2sympy2_extended", "sympy")

    target_format: TargetFormat = "expression"
    """Whether a target is an expression, such as (1, 2), or a text that ends in one, as an output does."""
    _isolated: IsolatedJudge = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        build = "winnow.tasks.judges.isolated.math:verifier"
        isolated = library_judge("math", build, self.libraries, target_format=self.target_format)
        object.__setattr__(self, "_isolated", isolated)

    def judge(self, sample: Sample) -> Verdict:
        """One if the expressions are equal, else zero; an output without one has none."""
        return self._isolated.judge(sample) if sample.targets else Verdict.unscored("no_target")


def verifier(target_format: TargetFormat) -> Callable[[Sample], Verdict]:
    """The function that judges, for a process of its own: math-verify's own time limits are off there."""
    from math_verify import parse, verify

    def judge(sample: Sample) -> Verdict:
        texts = [as_latex(each) if target_format == "expression" else each for each in sample.targets]
        wanted = [found for text in texts if (found := parse(text, parsing_timeout=None))]
        if not wanted:
            return Verdict.unscored("unreadable_target")
        said = parse(sample.output, parsing_timeout=None)
        if not said:
            return Verdict.unscored("no_answer")
        right = any(verify(each, said, timeout_seconds=None) for each in wanted)
        return Verdict.scored(right, str(said[-1]))

    return judge


def as_latex(target: str) -> str:
    """An expression as math-verify finds it: between dollar signs, unless it is marked already."""
    return target if any(anchor in target for anchor in _ANCHORS) else f"${target}$"

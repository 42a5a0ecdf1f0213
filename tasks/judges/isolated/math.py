r"""Equality of mathematical expressions, by math-verify.

`tasks.judges.rules.reading.formulas` finds the output's answer: the last \boxed{...}, then an expression
declared as the answer, then the last expression. The answer is compared as `verify(parse(target),
parse(answer))` does: answers in different notation are equal if they mean the same, such as 1/2 and
\frac{1}{2}.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from winnow.tasks.judges.isolated.libraries import LibraryJudge
from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Sample, Verdict
from winnow.tasks.judges.rules.reading import formulas
from winnow.tasks.judges.rules.reading.typography import as_typed

TargetFormat = Literal["expression", "text"]

_ANCHORS = ("$", "\\boxed", "\\(", "\\[")


@dataclass(frozen=True, kw_only=True)
class MathJudge(LibraryJudge):
    """The output's final expression equals a target, by math-verify."""

    scale: ClassVar = RIGHT_OR_WRONG
    name: ClassVar = "math"
    build: ClassVar = "math:verifier"
    libraries: ClassVar = ("math-verify", "latex2sympy2_extended", "sympy")

    target_format: TargetFormat = "expression"
    """Whether a target is an expression, such as (1, 2), or a text that ends with one, like an output."""


def verifier(target_format: TargetFormat) -> Callable[[Sample], Verdict]:
    """Create the judging function for a separate process, without math-verify's own time limits."""
    from math_verify import parse, verify

    def judge(sample: Sample) -> Verdict:
        read = as_latex if target_format == "expression" else as_typed
        wanted = [found for each in sample.targets if (found := parse(read(each), parsing_timeout=None))]
        if not wanted:
            return Verdict.unscored("unreadable_target")
        words = [word for each in sample.targets if (word := formulas.word_of(each))]
        for word in words:
            if formulas.concludes(sample.output, word):
                return Verdict.scored(True, word)
        several = any(_is_several(found[0]) for found in wanted)
        ways = formulas.answer(sample.output, several=several)
        said = [found for way in ways if (found := parse(f"${way}$", parsing_timeout=None))]
        if not said and not ways:
            return Verdict.unscored("no_answer")
        for found in said:
            if any(verify(each, found, timeout_seconds=None) for each in wanted):
                return Verdict.scored(True, str(found[-1]))
        return Verdict.scored(False, str(said[0][-1]) if said else ways[0])

    return judge


def _is_several(found: object) -> bool:
    """Whether a parsed result has several values, ordered or not."""
    return type(found).__name__ in ("FiniteSet", "Tuple") and len(getattr(found, "args", ())) > 1


def as_latex(target: str) -> str:
    """An expression in a form that math-verify reads: in dollar signs, unless it is marked."""
    typed = as_typed(target)
    return typed if any(anchor in typed for anchor in _ANCHORS) else f"${formulas.target(target)}$"

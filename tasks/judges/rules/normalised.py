"""Equality up to case, punctuation, white space and compatible characters."""

import unicodedata
from dataclasses import dataclass
from typing import ClassVar

import regex

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Verdict

# The first two alternatives match the marks that a number needs and skip over them: inside it, so that
# 3.5 stays apart from 35, and in front of it, so that -5 stays apart from 5.
_PUNCTUATION = regex.compile(
    r"(?:(?<=\d)\p{P}(?=\d)|(?<!\w)(?:-(?=\.?\d)|\.(?=\d)))(*SKIP)(*FAIL)|\p{P}", regex.VERSION0
)


def normalise(text: str) -> str:
    """The text in lower case and NFKC, without punctuation, with single spaces.

    Doing it twice changes nothing. Case is folded as Unicode defines it ("STRASSE" equals "straße").
    Symbols such as + and $ are not punctuation. A text of nothing but punctuation keeps it, or it would
    equal an empty output.
    """
    # Removing a mark can bring two characters together that compose, so one pass may not be the last.
    while (folded := _normalise_once(text)) != text:
        text = folded
    return text


def _normalise_once(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    bare = _PUNCTUATION.sub("", folded)
    return " ".join((bare if bare.strip() else folded).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class NormalisedJudge(Judge[Sample]):
    """The output equals a target once case, punctuation and extra white space are ignored."""

    scale: ClassVar = RIGHT_OR_WRONG

    def judge(self, sample: Sample) -> Verdict:
        """One if the normalised output is a normalised target, else zero."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        answer = normalise(sample.output)
        return Verdict.scored(any(answer == normalise(target) for target in sample.targets), answer)

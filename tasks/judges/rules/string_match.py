"""Judges that compare whole outputs with targets: exactly, normalised, or by shared words."""

import re
import string
import unicodedata
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar, Literal

import regex

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Scale, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactJudge(Judge[Sample]):
    """The output equals a target, character for character."""

    scale: ClassVar = RIGHT_OR_WRONG

    strip: bool = True
    """Whether white space around output and target is ignored."""

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if the output equals a target, else 0."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        answer = self._bare(sample.output)
        return Verdict.scored(any(answer == self._bare(target) for target in sample.targets), answer)

    def _bare(self, text: str) -> str:
        return text.strip() if self.strip else text


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainsJudge(Judge[Sample]):
    """The output contains a target, or all of them."""

    scale: ClassVar = RIGHT_OR_WRONG

    match: Literal["any", "all"] = "any"
    """Whether one target is enough or all are needed."""
    ignore_case: bool = False
    """Whether upper and lower case count as the same."""

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if enough targets are in the output, else 0; the answer is the first one found."""
        targets = sample.targets
        if not targets:
            return Verdict.unscored("no_target")
        if "" in targets:  # every output contains the empty text
            return Verdict.unscored("unreadable_target")
        text = self._folded(sample.output)
        found = [target for target in targets if self._folded(target) in text]
        enough = len(found) == len(targets) if self.match == "all" else bool(found)
        return Verdict.scored(enough, found[0] if found else None)

    def _folded(self, text: str) -> str:
        return text.casefold() if self.ignore_case else text


# The first two alternatives match the marks that a number needs and skip over them: inside it, so that
# 3.5 stays apart from 35, and in front of it, so that -5 stays apart from 5.
_PUNCTUATION = regex.compile(
    r"(?:(?<=\d)\p{P}(?=\d)|(?<!\w)(?:-(?=\.?\d)|\.(?=\d)))(*SKIP)(*FAIL)|\p{P}", regex.VERSION0
)


def normalise(text: str) -> str:
    """The text in lower case and NFKC, without punctuation, with single spaces.

    The function is idempotent. Case is folded as in Unicode ("STRASSE" equals "straße"). Symbols such as +
    and $ are not punctuation. Punctuation inside and in front of numbers stays. A text of only punctuation
    keeps it, otherwise it would equal an empty output.
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
    """The output equals a target, ignoring case, punctuation and extra white space."""

    scale: ClassVar = RIGHT_OR_WRONG

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if the normalised output equals a normalised target, else 0."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        answer = normalise(sample.output)
        return Verdict.scored(any(answer == normalise(target) for target in sample.targets), answer)


_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True, kw_only=True)
class SquadJudge(Judge[Sample]):
    """The output equals a target after SQuAD's normalisation of case, punctuation and articles."""

    scale: ClassVar = RIGHT_OR_WRONG

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if the normalised output equals a normalised target, else 0."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        said = words(sample.output)
        return Verdict.scored(any(said == words(target) for target in sample.targets), " ".join(said))


@dataclass(frozen=True, slots=True, kw_only=True)
class F1Judge(Judge[Sample]):
    """F1 of the words shared by the output and the closest target, as in SQuAD."""

    scale: ClassVar = Scale(unit="F1, 0 to 1", formula="as it is")

    def judge(self, sample: Sample) -> Verdict:
        """Highest F1 of the output over the targets."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        said = words(sample.output)
        return Verdict(score=max(f1(said, words(each)) for each in sample.targets), answer=" ".join(said))


def words(text: str) -> list[str]:
    """Words of a text after SQuAD's normalisation."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def f1(said: list[str], wanted: list[str]) -> float:
    """Harmonic mean of the shares of words that two lists have in common, in [0, 1].

    If a list is empty: 1 if both are empty, else 0.
    """
    if not said or not wanted:
        return float(said == wanted)
    common = sum((Counter(said) & Counter(wanted)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(said), common / len(wanted)
    return 2 * precision * recall / (precision + recall)

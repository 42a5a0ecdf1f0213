"""Short answers as SQuAD scores them: exact match, and F1 of words, after its normalisation.

Source: the official evaluation script of SQuAD 2.0 (Rajpurkar, Jia, Liang, 2018), `compute_exact` and
`compute_f1`: lower case, no ASCII punctuation, no articles (a, an, the), words split at white space.
"""

import re
import string
from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Scale, Verdict

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)


@dataclass(frozen=True, slots=True, kw_only=True)
class SquadJudge(Judge[Sample]):
    """The output equals a target after SQuAD's normalisation of case, punctuation and articles."""

    scale: ClassVar = RIGHT_OR_WRONG

    def judge(self, sample: Sample) -> Verdict:
        """One if the normalised output is a normalised target, else zero."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        said = words(sample.output)
        return Verdict.scored(any(said == words(target) for target in sample.targets), " ".join(said))


@dataclass(frozen=True, slots=True, kw_only=True)
class F1Judge(Judge[Sample]):
    """F1 of the words that the output shares with the target it is closest to, as SQuAD has it."""

    scale: ClassVar = Scale(unit="F1, 0 to 1", formula="as it is")

    def judge(self, sample: Sample) -> Verdict:
        """The F1 of the output."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        said = words(sample.output)
        return Verdict(score=max(f1(said, words(each)) for each in sample.targets), answer=" ".join(said))


def words(text: str) -> list[str]:
    """The words of a text after SQuAD's normalisation."""
    return _ARTICLES.sub(" ", text.lower().translate(_NO_PUNCTUATION)).split()


def f1(said: list[str], wanted: list[str]) -> float:
    """Harmonic mean of the shares of words that two lists have in common, in [0, 1].

    Where one list is empty, it is 1 if the other is too.
    """
    if not said or not wanted:
        return float(said == wanted)
    common = sum((Counter(said) & Counter(wanted)).values())
    if common == 0:
        return 0.0
    precision, recall = common / len(said), common / len(wanted)
    return 2 * precision * recall / (precision + recall)

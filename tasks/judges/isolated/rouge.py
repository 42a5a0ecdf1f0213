"""ROUGE overlap with reference summaries, by rouge-score, with words of all scripts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Literal

from winnow.tasks.judges.isolated.libraries import LibraryJudge
from winnow.tasks.judges.isolated.words import words
from winnow.tasks.judges.protocol import Sample, Scale, Verdict

Variant = Literal["rouge1", "rouge2", "rougeL", "rougeLsum"]


@dataclass(frozen=True, kw_only=True)
class RougeJudge(LibraryJudge):
    """ROUGE F1 of the output against the closest target, by rouge-score."""

    scale: ClassVar = Scale(unit="F1, 0 to 1", formula="as it is")
    name: ClassVar = "rouge"
    libraries: ClassVar = ("rouge-score", "nltk")
    build: ClassVar = "rouge:measured"

    variant: Variant = "rougeL"
    """Compared units: words, pairs of words, or the longest common subsequence of the text or of its lines.
    """
    stemmer: bool = False
    """Whether words are reduced to their stems, for English."""


def measured(variant: Variant, stemmer: bool) -> Callable[[Sample], Verdict]:
    """Create the judging function, for a separate process with a time limit."""
    from rouge_score.rouge_scorer import RougeScorer
    from rouge_score.tokenizers import DefaultTokenizer

    stemming = DefaultTokenizer(use_stemmer=True).tokenize if stemmer else None
    scorer = RougeScorer([variant], tokenizer=_Tokenizer(stemming))

    def judge(sample: Sample) -> Verdict:
        value = scorer.score_multi(sample.targets, sample.output)[variant].fmeasure
        return Verdict(score=value, answer=f"{variant} {value:.4f}")

    return judge


@dataclass(frozen=True)
class _Tokenizer:
    """Words of all scripts, with the interface of rouge-score's tokenizers."""

    stemming: Callable[[str], list[str]] | None
    """rouge-score's own tokenizer, which stems a word; None to leave words unchanged."""

    def tokenize(self, text: str) -> list[str]:
        return words(text, self._stem if self.stemming else None)

    def _stem(self, word: str) -> str:
        assert self.stemming is not None
        (stem,) = self.stemming(word)
        return stem

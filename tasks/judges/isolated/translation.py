"""Distance to reference translations: sentence BLEU, chrF and TER, by sacrebleu.

A campaign averages values of single outputs. Papers report one value for all outputs as a corpus, which
differs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from winnow.tasks.judges.isolated.libraries import LibraryJudge
from winnow.tasks.judges.isolated.words import HELPFUL_SHARE, LEAST_SHARE, leaves
from winnow.tasks.judges.protocol import PERCENT, Sample, Scale, Verdict


class _SentenceMetric(LibraryJudge):
    """Base class of sacrebleu's metrics; the spec's parameters are arguments of sacrebleu's class."""

    libraries: ClassVar = ("sacrebleu",)
    build: ClassVar = "translation:measured"

    def settings(self) -> dict[str, object]:
        """Name and arguments of the metric's sacrebleu class."""
        return {"metric": self.name.upper(), "settings": super().settings()}


@dataclass(frozen=True, kw_only=True)
class BleuJudge(_SentenceMetric):
    """Sentence BLEU of the output against all targets, by sacrebleu."""

    scale: ClassVar = PERCENT
    name: ClassVar = "bleu"

    tokenize: Literal["13a", "char", "intl", "none", "zh"] = "13a"
    """Name of sacrebleu's tokenizer, which splits a text into words."""
    lowercase: bool = False
    """Whether upper and lower case count as the same."""


@dataclass(frozen=True, kw_only=True)
class ChrfJudge(_SentenceMetric):
    """chrF of the output against the closest target, or chrF++ with word_order 2, by sacrebleu."""

    scale: ClassVar = PERCENT
    name: ClassVar = "chrf"

    char_order: Annotated[int, Field(ge=1, le=10)] = 6
    """Length of the longest character n-grams that are compared."""
    word_order: Annotated[int, Field(ge=0, le=4)] = 0
    """Length of the longest word n-grams that are compared; 0 to compare characters only."""
    beta: Annotated[int, Field(ge=1, le=10)] = 2
    """Weight of recall, as a multiple of the weight of precision."""


@dataclass(frozen=True, kw_only=True)
class TerJudge(_SentenceMetric):
    """Translation edit rate of the output against the closest target, by sacrebleu; less is better."""

    scale: ClassVar = Scale(
        unit="edits per 100 words of the target, 0 and up, less is better",
        formula="max(0, 1 - edits / 100)",
        convert=lambda edits: 1.0 - edits / 100.0,
    )
    name: ClassVar = "ter"

    normalized: bool = False
    """Whether punctuation is first separated from words."""
    no_punct: bool = False
    """Whether punctuation is ignored."""
    case_sensitive: bool = False
    """Whether upper and lower case differ."""
    asian_support: bool = False
    """Whether Chinese and Japanese texts are split into characters; has an effect only with `normalized`."""


_SCALES: Mapping[str, Scale] = {each.name.upper(): each.scale for each in (BleuJudge, ChrfJudge, TerJudge)}


def measured(metric: str, settings: Mapping[str, object]) -> Callable[[Sample], Verdict]:
    """Create the judging function, for a separate process with a time limit."""
    from sacrebleu import metrics

    # For a single sentence, the order of BLEU is limited to the number of its words.
    extra = {"effective_order": True} if metric == "BLEU" else {}
    measure = getattr(metrics, metric)(**settings, **extra)

    def judge(sample: Sample) -> Verdict:
        value = measure.sentence_score(sample.output, list(sample.targets)).score
        return Verdict(score=_SCALES[metric].score(value), answer=f"{metric} {value:.2f}")

    return judge


HELPING: Mapping[str, Sequence[Mapping[str, object]]] = {
    "BLEU": ({"tokenize": "zh"}, {"tokenize": "char"}),
    "TER": ({"normalized": True, "asian_support": True},),
}
"""Settings that split texts which the default treats as one word, in order of preference."""


def reading(metric: str, settings: Mapping[str, object]) -> Callable[[Sample], Verdict]:
    """Create a function that checks whether a tokenizer can read a target, for a separate process.

    The target is passed as the output. The score is 0 if the tokenizer leaves almost nothing of the target.
    The answer then has the settings that leave more of it, as JSON; {} if no settings do.
    """
    from sacrebleu import metrics

    def is_left(target: str, more: Mapping[str, object], share: float) -> bool:
        words = getattr(metrics, metric)(**{**settings, **more}).tokenizer(target).split()
        return leaves(words, target, share)

    def judge(sample: Sample) -> Verdict:
        if is_left(sample.output, {}, LEAST_SHARE):
            return Verdict(score=1.0)
        helping = (each for each in HELPING[metric] if is_left(sample.output, each, HELPFUL_SHARE))
        return Verdict(score=0.0, answer=json.dumps(next(helping, {})))

    return judge

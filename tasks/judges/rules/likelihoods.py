"""Judges by log-likelihoods: of choices, of a greedy continuation, or of a whole text.

**Choices.** The numbers are those of lm-eval's multiple_choice tasks: `acc` compares the choices'
log-likelihoods; `acc_norm` first divides them by the choices' lengths, without the text between prompt and
choice. In a tie the first choice counts, as in `numpy.argmax`. `greedy` is the `acc` of lm-eval's
loglikelihood tasks.

**Texts.** The measures are those of lm-eval, per text, from its log-likelihood L. For a text of n bytes
(UTF-8) or n words (separated by white space): bits per byte are -L / (n log 2), perplexity is exp(-L / n).
Scores are fixed functions of these measures. A candidate's mean score is a mean over texts, not the
perplexity of the whole corpus, which weights each text by its length.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Scale, Verdict

TargetKind = Literal["text", "index"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccJudge(Judge[Sample]):
    """The choice with the highest log-likelihood is a target."""

    scale: ClassVar = RIGHT_OR_WRONG

    target: TargetKind = "text"
    """Whether targets are texts of choices, or their positions, starting at 0."""

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if the most probable choice is a target, else 0."""
        return _verdict(sample, self.target, [1] * len(sample.choices))


@dataclass(frozen=True, slots=True, kw_only=True)
class AccNormJudge(Judge[Sample]):
    """The choice with the highest log-likelihood per character, or byte, is a target."""

    scale: ClassVar = RIGHT_OR_WRONG

    target: TargetKind = "text"
    """Whether targets are texts of choices, or their positions, starting at 0."""
    per: Literal["character", "byte"] = "character"
    """Unit of a choice's length; bytes are those of UTF-8."""

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if the choice with the highest length-normalised log-likelihood is a target, else 0."""
        as_bytes = self.per == "byte"
        lengths = [len(each.encode() if as_bytes else each) for each in sample.choices]
        return _verdict(sample, self.target, lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyJudge(Judge[Sample]):
    """Greedy decoding gives the whole first target."""

    scale: ClassVar = RIGHT_OR_WRONG

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if greedy decoding gives the target, else 0; the output is then empty."""
        if not sample.targets:
            return Verdict.unscored("no_target")
        if len(sample.choices) != 1:
            return Verdict.unscored("no_likelihoods")
        return Verdict.scored(bool(sample.output), sample.choices[0] if sample.output else "")


def _verdict(sample: Sample, kind: TargetKind, lengths: Sequence[int]) -> Verdict:
    if not sample.targets:
        return Verdict.unscored("no_target")
    if not sample.choices:
        return Verdict.unscored("no_likelihoods")
    wanted = _positions(sample.targets, sample.choices, kind)
    if not wanted:
        return Verdict.unscored("unreadable_target")
    chosen = int(np.argmax(np.array(sample.loglikelihoods) / np.array(lengths)))
    return Verdict.scored(chosen in wanted, sample.choices[chosen])


def _positions(targets: Sequence[str], choices: Sequence[str], kind: TargetKind) -> set[int]:
    """Positions of the targets among the choices; if choices are equal, a text means the first."""
    if kind == "text":
        return {choices.index(each) for each in targets if each in choices}
    numbers = {int(each) for each in targets if each.isascii() and each.isdigit() and len(each) < 10}
    return {each for each in numbers if each < len(choices)}


BITS = Scale(
    unit="bits per byte, 0 and up, less is better",
    formula="max(0, 1 - bits / 8)",
    convert=lambda bits: 1.0 - bits / 8.0,
)
PER_BYTE, PER_WORD = (
    Scale(
        unit=f"perplexity per {unit}, 1 and up, less is better",
        formula="1 / perplexity",
        convert=lambda perplexity: 1.0 / perplexity,
    )
    for unit in ("byte", "word")
)
MOST_NATS = 700.0
"""Maximum nats per byte or word; a higher value would overflow the perplexity, and the score is 0 anyway."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BitsPerByteJudge(Judge[Sample]):
    """Bits that the model needs for each byte of the text; fewer score higher."""

    scale: ClassVar = BITS

    def judge(self, sample: Sample) -> Verdict:
        """Score of a text: 1 - bits per byte / 8, and at least 0."""
        return _measured(sample, lambda nats: nats / math.log(2.0), _bytes, BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class BytePerplexityJudge(Judge[Sample]):
    """Perplexity of the text per byte; lower scores higher."""

    scale: ClassVar = PER_BYTE

    def judge(self, sample: Sample) -> Verdict:
        """Score of a text: 1 / perplexity, the geometric mean of the bytes' probabilities."""
        return _measured(sample, _perplexity, _bytes, PER_BYTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPerplexityJudge(Judge[Sample]):
    """Perplexity of the text per word; lower scores higher."""

    scale: ClassVar = PER_WORD

    def judge(self, sample: Sample) -> Verdict:
        """Score of a text: 1 / perplexity, the geometric mean of the words' probabilities."""
        return _measured(sample, _perplexity, _words, PER_WORD)


def _measured(
    sample: Sample, measure: Callable[[float], float], units: Callable[[str], int], scale: Scale
) -> Verdict:
    if not sample.loglikelihoods:
        return Verdict.unscored("no_likelihoods")
    # Rounding can make a log-likelihood slightly positive.
    value = measure(max(0.0, -sample.loglikelihoods[0]) / units(sample.choices[0]))
    return Verdict(score=scale.score(value), answer=f"{value:.6g} {scale.unit.partition(',')[0]}")


def _perplexity(nats: float) -> float:
    return math.exp(min(nats, MOST_NATS))


def _bytes(text: str) -> int:
    return len(text.encode())


def _words(text: str) -> int:
    return len(re.split(r"\s+", text))

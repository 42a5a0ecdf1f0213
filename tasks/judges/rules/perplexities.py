"""Measures of how well a model predicts a text, from its log-likelihood L: those of lm-eval, per text.

For a text of n bytes (UTF-8) or n words (separated by white space): bits per byte are -L / (n log 2),
perplexity is exp(-L / n). Scores are fixed functions of them, and a candidate's mean score is a mean over
texts: it is not the perplexity of the whole corpus, which weights each text by its length.
"""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from winnow.tasks.judges.protocol import Judge, Sample, Scale, Verdict

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
"""Maximum nats per byte or word; above it a perplexity overflows, and the score is 0 to the last digit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BitsPerByteJudge(Judge[Sample]):
    """The model needs few bits for each byte of the text."""

    scale: ClassVar = BITS

    def judge(self, sample: Sample) -> Verdict:
        """One minus an eighth of the bits."""
        return _verdict(sample, lambda nats: nats / math.log(2.0), _bytes, BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class BytePerplexityJudge(Judge[Sample]):
    """The text has a low perplexity per byte."""

    scale: ClassVar = PER_BYTE

    def judge(self, sample: Sample) -> Verdict:
        """The geometric mean of the probabilities of bytes."""
        return _verdict(sample, _perplexity, _bytes, PER_BYTE)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPerplexityJudge(Judge[Sample]):
    """The text has a low perplexity per word."""

    scale: ClassVar = PER_WORD

    def judge(self, sample: Sample) -> Verdict:
        """The geometric mean of the probabilities of words."""
        return _verdict(sample, _perplexity, _words, PER_WORD)


def _verdict(
    sample: Sample, measure: Callable[[float], float], units: Callable[[str], int], scale: Scale
) -> Verdict:
    if not sample.loglikelihoods:
        return Verdict.unscored("no_likelihoods")
    # A log-likelihood may be rounded to a little more than 0.
    value = measure(max(0.0, -sample.loglikelihoods[0]) / units(sample.choices[0]))
    return Verdict(score=scale.score(value), answer=f"{value:.6g} {scale.unit.partition(',')[0]}")


def _perplexity(nats: float) -> float:
    return math.exp(min(nats, MOST_NATS))


def _bytes(text: str) -> int:
    return len(text.encode())


def _words(text: str) -> int:
    return len(re.split(r"\s+", text))

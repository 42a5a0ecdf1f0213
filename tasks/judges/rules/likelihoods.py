"""Judges of log-likelihoods: whether the most probable choice is a target, or greedy decoding gives it.

The numbers of choices are those of lm-eval's multiple_choice tasks: `acc` compares the choices'
log-likelihoods, `acc_norm` those divided by the choices' lengths, without the text between prompt and choice.
Of equal ones the first counts, as in `numpy.argmax`. `greedy` is the `acc` of lm-eval's loglikelihood tasks.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from winnow.tasks.judges.protocol import RIGHT_OR_WRONG, Judge, Sample, Verdict

TargetKind = Literal["text", "index"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccJudge(Judge[Sample]):
    """The choice with the highest log-likelihood is a target."""

    scale: ClassVar = RIGHT_OR_WRONG

    target: TargetKind = "text"
    """Whether targets are choices, or their positions, starting at 0."""

    def judge(self, sample: Sample) -> Verdict:
        """One if the most probable choice is a target, else zero."""
        return _verdict(sample, self.target, [1] * len(sample.choices))


@dataclass(frozen=True, slots=True, kw_only=True)
class AccNormJudge(Judge[Sample]):
    """The choice with the highest log-likelihood per character, or byte, is a target."""

    scale: ClassVar = RIGHT_OR_WRONG

    target: TargetKind = "text"
    """Whether targets are choices, or their positions, starting at 0."""
    per: Literal["character", "byte"] = "character"
    """The unit of a choice's length; bytes are those of UTF-8."""

    def judge(self, sample: Sample) -> Verdict:
        """One if the choice with the highest length-normalised log-likelihood is a target, else zero."""
        as_bytes = self.per == "byte"
        lengths = [len(each.encode() if as_bytes else each) for each in sample.choices]
        return _verdict(sample, self.target, lengths)


@dataclass(frozen=True, slots=True, kw_only=True)
class GreedyJudge(Judge[Sample]):
    """Greedy decoding gives the first target, whole."""

    scale: ClassVar = RIGHT_OR_WRONG

    def judge(self, sample: Sample) -> Verdict:
        """One if greedy decoding gives the target, which is then the output; else the output is empty."""
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
    """Positions of the targets among the choices; of equal choices, a text means the first."""
    if kind == "text":
        return {choices.index(each) for each in targets if each in choices}
    numbers = {int(each) for each in targets if each.isascii() and each.isdigit() and len(each) < 10}
    return {each for each in numbers if each < len(choices)}

"""Calls of judge models: those of one comparison, and the tokens of each."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from winnow.tasks.campaign.scored import ScoredCampaign
from winnow.tasks.data.datasets import Example
from winnow.tasks.judges.asking.calls import JudgeCall
from winnow.tasks.judges.protocol import Duel, Judge, Sample, SubjectT
from winnow.tasks.objectives.best_duel.judging import duel_on
from winnow.tasks.simulation.forecast.tokens import counted, drawn_examples, tokenizer_of


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUse:
    """A call needed for a comparison, if its first reply is readable."""

    model: str
    prompt_tokens: float
    """Tokens of everything except the output, averaged over some examples."""
    reply_tokens: float
    """Maximum tokens of the reply."""
    is_weighed: bool
    """Whether the reply is one of a few labels, by log-likelihood, instead of a text."""


def all_uses(checked: ScoredCampaign) -> list[JudgeUse]:
    """Calls of one comparison for its outcome and metrics; calls shared by two judges count twice."""
    examples, seed = checked.dataset.examples, checked.spec.seed
    return [*judge_uses(checked.judge, examples, seed), *metric_uses(checked)]


def metric_uses(checked: ScoredCampaign) -> list[JudgeUse]:
    """The calls of one comparison for its metrics."""
    examples, seed = checked.dataset.examples, checked.spec.seed
    return [use for judge in checked.metrics.values() for use in judge_uses(judge, examples, seed)]


def judge_uses(judge: Judge[Sample], examples: Sequence[Example], seed: int) -> list[JudgeUse]:
    """Calls of one comparison, in order; empty for a judge without models.

    A combination may settle a score without its model: it is counted as if it always used it.
    """
    if judge.parts:
        return [use for part in judge.parts for use in judge_uses(part, examples, seed)]
    drawn = drawn_examples(examples, seed)
    return _uses(judge, [Sample(output="", targets=each.targets, fields=each.fields) for each in drawn])


def duel_uses(judge: Judge[Duel], examples: Sequence[Example], seed: int) -> list[JudgeUse]:
    """Calls of one duel, in order, with almost empty answers."""
    drawn = drawn_examples(examples, seed)
    return _uses(judge, [duel_on(each, "A", "B", has_forms=False, seed=seed) for each in drawn])


def _uses(judge: Judge[SubjectT], subjects: Sequence[SubjectT]) -> list[JudgeUse]:
    calls = [judge.calls(subject, {}) for subject in subjects] if judge.models else []
    return [_use_of(same) for same in zip(*filter(None, calls), strict=False)]


def _use_of(same: Sequence[JudgeCall]) -> JudgeUse:
    """The usage of one call over some examples, with its prompt's tokens averaged."""
    counter, sampling = tokenizer_of(same[0].model.model), same[0].sampling
    replies = [counted(choice, counter) for choice in sampling.choices]
    return JudgeUse(
        model=same[0].model.name,
        prompt_tokens=float(np.mean([counted(call.prompt, counter) for call in same])),
        reply_tokens=max(replies, default=float(sampling.max_tokens)),
        is_weighed=bool(replies),
    )

"""Calls to models that judge: those of one comparison, and the tokens of each."""

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
    """A call that a comparison takes, if its first reply can be read."""

    model: str
    prompt_tokens: float
    """Tokens of all but the output, on average over some examples."""
    reply_tokens: float
    """Tokens of the reply, at most."""
    is_weighed: bool
    """Whether the reply is one of a few labels and not a text."""


def all_uses(checked: ScoredCampaign) -> list[JudgeUse]:
    """The calls of one comparison, for its outcome and its metrics; what two judges share counts twice."""
    examples, seed = checked.dataset.examples, checked.spec.seed
    return [*judge_uses(checked.judge, examples, seed), *metric_uses(checked)]


def metric_uses(checked: ScoredCampaign) -> list[JudgeUse]:
    """The calls of one comparison for its metrics."""
    examples, seed = checked.dataset.examples, checked.spec.seed
    return [use for judge in checked.metrics.values() for use in judge_uses(judge, examples, seed)]


def judge_uses(judge: Judge[Sample], examples: Sequence[Example], seed: int) -> list[JudgeUse]:
    """The calls of one comparison, in order; none of a judge that asks no model.

    A combination may settle a score without its model: it is counted as if it always asked.
    """
    if judge.parts:
        return [use for part in judge.parts for use in judge_uses(part, examples, seed)]
    drawn = drawn_examples(examples, seed)
    return _uses(judge, [Sample(output="", targets=each.targets, fields=each.fields) for each in drawn])


def duel_uses(judge: Judge[Duel], examples: Sequence[Example], seed: int) -> list[JudgeUse]:
    """The calls of one duel, in order, whose answers are hardly longer than nothing."""
    drawn = drawn_examples(examples, seed)
    return _uses(judge, [duel_on(each, "A", "B", has_forms=False, seed=seed) for each in drawn])


def _uses(judge: Judge[SubjectT], subjects: Sequence[SubjectT]) -> list[JudgeUse]:
    calls = [judge.calls(subject, {}) for subject in subjects] if judge.models else []
    return [_use_of(same) for same in zip(*filter(None, calls), strict=False)]


def _use_of(same: Sequence[JudgeCall]) -> JudgeUse:
    """The use of the same call about some examples, its prompt's tokens on average."""
    counter, sampling = tokenizer_of(same[0].model.model), same[0].sampling
    replies = [counted(choice, counter) for choice in sampling.choices]
    return JudgeUse(
        model=same[0].model.name,
        prompt_tokens=float(np.mean([counted(call.prompt, counter) for call in same])),
        reply_tokens=max(replies, default=float(sampling.max_tokens)),
        is_weighed=bool(replies),
    )

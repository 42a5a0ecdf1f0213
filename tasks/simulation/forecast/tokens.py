"""Estimate the tokens of prompts and judge calls, by rendering some examples."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.tasks.campaign.scored import ScoredCampaign
from winnow.tasks.candidates.candidates import Candidate
from winnow.tasks.candidates.likelihood_scoring import Weighing, asked_of
from winnow.tasks.data.datasets import Example
from winnow.tasks.engines.chat import words_of
from winnow.tasks.judges.asking.calls import JudgeCall
from winnow.tasks.judges.protocol import Duel, Judge, Sample, SubjectT
from winnow.tasks.objectives.best_duel.judging import duel_on
from winnow.tasks.plugins.extras import missing_for

SAMPLE = 50
"""Number of examples whose prompts are rendered to estimate tokens."""
CHARACTERS_PER_TOKEN = 4.0
"""Assumed value without a tokenizer.
English prose has about this many; code and other languages have fewer.
"""
TOKENIZER = "tokenizer.json"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PromptTokens:
    """Mean number of input tokens of a request, by candidate."""

    by_arm: FloatArray
    """Mean number of tokens for each arm, shape (K,)."""
    examples: int
    """Number of prompts counted per candidate."""
    guessed: tuple[str, ...]
    """Models without an available tokenizer, for which four characters count as one token."""


def prompt_tokens(
    candidates: Sequence[Candidate],
    examples: Sequence[Example],
    seed: int,
    *,
    weighing: Weighing | None = None,
) -> PromptTokens:
    """Count the tokens of each candidate's prompts, for a random sample of examples.

    A chat template's own tokens are not counted. If models score texts, the prompt counts once with each
    text.
    """
    drawn = drawn_examples(examples, seed)
    counters = {each.model.name: tokenizer_of(each.model.model) for each in candidates}
    known: dict[tuple[str | None, ...], float] = {}
    for each in candidates:
        if each.names[:3] not in known:
            shown = [_shown(each, example, weighing) for example in drawn]
            known[each.names[:3]] = _mean_tokens(shown, counters[each.model.name])
    return PromptTokens(
        by_arm=np.array([known[each.names[:3]] for each in candidates]),
        examples=len(drawn),
        guessed=tuple(name for name, counter in counters.items() if counter is None),
    )


def drawn_examples(examples: Sequence[Example], seed: int) -> list[Example]:
    """The random sample of examples for rendering, equal for all prompts."""
    count = min(SAMPLE, len(examples))
    drawn = np.random.default_rng(seed).choice(len(examples), count, replace=False)
    return [examples[at] for at in drawn.tolist()]


def tokenizer_of(model: str) -> Callable[[str], int] | None:
    """Create a counter of a text's tokens, for a checkpoint in a folder.

    None if no tokenizer is available.
    """
    path = Path(model) / TOKENIZER
    if not path.is_file() or missing_for("local", "a tokenizer"):
        return None
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception:  # the package raises bare exceptions for any damage
        return None
    return lambda text: len(tokenizer.encode(text).ids)


def counted(text: str, counter: Callable[[str], int] | None) -> float:
    """Number of tokens of a text; estimated without a tokenizer."""
    return len(text) / CHARACTERS_PER_TOKEN if counter is None else float(counter(text))


def _shown(candidate: Candidate, example: Example, weighing: Weighing | None) -> list[str]:
    asked = asked_of(candidate, weighing, example.fields, example.key)
    prompt = words_of(asked.prompt)
    return [f"{prompt}{each}" for each in asked.continuations] or [prompt]


def _mean_tokens(shown: Sequence[Sequence[str]], counter: Callable[[str], int] | None) -> float:
    """Mean number of tokens per example, summed over its texts."""
    return float(np.mean([sum(counted(text, counter) for text in texts) for texts in shown]))


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUse:
    """A judge call that a comparison needs, if its first reply is readable."""

    model: str
    prompt_tokens: float
    """Tokens of the prompt without the output, averaged over some examples."""
    reply_tokens: float
    """Maximum number of tokens of the reply."""
    is_weighed: bool
    """Whether the reply is one of a few labels, chosen by log-likelihood, instead of text."""


def all_uses(checked: ScoredCampaign) -> list[JudgeUse]:
    """Judge calls of one comparison, for its outcome and metrics.

    Calls that two judges share count twice.
    """
    examples, seed = checked.dataset.examples, checked.spec.seed
    return [*judge_uses(checked.judge, examples, seed), *metric_uses(checked)]


def metric_uses(checked: ScoredCampaign) -> list[JudgeUse]:
    """Judge calls of one comparison, for its metrics."""
    examples, seed = checked.dataset.examples, checked.spec.seed
    return [use for judge in checked.metrics.values() for use in judge_uses(judge, examples, seed)]


def judge_uses(judge: Judge[Sample], examples: Sequence[Example], seed: int) -> list[JudgeUse]:
    """Calls of one comparison by a judge, in order; empty for a judge without models.

    A combination can settle a score without its model, but it is counted as if it always used it.
    """
    if judge.parts:
        return [use for part in judge.parts for use in judge_uses(part, examples, seed)]
    drawn = drawn_examples(examples, seed)
    return _uses(judge, [Sample(output="", targets=each.targets, fields=each.fields) for each in drawn])


def duel_uses(judge: Judge[Duel], examples: Sequence[Example], seed: int) -> list[JudgeUse]:
    """Calls of one duel, in order, with almost empty outputs."""
    drawn = drawn_examples(examples, seed)
    return _uses(judge, [duel_on(each, "A", "B", has_forms=False, seed=seed) for each in drawn])


def _uses(judge: Judge[SubjectT], subjects: Sequence[SubjectT]) -> list[JudgeUse]:
    calls = [judge.calls(subject, {}) for subject in subjects] if judge.models else []
    return [_use_of(same) for same in zip(*filter(None, calls), strict=False)]


def _use_of(same: Sequence[JudgeCall]) -> JudgeUse:
    """The usage of one call, with its prompt's tokens averaged over some examples."""
    counter, sampling = tokenizer_of(same[0].model.model), same[0].sampling
    replies = [counted(choice, counter) for choice in sampling.choices]
    return JudgeUse(
        model=same[0].model.name,
        prompt_tokens=float(np.mean([counted(call.prompt, counter) for call in same])),
        reply_tokens=max(replies, default=float(sampling.max_tokens)),
        is_weighed=bool(replies),
    )

"""Answering requests that give choices: the same for every engine that can tell next-token probabilities."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from winnow.tasks.engines.choices.next_token import choose_token
from winnow.tasks.engines.choices.probabilities import why_unusable
from winnow.tasks.engines.choices.trees import ChoiceEncoder, ChoiceTree
from winnow.tasks.engines.protocol import Answer, Completion, GenerationFailure, Request


@dataclass(frozen=True, slots=True, kw_only=True)
class NextToken:
    """A question to a model: how probable is each of these tokens here?"""

    ids: list[int]
    """All tokens so far."""
    options: tuple[int, ...]
    """The tokens asked about."""


class OptionLogprobs(NamedTuple):
    """A model's answer to it."""

    logprobs: Mapping[int, float]
    """Natural log-probability of each option before temperature, top-k and top-p."""
    cached_tokens: int | None = None
    """Number of the question's tokens in the engine's prefix cache; None where it does not tell."""


TokenLogprobs = OptionLogprobs | GenerationFailure
"""A model's answer to it, or the reason why there is none."""


class Chooser:
    """Chooses between given texts.

    Args:
        encode: Turns choices into tokens.
        max_model_len: Context window in tokens.
        ask: Answers every question; answer i belongs to question i.
    """

    def __init__(
        self,
        encode: ChoiceEncoder,
        *,
        max_model_len: int,
        ask: Callable[[Sequence[NextToken]], Sequence[TokenLogprobs]],
    ) -> None:
        self._encode = encode
        self._max_model_len = max_model_len
        self._ask = ask

    def answer(self, prompts: Sequence[list[int]], requests: Sequence[Request]) -> list[Answer]:
        """Answer requests whose prompts were encoded; answer i belongs to request i."""
        if not requests:
            return []
        started = time.perf_counter()
        trees = [self._tree(ids, request) for ids, request in zip(prompts, requests, strict=True)]
        told = iter(self._ask(_questions(prompts, trees)))
        share = (time.perf_counter() - started) / len(requests)
        return [
            _chosen(tree, list(islice(told, len(tree.forks))), len(ids), request, share)
            if isinstance(tree, ChoiceTree)
            else tree
            for tree, ids, request in zip(trees, prompts, requests, strict=True)
        ]

    def _tree(self, ids: list[int], request: Request) -> ChoiceTree | GenerationFailure:
        tree = self._encode(request.sampling.choices)
        if isinstance(tree, GenerationFailure):
            return tree
        length = len(ids) + max(len(fork.prefix) for fork in tree.forks)
        if length >= self._max_model_len:
            return GenerationFailure(
                reason="prompt_too_long",
                detail=f"the prompt and the choices have {length} tokens, which leaves no room for one more "
                f"in max_model_len {self._max_model_len}",
            )
        return tree


def _questions(
    prompts: Sequence[list[int]], trees: Sequence[ChoiceTree | GenerationFailure]
) -> list[NextToken]:
    return [
        NextToken(ids=[*ids, *fork.prefix], options=fork.options)
        for ids, tree in zip(prompts, trees, strict=True)
        if isinstance(tree, ChoiceTree)
        for fork in tree.forks
    ]


def _chosen(
    tree: ChoiceTree, told: Sequence[TokenLogprobs], input_tokens: int, request: Request, seconds: float
) -> Answer:
    known: list[OptionLogprobs] = []
    for fork, answer in zip(tree.forks, told, strict=True):
        if isinstance(answer, GenerationFailure):
            return answer
        if why := why_unusable(answer.logprobs, fork.options):
            return GenerationFailure(reason="no_logprobs", detail=f"of the next token the engine gave {why}")
        known.append(answer)
    logprobs = tree.logprobs([each.logprobs for each in known])
    values = np.array(list(logprobs.values()))  # (C,)
    chosen = choose_token(values, request.sampling, np.random.default_rng(request.seed))
    text = list(logprobs)[chosen]
    return Completion(
        text=text,
        finish_reason="stop",
        input_tokens=input_tokens,
        output_tokens=tree.lengths[text],
        seconds=seconds,
        choice_logprobs=logprobs,
        cached_tokens=_cached(known, input_tokens),
    )


def _cached(told: Sequence[OptionLogprobs], input_tokens: int) -> int | None:
    """The number of prompt tokens cached before any of its questions: the first leaves all of them there.

    None where an answer does not tell.
    """
    known = [each.cached_tokens for each in told if each.cached_tokens is not None]
    return min(*known, input_tokens) if len(known) == len(told) else None

"""Answering requests that give continuations: the same for every engine that can tell what its tokens weigh.

The log-likelihood of a continuation with the tokens t_1 ... t_n after a prompt x is

    sum over k = 1 ... n of log P(t_k | x, t_1 ... t_(k-1)),

natural logarithms of the model's own probabilities, before temperature, top-k and top-p. Other than the
choices of a judge (`tasks.engines.choices.trees`), continuations are weighed to their last token, as lm-eval
weighs those of its multiple_choice and loglikelihood tasks, so that one of them may begin another.

Greedy decoding would give a continuation if each of its tokens is at least as probable as any other in its
place. That is lm-eval's `is_greedy`, but where two tokens are equally probable to the last digit: there
lm-eval takes the one with the lower number alone.
"""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from winnow.tasks.engines.choices.choice_scoring import NextToken, TokenLogprobs
from winnow.tasks.engines.choices.continuations import ContinuationEncoder, Continued
from winnow.tasks.engines.choices.probabilities import PLACEHOLDER, why_unusable
from winnow.tasks.engines.protocol import Answer, Completion, GenerationFailure, Request


class KnownTokens(NamedTuple):
    """The tokens of a continuation, as an engine tells of them."""

    logprobs: Sequence[float]
    """Natural log-probability of each."""
    is_greedy: bool
    """Whether none of them has a token in its place that is more probable."""
    cached_tokens: int | None = None
    """Number of the prompt's tokens in the engine's prefix cache; None where it does not tell."""


Weighed = KnownTokens | GenerationFailure
"""An engine's answer about a whole continuation, or the reason why there is none."""

ROUNDING = 0.01
"""A log-probability may be this much above 0: some servers round to two digits."""


class Likelihoods:
    """Weighs continuations.

    Args:
        encode: Turns a prompt and a continuation into tokens.
        ask_next: Answers questions about the next token; where each continuation of a prompt is one token,
            one such question answers for all.
        ask_all: Tells the tokens of each continuation; answer i belongs to question i.
    """

    def __init__(
        self,
        encode: ContinuationEncoder,
        *,
        ask_next: Callable[[Sequence[NextToken]], Sequence[TokenLogprobs]],
        ask_all: Callable[[Sequence[Continued]], Sequence[Weighed]],
    ) -> None:
        self._encode = encode
        self._ask_next = ask_next
        self._ask_all = ask_all

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give continuations; answer i belongs to request i."""
        if not requests:
            return []
        started = time.perf_counter()
        encoded = [self._encoded(request) for request in requests]
        known = {i: each for i, each in enumerate(encoded) if isinstance(each, list)}
        # What is asked of the next token alone does not say which token is the most probable one.
        short = {i: each for i, each in known.items() if _are_next_tokens(each) and not requests[i].is_greedy}
        long = {i: each for i, each in known.items() if i not in short}
        told = dict(zip(short, self._of_next_tokens(list(short.values())), strict=True))
        told |= dict(zip(long, self._of_all_tokens(list(long.values())), strict=True))
        share = (time.perf_counter() - started) / len(requests)
        return [
            each
            if isinstance(each, GenerationFailure)
            else weighed(request, told[i], _tokens_read(each, shared=i in short), share)
            for i, (request, each) in enumerate(zip(requests, encoded, strict=True))
        ]

    def _encoded(self, request: Request) -> list[list[Continued]] | GenerationFailure:
        found: list[list[Continued]] = []
        for continuation in request.continuations:
            each = self._encode(request.asked, continuation)
            if isinstance(each, GenerationFailure):
                return each
            found.append(each)
        return found

    def _of_next_tokens(self, groups: Sequence[list[list[Continued]]]) -> Iterator[Weighed]:
        questions = [
            NextToken(
                ids=group[0][0].ids[:-1], options=tuple(dict.fromkeys(each.ids[-1] for [each] in group))
            )
            for group in groups
        ]
        for group, question, told in zip(groups, questions, self._ask_next(questions), strict=True):
            if isinstance(told, GenerationFailure):
                yield told
            elif why := why_unusable(told.logprobs, question.options):
                yield no_logprobs(f"of the next token the engine gave {why}")
            else:
                logprobs = [told.logprobs[each.ids[-1]] for [each] in group]
                yield KnownTokens(logprobs, is_greedy=False, cached_tokens=told.cached_tokens)

    def _of_all_tokens(self, groups: Sequence[list[list[Continued]]]) -> Iterator[Weighed]:
        told = iter(self._ask_all([each for group in groups for pieces in group for each in pieces]))
        for group in groups:
            yield _sums([[next(told) for _ in pieces] for pieces in group])


def weighed(request: Request, told: Weighed, input_tokens: int, seconds: float) -> Answer:
    """The answer to a request whose continuations have these log-likelihoods."""
    if isinstance(told, GenerationFailure):
        return told
    text = request.continuations[int(np.argmax(told.logprobs))]
    return Completion(
        text=text if told.is_greedy or not request.is_greedy else "",
        finish_reason="stop",
        input_tokens=input_tokens,
        output_tokens=0,
        seconds=seconds,
        choice_logprobs=dict(zip(request.continuations, told.logprobs, strict=True)),
        is_greedy=told.is_greedy if request.is_greedy else None,
        cached_tokens=told.cached_tokens,
    )


def no_logprobs(detail: str) -> GenerationFailure:
    """The failure of a request of whose tokens nothing usable is told."""
    return GenerationFailure(reason="no_logprobs", detail=detail)


def likelihood(logprobs: Sequence[float]) -> float | None:
    """The sum of the log-probabilities of tokens; None where one of them is none, such as NaN."""
    if all(PLACEHOLDER < each <= ROUNDING for each in logprobs):  # NaN is in no interval
        return math.fsum(logprobs)
    return None


def _sums(told: Sequence[Sequence[Weighed]]) -> Weighed:
    """The log-likelihood of each continuation, from what was told of its pieces."""
    sums: list[float] = []
    is_greedy = True
    for pieces in told:
        logprobs: list[float] = []
        for each in pieces:
            if isinstance(each, GenerationFailure):
                return each
            logprobs += each.logprobs
            is_greedy = is_greedy and each.is_greedy
        if (found := likelihood(logprobs)) is None:
            return no_logprobs(f"of a continuation the engine gave the log-probabilities {logprobs[:8]}")
        sums.append(found)
    return KnownTokens(sums, is_greedy)


def _are_next_tokens(group: Sequence[Sequence[Continued]]) -> bool:
    first = group[0][0].ids[:-1]
    return all(
        len(pieces) == 1 and pieces[0].start == len(first) and pieces[0].ids[:-1] == first for pieces in group
    )


def _tokens_read(group: Sequence[Sequence[Continued]], *, shared: bool) -> int:
    """The number of tokens of all sequences, with the prompt once where one question answers for all."""
    if shared:
        return len(group[0][0].ids) + len(group) - 1
    return sum(len(each.ids) for pieces in group for each in pieces)

"""Choosing between given texts at a server of which only OpenAI's API is known.

It tells the few most probable next tokens as texts: a choice has to be one token, and one of those.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from winnow.tasks.engines.choices.next_token import choose_token
from winnow.tasks.engines.choices.probabilities import why_unusable
from winnow.tasks.engines.openai.answers import Generated, read_generated
from winnow.tasks.engines.openai.errors import RequestRefused
from winnow.tasks.engines.openai.requests import (
    SHAPING,
    TOKEN_KEYS,
    answer_bytes,
    generation_body,
    generation_path,
)
from winnow.tasks.engines.openai.server_calls import AskAll, ServerCalls
from winnow.tasks.engines.protocol import Answer, Completion, GenerationFailure, ModelRef, Request

MOST_CHAT_TOKENS = 20  # next tokens that OpenAI's API tells at most, of a chat
MOST_PLAIN_TOKENS = 5  # and of a plain completion

LEAST_SAID = 0.5
"""The least sum that the probabilities of the choices must reach.

Where the model would say something else, as "Yes" in the place of "yes", or a thought, what is left for them
is noise, and their ratio may be turned round."""


class TextChoices:
    """Chooses at a server of which only OpenAI's API is known.

    Args:
        model: The model that is asked.
        calls: The server.
        ask_all: Runs what has to be asked.
    """

    def __init__(self, model: ModelRef, calls: ServerCalls, ask_all: AskAll) -> None:
        self._model = model
        self._calls = calls
        self._ask_all = ask_all

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give choices; answer i belongs to request i."""
        started = time.perf_counter()
        told = self._ask_all(self._ask, requests)
        share = (time.perf_counter() - started) / max(1, len(requests))
        return [
            known if isinstance(known, GenerationFailure) else _chosen(known, request, share)
            for known, request in zip(told, requests, strict=True)
        ]

    async def _ask(self, request: Request) -> Generated | GenerationFailure:
        wanted = (
            {"logprobs": True, "top_logprobs": MOST_CHAT_TOKENS}
            if self._model.chat
            else {"logprobs": MOST_PLAIN_TOKENS}
        )
        body = generation_body(self._model, request) | wanted
        # Some servers tell probabilities after temperature, top-p and the like: those before are wanted.
        plain = {"temperature": 1.0, "top_p": 1.0, **dict.fromkeys(TOKEN_KEYS, 1)}
        body |= {key: value for key, value in plain.items() if key in body}  # model_args take keys out
        for key in SHAPING:
            body.pop(key, None)
        try:
            return await self._calls.post(
                generation_path(self._model),
                body,
                partial(read_generated, chat=self._model.chat),
                most_bytes=answer_bytes(body),
            )
        except RequestRefused as error:
            return error.failure


def _why_unsaid(known: Mapping[str, float], choices: Sequence[str]) -> str | None:
    """The reason why the choices' probabilities say nothing, as the end of a sentence; None where they do."""
    together = math.fsum(math.exp(known[choice]) for choice in choices)
    if together >= LEAST_SAID:
        return None
    return f"that it is none of the choices but with a probability of {together:.2g}"


def _chosen(generated: Generated, request: Request, seconds: float) -> Answer:
    known = generated.first_logprobs
    choices = request.sampling.choices
    spent = Completion(
        text="",
        finish_reason="stop",
        input_tokens=generated.usage.prompt_tokens,
        output_tokens=generated.usage.completion_tokens,
        seconds=seconds,
        cached_tokens=generated.usage.cached_tokens,
        served_as=generated.served_as,
    )
    if why := why_unusable(known, choices) or _why_unsaid(known, choices):
        return GenerationFailure(
            reason="no_logprobs",
            detail=f"of the next token the server tells {why}; choices must be single tokens among its most "
            "probable ones",
            spent=spent,
        )
    logprobs: Mapping[str, float] = {choice: known[choice] for choice in choices}
    values = np.array(list(logprobs.values()))  # (C,)
    position = choose_token(values, request.sampling, np.random.default_rng(request.seed))
    return replace(spent, text=choices[position], choice_logprobs=logprobs)

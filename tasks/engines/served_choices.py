"""Choosing between given texts with a model that is served.

vLLM tells the tokens of a text and the log-probability of any token, so that its answers are those of a
model in our own process; see `tasks.engines.choices`. Other servers tell the few most probable next tokens
as texts: there, a choice has to be one token, and one of those.
"""

import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

import torch

from tasks.engines.choices import ChoiceEncoder
from tasks.engines.choosing import Chooser, NextToken, TokenLogprobs
from tasks.engines.openai_answers import Generated, Tokens, read, read_generated
from tasks.engines.openai_requests import generation_body, generation_path, prompt_fields
from tasks.engines.protocol import Answer, Completion, GenerationFailure, ModelRef, Request
from tasks.engines.server_calls import ServerCalls
from tasks.engines.server_setbacks import RequestRefused
from tasks.engines.token_choice import choose_token

MOST_CHAT_TOKENS = 20  # next tokens that OpenAI's API tells at most, of a chat
MOST_PLAIN_TOKENS = 5  # and of a plain completion

Item = TypeVar("Item")
Result = TypeVar("Result")


class AskAll(Protocol):
    """Asks about all items at once and waits for the answers; answer i belongs to item i."""

    def __call__(self, ask: Callable[[Item], Awaitable[Result]], items: Sequence[Item], /) -> list[Result]:
        """Raises `EngineError`."""


class TokenChoices:
    """Chooses at a vLLM server, token by token.

    Args:
        model: What is asked.
        calls: The server.
        root: Its URL without the version of the API.
        max_model_len: The model's context window in tokens.
        ask_all: Runs what has to be asked.
    """

    unk_token_id = None  # a server does not say which of its tokens stands for unknown characters

    def __init__(
        self, model: ModelRef, calls: ServerCalls, *, root: str, max_model_len: int, ask_all: AskAll
    ) -> None:
        self._model = model
        self._calls = calls
        self._tokenize_url = f"{root}/tokenize"
        self._ask_all = ask_all
        self._choices: dict[str, list[int] | GenerationFailure] = {}
        self._chooser = Chooser(
            ChoiceEncoder(self, vocabulary=sys.maxsize), max_model_len=max_model_len, ask=self._next_logprobs
        )

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give choices; answer i belongs to request i."""
        unknown = {each: None for request in requests for each in request.sampling.choices}
        texts = [each for each in unknown if each not in self._choices]
        self._choices.update(zip(texts, self._ask_all(self._ids_of_choice, texts), strict=True))
        prompts = self._ask_all(self._ids_of_prompt, [request.prompt for request in requests])
        ids = {i: found for i, found in enumerate(prompts) if not isinstance(found, GenerationFailure)}
        chosen = self._chooser.answer(list(ids.values()), [requests[i] for i in ids])
        answers = {**dict(enumerate(prompts)), **dict(zip(ids, chosen, strict=True))}
        return [answers[i] for i in range(len(requests))]

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        """The token ids of a choice, as a tokenizer gives them; raises `ValueError`."""
        found = self._choices[text]
        if isinstance(found, GenerationFailure):
            raise ValueError(found.detail)
        return {"input_ids": found}

    async def _ids_of_choice(self, choice: str) -> list[int] | GenerationFailure:
        return await self._ids({"prompt": choice, "add_special_tokens": False})

    async def _ids_of_prompt(self, prompt: str) -> list[int] | GenerationFailure:
        return await self._ids(prompt_fields(self._model, prompt))

    async def _ids(self, fields: dict[str, Any]) -> list[int] | GenerationFailure:
        body = {"model": self._model.model, **fields}
        try:
            found: Tokens = await self._calls.post(self._tokenize_url, body, partial(read, Tokens))
        except RequestRefused as error:
            return GenerationFailure(reason="bad_prompt", detail=error.failure.detail)
        return found.tokens

    def _next_logprobs(self, questions: Sequence[NextToken]) -> list[TokenLogprobs]:
        return self._ask_all(self._logprobs_of, questions)

    async def _logprobs_of(self, question: NextToken) -> TokenLogprobs:
        body = {
            "model": self._model.model,
            "prompt": question.ids,
            "temperature": 0.0,
            "max_tokens": 1,
            "logprobs": len(question.options),
            "logprob_token_ids": list(question.options),
            "return_tokens_as_token_ids": True,
        }
        try:
            generated = await self._calls.post("/completions", body, partial(read_generated, chat=False))
        except RequestRefused as error:
            return error.failure
        known = generated.first_logprobs
        names = {token: f"token_id:{token}" for token in question.options}
        return {token: known[name] for token, name in names.items() if name in known}


class TextChoices:
    """Chooses at a server of which only OpenAI's API is known.

    Args:
        model: What is asked.
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
        # Some servers tell probabilities after temperature, top-p and top-k: what is wanted are those before.
        body |= {"temperature": 1.0, "top_p": 1.0, "max_tokens": 1}
        body.pop("top_k", None)
        try:
            return await self._calls.post(
                generation_path(self._model), body, partial(read_generated, chat=self._model.chat)
            )
        except RequestRefused as error:
            return error.failure


def _chosen(generated: Generated, request: Request, seconds: float) -> Answer:
    known = generated.first_logprobs
    choices = request.sampling.choices
    if missing := [choice for choice in choices if choice not in known]:
        return GenerationFailure(
            reason="no_logprobs",
            detail=f"the server tells no log-probability of {missing[0]!r} as the next token; choices must "
            "be single tokens among its most probable ones",
        )
    logprobs: Mapping[str, float] = {choice: known[choice] for choice in choices}
    values = torch.tensor(list(logprobs.values()), dtype=torch.float64)  # (C,)
    position = choose_token(values, request.sampling, torch.Generator().manual_seed(request.seed))
    return Completion(
        text=choices[position],
        finish_reason="stop",
        input_tokens=generated.usage.prompt_tokens,
        output_tokens=generated.usage.completion_tokens,
        seconds=seconds,
        choice_logprobs=logprobs,
    )

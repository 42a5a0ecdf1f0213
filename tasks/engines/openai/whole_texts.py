"""Weighing a text by itself at a vLLM server, which tells the tokens of a text and takes tokens in its place.

It is weighed after the token that begins a text, or else after the one that ends it, and in windows where it
is longer than the context, as an engine of ours weighs it; see `tasks.engines.choices.continuations`.
"""

from functools import partial
from typing import NamedTuple

import anyio

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.choices.continuations import Continued, windows
from winnow.tasks.engines.choices.likelihoods import no_logprobs
from winnow.tasks.engines.openai.answers import Generated, TokenizerInfo, Tokens, read, read_generated
from winnow.tasks.engines.openai.errors import NotThere, RequestRefused
from winnow.tasks.engines.openai.requests import bytes_for
from winnow.tasks.engines.openai.server_calls import ServerCalls
from winnow.tasks.engines.protocol import GenerationFailure, ModelRef

UNKNOWN_BEGINNING = GenerationFailure(
    reason="empty_prompt",
    detail="the server does not tell which token begins a text, after which it would be weighed; start "
    "vLLM's server with --enable-tokenizer-info-endpoint, or choose provider vllm or transformers",
)


class WeighedTokens(NamedTuple):
    """The tokens of a text by itself, as a server tells of them."""

    logprobs: list[float]
    """Log-probabilities of its tokens, in order."""
    highest: list[float | None]
    """Log-probability of the most probable token in the place of each."""
    length: int
    """Tokens that were read."""


class WholeTexts:
    """Weighs texts by themselves.

    Args:
        model: The model that is asked.
        calls: The server.
        root: Its URL without the version of the API.
        max_model_len: The model's context window in tokens.
    """

    def __init__(self, model: ModelRef, calls: ServerCalls, *, root: str, max_model_len: int) -> None:
        self._model = model
        self._calls = calls
        self._root = root
        self._longest = max_model_len - 1  # one new token is the least that is written
        self._begins: int | GenerationFailure | None = None
        self._asking = anyio.Lock()

    async def weigh(self, text: str) -> WeighedTokens | GenerationFailure:
        """The log-probability of each of a text's tokens, or why it cannot be told."""
        async with self._asking:
            if self._begins is None:
                self._begins = await self._beginning()
        if isinstance(self._begins, GenerationFailure):
            return self._begins
        ids = await self._ids_of(text)
        if isinstance(ids, GenerationFailure):
            return ids
        whole = ids if ids[:1] == [self._begins] else [self._begins, *ids]
        if len(whole) < 2:
            return GenerationFailure(reason="empty_prompt", detail="the text has no tokens of its own")
        found = WeighedTokens([], [], 0)
        for piece in windows(whole, self._longest):
            told = await self._piece(piece)
            if isinstance(told, GenerationFailure):
                return told
            found = WeighedTokens(
                found.logprobs + told.logprobs, found.highest + told.highest, found.length + told.length
            )
        return found

    async def _piece(self, piece: Continued) -> WeighedTokens | GenerationFailure:
        body = {"model": self._model.model, "prompt": piece.ids, "temperature": 0.0, "max_tokens": 1}
        body |= {"echo": True, "logprobs": 1}
        read_it = partial(read_generated, chat=False)
        try:
            generated: Generated = await self._calls.post(
                "/completions", body, read_it, most_bytes=bytes_for(len(piece.ids))
            )
        except RequestRefused as error:
            return error.failure
        length = len(piece.ids)
        told = generated.prompt_logprobs[piece.start : length]
        known = [each for each in told if each is not None]
        if len(known) != length - piece.start:
            return no_logprobs(
                f"of {length - piece.start} tokens the server told {len(known)} log-probabilities"
            )
        return WeighedTokens(known, generated.prompt_highest[piece.start : length], length)

    async def _beginning(self) -> int | GenerationFailure:
        """The token that begins a text; where a tokenizer puts none before one, what it is called says it."""
        plain, begun = await self._ids_of("a"), await self._ids_of("a", add_special_tokens=True)
        if isinstance(plain, GenerationFailure) or isinstance(begun, GenerationFailure):
            return plain if isinstance(plain, GenerationFailure) else UNKNOWN_BEGINNING
        if len(begun) > len(plain) and begun[0] not in plain:
            return begun[0]
        try:
            info = await self._calls.get(f"{self._root}/tokenizer_info", partial(read, TokenizerInfo))
        except (NotThere, RequestRefused):
            return UNKNOWN_BEGINNING
        ids = await self._ids_of(info.first) if info.first else []
        return ids[0] if isinstance(ids, list) and len(ids) == 1 else UNKNOWN_BEGINNING

    async def _ids_of(self, text: str, *, add_special_tokens: bool = False) -> list[int] | GenerationFailure:
        body: JsonObject = {
            "model": self._model.model,
            "prompt": text,
            "add_special_tokens": add_special_tokens,
        }
        try:
            found = await self._calls.post(
                f"{self._root}/tokenize",
                body,
                partial(read, Tokens),
                most_bytes=bytes_for(len(text.encode())),
            )
        except RequestRefused as error:
            return GenerationFailure(reason="bad_prompt", detail=error.failure.detail)
        return found.tokens

"""Weighing continuations at a server: it is sent prompt and continuation as one text, and echoes its tokens.

How many tokens belong to the prompt, the server tells of the prompt alone. So both are split as an engine of
ours splits them (`tasks.engines.choices.continuations`), but for prompts without a text, which a server
cannot be sent: what begins a text is a tokenizer's secret, that vLLM's servers alone tell (`whole_texts`).
"""

import math
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.choices.continuations import without_end_spaces
from winnow.tasks.engines.choices.likelihoods import KnownTokens, likelihood, no_logprobs, weighed
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.openai.answers import Generated, read_generated
from winnow.tasks.engines.openai.errors import RequestRefused, Server
from winnow.tasks.engines.openai.requests import bytes_for, generation_body
from winnow.tasks.engines.openai.server_calls import AskAll, ServerCalls
from winnow.tasks.engines.openai.whole_texts import WholeTexts
from winnow.tasks.engines.protocol import Answer, GenerationFailure, ModelRef, Request, Sampling

PROBE = ("The sky is", " blue.")
"""A prompt and a continuation that every server can read."""

NEEDED = (
    "does not tell the log-probabilities of a prompt's tokens (completions with echo and logprobs), which "
    "this output_type needs; serve the model with vLLM, or choose provider vllm or transformers"
)

NEEDED_BY_WHOLE_TEXTS = (
    "does not tell how a text by itself is split into tokens, as vLLM's servers alone do and output_type: "
    "perplexity needs; serve the model with vLLM, or choose provider vllm or transformers"
)

NO_TEXT = GenerationFailure(
    reason="empty_prompt",
    detail="the prompt has no text, and only vLLM's servers tell what a text by itself is weighed after; "
    "choose provider vllm or transformers",
)


class _Text(NamedTuple):
    """A prompt and a continuation, as a server tells of them."""

    likelihood: float
    """The natural log-likelihood of the continuation."""
    length: int
    """Number of tokens that were read."""
    is_greedy: bool | None
    """Whether all its tokens are the most probable ones; None where the server does not tell these."""


class TextLikelihoods:
    """Weighs continuations at a server, once that has shown that it can.

    Args:
        model: The model that is asked.
        calls: The server.
        server: The server as messages name it.
        ask_all: Runs what has to be asked.
        whole_texts: Weighs what follows a prompt without a text; None where the server is not vLLM's.

    Raises:
        EngineLoadFailed: If the server refuses to tell log-probabilities of a prompt, or tells others.
    """

    def __init__(
        self,
        model: ModelRef,
        calls: ServerCalls,
        *,
        server: Server,
        ask_all: AskAll,
        whole_texts: WholeTexts | None = None,
    ) -> None:
        self._model = model
        self._server = server
        self._whole_texts = whole_texts
        self._calls = calls
        self._ask_all = ask_all
        self._lengths: dict[str, int | GenerationFailure] = {}
        self._leaves_out_one = False  # of each echo the first token
        probe = Request(prompt=PROBE[0], continuations=PROBE[1:], sampling=Sampling(), seed=0)
        if isinstance(found := self.answer([probe])[0], GenerationFailure):
            raise EngineLoadFailed(model.name, f"{server.url} {NEEDED}: {found.detail}")

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give continuations; answer i belongs to request i.

        Raises:
            EngineLoadFailed: If texts by themselves are to be weighed, and this server cannot.
        """
        if self._whole_texts is None and any(map(_is_whole_text, requests)):
            raise EngineLoadFailed(self._model.name, f"{self._server.url} {NEEDED_BY_WHOLE_TEXTS}")
        started = time.perf_counter()
        pairs = [
            without_end_spaces(request.prompt, each) for request in requests for each in request.continuations
        ]
        self._lengths = {}
        prompts = list(dict.fromkeys(prompt for prompt, _ in pairs))
        self._lengths.update(zip(prompts, self._ask_all(self._length, prompts), strict=True))
        told = iter(self._ask_all(self._weigh, pairs))
        share = (time.perf_counter() - started) / max(1, len(requests))
        return [_answer(request, [next(told) for _ in request.continuations], share) for request in requests]

    async def _length(self, prompt: str) -> int | GenerationFailure:
        if not prompt:
            return 0 if self._whole_texts is not None else NO_TEXT
        found = await self._asked(prompt, {})
        return found if isinstance(found, GenerationFailure) else found.usage.prompt_tokens

    async def _weigh(self, pair: tuple[str, str]) -> _Text | GenerationFailure:
        start = self._lengths[pair[0]]
        if isinstance(start, GenerationFailure):
            return start
        if not pair[0] and self._whole_texts is not None:
            return await self._weigh_alone(self._whole_texts, pair[1])
        found = await self._asked("".join(pair), {"echo": True, "logprobs": 1})
        if isinstance(found, GenerationFailure):
            return found
        length = found.usage.prompt_tokens
        if length <= start:
            return GenerationFailure(
                reason="bad_choices", detail=f"the model has no tokens for {pair[1]!r} after this prompt"
            )
        if (left_out := self._left_out(found)) is None:
            return no_logprobs(
                f"of {length} tokens of the prompt and {found.usage.completion_tokens} behind it the server "
                f"told {len(found.prompt_logprobs)} log-probabilities"
            )
        places = slice(start - left_out, length - left_out)
        told = found.prompt_logprobs[places]
        known = [each for each in told if each is not None]
        total = likelihood(known) if len(known) == length - start else None
        if total is None:
            return no_logprobs(f"of a continuation the server told the log-probabilities {told[:8]}")
        return _Text(total, length, _is_greedy(known, found.prompt_highest[places]))

    def _left_out(self, found: Generated) -> int | None:
        """The number of an echo's first tokens that have no place in what is told; None where nobody can say.

        A server that does not echo tells of the token that it wrote, and of no other. llama-cpp-python's is
        silent of the token that begins a text, which it counts. Without such a token it tells of other
        places, and nothing of the last one: the tokens that it names do not make up the text.
        """
        told, length = len(found.prompt_logprobs), found.usage.prompt_tokens
        missing = length + found.usage.completion_tokens - told
        if missing == 0 or told == length + 1:
            return 0
        if missing == 1 and not self._leaves_out_one:
            self._leaves_out_one = found.names_all_tokens
        return 1 if missing == 1 and self._leaves_out_one else None

    async def _weigh_alone(self, whole_texts: WholeTexts, text: str) -> _Text | GenerationFailure:
        told = await whole_texts.weigh(text)
        if isinstance(told, GenerationFailure):
            return told
        if (total := likelihood(told.logprobs)) is None:
            return no_logprobs(f"of a text the server told the log-probabilities {told.logprobs[:8]}")
        return _Text(total, told.length, _is_greedy(told.logprobs, told.highest))

    async def _asked(self, text: str, wanted: JsonObject) -> Generated | GenerationFailure:
        request = Request(prompt=text, sampling=Sampling(max_tokens=1), seed=0)
        body = generation_body(self._model, request) | wanted
        most_bytes = bytes_for(1) + 256 * len(text.encode())  # a token has a byte at least
        try:
            return await self._calls.post(
                "/completions", body, partial(read_generated, chat=False), most_bytes=most_bytes
            )
        except RequestRefused as error:
            return error.failure


def _is_whole_text(request: Request) -> bool:
    """Whether it is the text of a perplexity: there are two choices at least, and targets may be greedy."""
    return not request.prompt and len(request.continuations) == 1 and not request.is_greedy


def _is_greedy(logprobs: Sequence[float], highest: Sequence[float | None]) -> bool | None:
    """Whether each token has the highest log-probability in its place; None where those are not told."""
    most = [each for each in highest if each is not None and math.isfinite(each)]
    if len(most) != len(logprobs):
        return None
    return all(own >= other for own, other in zip(logprobs, most, strict=True))


def _answer(request: Request, told: Sequence[_Text | GenerationFailure], seconds: float) -> Answer:
    known: list[_Text] = []
    for each in told:
        if isinstance(each, GenerationFailure):
            return each
        if request.is_greedy and each.is_greedy is None:
            return no_logprobs("the server does not tell which token is the most probable in each place")
        known.append(each)
    likelihoods = KnownTokens([each.likelihood for each in known], all(each.is_greedy for each in known))
    return weighed(request, likelihoods, sum(each.length for each in known), seconds)

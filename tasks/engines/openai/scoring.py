"""Log-likelihood scoring of choices and continuations by a server.

See `tasks.engines.scoring` for the definitions. vLLM's server returns the tokens of a text and the
log-probability of any token, so scores equal those of the same model in a local process. For other servers,
only OpenAI's API is assumed:

* A choice must be one token among the few most probable ones, which the server names as texts.
* A continuation is sent together with its prompt as one text, whose tokens the server echoes. A request with
  the prompt alone gives the number of its tokens.
* A text after an empty prompt cannot be scored, because the server does not report the token that begins a
  text.
"""

import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from typing import NamedTuple

import anyio
import numpy as np

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.chat import Prompt
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.next_token import choose_token
from winnow.tasks.engines.openai.answers import Generated, TokenizerInfo, Tokens, read, read_generated
from winnow.tasks.engines.openai.errors import NotThere, RequestRefused, Server
from winnow.tasks.engines.openai.requests import (
    MIB,
    SHAPING,
    TOKEN_KEYS,
    answer_bytes,
    bytes_for,
    generation_body,
    generation_path,
    prompt_fields,
)
from winnow.tasks.engines.openai.server_calls import AskAll, ServerCalls, ServerInfo
from winnow.tasks.engines.probabilities import why_unusable
from winnow.tasks.engines.protocol import (
    Answer,
    Completion,
    GenerationFailure,
    ModelRef,
    Request,
    Sampling,
)
from winnow.tasks.engines.scoring import (
    ChoiceEncoder,
    Chooser,
    Continued,
    KnownTokens,
    NextToken,
    OptionLogprobs,
    TokenLogprobs,
    likelihood,
    likelihood_answer,
    no_logprobs,
    windows,
    without_end_spaces,
)


class ServerScorer:
    """Answer requests that give choices or continuations, by a server.

    Args:
        model: The model.
        calls: The calls to the server.
        server: Description of the server in messages.
        root: URL of the server without the version of the API.
        info: Properties that the server reported.
        ask_all: Sends requests together and waits for their answers.
    """

    def __init__(
        self,
        model: ModelRef,
        calls: ServerCalls,
        *,
        server: Server,
        root: str,
        info: ServerInfo,
        ask_all: AskAll,
    ) -> None:
        self._model, self._calls, self._server = model, calls, server
        self._root, self._ask_all = root, ask_all
        self._window = None if info.vllm is None else info.max_model_len

    def choose(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give choices; answer i belongs to request i."""
        return self._chooser.answer(requests) if requests else []

    def score(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give continuations; answer i belongs to request i.

        Raises:
            EngineLoadFailed: If the server does not return the required log-probabilities.
        """
        return self._likelihoods.answer(requests) if requests else []

    @cached_property
    def _chooser(self) -> "TextChoices | TokenChoices":
        if self._window is None:
            return TextChoices(self._model, self._calls, self._ask_all)
        return TokenChoices(
            self._model, self._calls, root=self._root, max_model_len=self._window, ask_all=self._ask_all
        )

    @cached_property
    def _likelihoods(self) -> "TextLikelihoods":
        whole_texts = None
        if self._window is not None:
            whole_texts = WholeTexts(self._model, self._calls, root=self._root, max_model_len=self._window)
        return TextLikelihoods(
            self._model, self._calls, server=self._server, ask_all=self._ask_all, whole_texts=whole_texts
        )


async def _generated(
    calls: ServerCalls, path: str, body: JsonObject, *, chat: bool = False, most_bytes: int | None = None
) -> Generated | GenerationFailure:
    """Send a body, and return the answer or the reason why the server refuses it."""
    most_bytes = answer_bytes(body) if most_bytes is None else most_bytes
    try:
        return await calls.post(path, body, partial(read_generated, chat=chat), most_bytes=most_bytes)
    except RequestRefused as error:
        return error.failure


TOKEN_BYTES = 16
"""Maximum bytes of a token's id in a list of ids."""


async def _tokens(
    calls: ServerCalls, root: str, model: ModelRef, fields: JsonObject
) -> Tokens | GenerationFailure:
    """Tokenize a prompt by a vLLM server.

    The maximum length of the answer assumes that each token has a byte of the prompt or a template.
    """
    most_bytes = MIB + TOKEN_BYTES * len(json.dumps(fields))
    body = {"model": model.model, **fields}
    try:
        return await calls.post(f"{root}/tokenize", body, partial(read, Tokens), most_bytes=most_bytes)
    except RequestRefused as error:
        return GenerationFailure(reason="bad_prompt", detail=error.failure.detail)


MOST_CHAT_TOKENS = 20
"""Maximum number of next tokens that OpenAI's API returns for a chat."""
MOST_PLAIN_TOKENS = 5
"""Maximum number of next tokens that OpenAI's API returns for a plain completion."""

LEAST_SAID = 0.5
"""Minimum sum of the choices' probabilities.

If the model would write something else, such as "Yes" instead of "yes" or reasoning, the remaining
probabilities of the choices are noise, and their ratio can be reversed.
"""


class TextChoices:
    """Choose by a server of which only OpenAI's API is known.

    Args:
        model: The model.
        calls: The calls to the server.
        ask_all: Sends requests together and waits for their answers.
    """

    def __init__(self, model: ModelRef, calls: ServerCalls, ask_all: AskAll) -> None:
        self._model, self._calls, self._ask_all = model, calls, ask_all

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give choices; answer i belongs to request i."""
        started = time.perf_counter()
        told = self._ask_all(self._ask, requests)
        share = (time.perf_counter() - started) / len(requests)
        return [
            known if isinstance(known, GenerationFailure) else _choice_answer(known, request, share)
            for known, request in zip(told, requests, strict=True)
        ]

    async def _ask(self, request: Request) -> Generated | GenerationFailure:
        wanted = (
            {"logprobs": True, "top_logprobs": MOST_CHAT_TOKENS}
            if self._model.chat
            else {"logprobs": MOST_PLAIN_TOKENS}
        )
        body = generation_body(self._model, request) | wanted
        # Some servers apply temperature and top-p to the probabilities, which are needed without them.
        plain = {"temperature": 1.0, "top_p": 1.0, **dict.fromkeys(TOKEN_KEYS, 1)}
        body |= {key: value for key, value in plain.items() if key in body}  # model_args can remove keys
        for key in SHAPING:
            body.pop(key, None)
        return await _generated(self._calls, generation_path(self._model), body, chat=self._model.chat)


def _why_unsaid(known: Mapping[str, float], choices: Sequence[str]) -> str | None:
    """Reason why no choice is scored, as a clause; None if the choices are probable enough."""
    together = math.fsum(math.exp(known[choice]) for choice in choices)
    if together >= LEAST_SAID:
        return None
    return f"a total probability of only {together:.2g} for the choices"


def _choice_answer(generated: Generated, request: Request, seconds: float) -> Answer:
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
            detail=f"for the next token the server returned {why}; choices must be single tokens among its "
            "most probable ones",
            spent=spent,
        )
    logprobs: Mapping[str, float] = {choice: known[choice] for choice in choices}
    values = np.array(list(logprobs.values()))  # (C,)
    position = choose_token(values, request.sampling, np.random.default_rng(request.seed))
    return replace(spent, text=choices[position], choice_logprobs=logprobs)


UNKNOWN = -1
"""Placeholder id of the token for unknown characters, whose id a server does not return."""
UNKNOWN_NAMES = frozenset({"<unk>", "[UNK]", "<UNK>", "<|unk|>"})


class TokenChoices:
    """Choose by a vLLM server, token by token.

    Args:
        model: The model.
        calls: The calls to the server.
        root: URL of the server without the version of the API.
        max_model_len: The model's context window in tokens.
        ask_all: Sends requests together and waits for their answers.
    """

    unk_token_id = UNKNOWN

    def __init__(
        self, model: ModelRef, calls: ServerCalls, *, root: str, max_model_len: int, ask_all: AskAll
    ) -> None:
        self._model, self._calls, self._root, self._ask_all = model, calls, root, ask_all
        self._choices: dict[str, list[int] | GenerationFailure] = {}
        self._chooser = Chooser(
            ChoiceEncoder(self, vocabulary=sys.maxsize),
            max_model_len=max_model_len,
            ask=partial(ask_all, self._logprobs_of),
        )

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give choices; answer i belongs to request i."""
        unknown = {each: None for request in requests for each in request.sampling.choices}
        texts = [each for each in unknown if each not in self._choices]
        self._choices.update(zip(texts, self._ask_all(self._ids_of_choice, texts), strict=True))
        prompts = self._ask_all(self._ids_of_prompt, [request.asked for request in requests])
        ids = {i: found for i, found in enumerate(prompts) if not isinstance(found, GenerationFailure)}
        chosen = self._chooser.answer(list(ids.values()), [requests[i] for i in ids])
        refused = {i: found for i, found in enumerate(prompts) if isinstance(found, GenerationFailure)}
        answers = {**refused, **dict(zip(ids, chosen, strict=True))}
        return [answers[i] for i in range(len(requests))]

    def __call__(self, text: str, *, add_special_tokens: bool) -> dict[str, list[int]]:
        """Token ids of a choice, as a tokenizer returns them; raises `ValueError`."""
        found = self._choices[text]
        if isinstance(found, GenerationFailure):
            raise ValueError(found.detail)
        return {"input_ids": found}

    async def _ids_of_choice(self, choice: str) -> list[int] | GenerationFailure:
        fields = {"prompt": choice, "add_special_tokens": False, "return_token_strs": True}
        found = await _tokens(self._calls, self._root, self._model, fields)
        if isinstance(found, GenerationFailure):
            return found
        names = found.token_strs or [""] * len(found.tokens)
        return [
            UNKNOWN if name in UNKNOWN_NAMES else token
            for token, name in zip(found.tokens, names, strict=False)
        ]

    async def _ids_of_prompt(self, prompt: Prompt) -> list[int] | GenerationFailure:
        found = await _tokens(self._calls, self._root, self._model, prompt_fields(self._model, prompt))
        return found if isinstance(found, GenerationFailure) else found.tokens

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
        generated = await _generated(self._calls, "/completions", body)
        if isinstance(generated, GenerationFailure):
            return generated
        known = generated.first_logprobs
        names = {token: f"token_id:{token}" for token in question.options}
        logprobs = {token: known[name] for token, name in names.items() if name in known}
        return OptionLogprobs(logprobs, generated.usage.cached_tokens)


PROBE = ("The sky is", " blue.")
"""Prompt and continuation of a trial request, which every server can read."""

NEEDED = (
    "does not return the log-probabilities of a prompt's tokens (completions with echo and logprobs), which "
    "this output_type needs; serve the model with vLLM, or choose provider vllm or transformers"
)

NEEDED_BY_WHOLE_TEXTS = (
    "does not return the tokens of a text without a prompt, which output_type: perplexity needs and only "
    "vLLM's servers offer; serve the model with vLLM, or choose provider vllm or transformers"
)

NO_TEXT = GenerationFailure(
    reason="empty_prompt",
    detail="the prompt is empty, and only vLLM's servers report the token that begins a text; choose "
    "provider vllm or transformers",
)


class ScoredTokens(NamedTuple):
    """Scored tokens of a text, with the highest log-probabilities at their positions."""

    logprobs: list[float]
    """Log-probabilities of the scored tokens, in order."""
    highest: list[float | None]
    """Log-probability of the most probable token at each position; None if not returned."""
    length: int
    """Number of tokens read, including unscored ones."""


class TextLikelihoods:
    """Score continuations by a server, after a trial request.

    Args:
        model: The model.
        calls: The calls to the server.
        server: Description of the server in messages.
        ask_all: Sends requests together and waits for their answers.
        whole_texts: Scores continuations of an empty prompt; None if the server is not vLLM's.

    Raises:
        EngineLoadFailed: If the server does not return usable log-probabilities of a prompt.
    """

    def __init__(
        self,
        model: ModelRef,
        calls: ServerCalls,
        *,
        server: Server,
        ask_all: AskAll,
        whole_texts: "WholeTexts | None" = None,
    ) -> None:
        self._model, self._calls, self._server, self._ask_all = model, calls, server, ask_all
        self._whole_texts = whole_texts
        self._lengths: dict[str, int | GenerationFailure] = {}
        self._leaves_out_one = False  # whether the first token of each echo is missing
        probe = Request(prompt=PROBE[0], continuations=PROBE[1:], sampling=Sampling(), seed=0)
        if isinstance(found := self.answer([probe])[0], GenerationFailure):
            raise EngineLoadFailed(model.name, f"{server.url} {NEEDED}: {found.detail}")

    def answer(self, requests: Sequence[Request]) -> list[Answer]:
        """Answer requests that give continuations; answer i belongs to request i.

        Raises:
            EngineLoadFailed: If texts without a prompt should be scored, and this server cannot do it.
        """
        if self._whole_texts is None and any(map(_is_whole_text, requests)):
            raise EngineLoadFailed(self._model.name, f"{self._server.url} {NEEDED_BY_WHOLE_TEXTS}")
        started = time.perf_counter()
        pairs = [
            without_end_spaces(request.prompt, each) for request in requests for each in request.continuations
        ]
        prompts = list(dict.fromkeys(prompt for prompt, _ in pairs))
        self._lengths = dict(zip(prompts, self._ask_all(self._length, prompts), strict=True))
        told = iter(self._ask_all(self._score, pairs))
        share = (time.perf_counter() - started) / len(requests)
        return [_answer(request, [next(told) for _ in request.continuations], share) for request in requests]

    async def _length(self, prompt: str) -> int | GenerationFailure:
        if not prompt:
            return 0 if self._whole_texts is not None else NO_TEXT
        found = await self._complete(prompt, {})
        return found if isinstance(found, GenerationFailure) else found.usage.prompt_tokens

    async def _score(self, pair: tuple[str, str]) -> ScoredTokens | GenerationFailure:
        start = self._lengths[pair[0]]
        if isinstance(start, GenerationFailure):
            return start
        if not pair[0] and self._whole_texts is not None:
            return await self._whole_texts.score(pair[1])
        found = await self._complete("".join(pair), {"echo": True, "logprobs": 1})
        if isinstance(found, GenerationFailure):
            return found
        length = found.usage.prompt_tokens
        if length <= start:
            return GenerationFailure(
                reason="bad_choices", detail=f"the model has no tokens for {pair[1]!r} after this prompt"
            )
        if (left_out := self._left_out(found)) is None:
            return no_logprobs(
                f"for {length} tokens of the prompt and {found.usage.completion_tokens} after it the server "
                f"returned {len(found.prompt_logprobs)} log-probabilities"
            )
        places = slice(start - left_out, length - left_out)
        told = found.prompt_logprobs[places]
        known = [each for each in told if each is not None]
        if len(known) != length - start or likelihood(known) is None:
            return no_logprobs(f"for a continuation the server returned the log-probabilities {told[:8]}")
        return ScoredTokens(known, found.prompt_highest[places], length)

    def _left_out(self, found: Generated) -> int | None:
        """Number of an echo's first tokens without a returned log-probability; None if unknown.

        A server that does not echo returns only the token that it generated. llama-cpp-python's server omits
        the token that begins a text, but counts it. Without such a token, it returns other positions and
        omits the last one; then the texts of its tokens do not make up the whole text.
        """
        told, length = len(found.prompt_logprobs), found.usage.prompt_tokens
        missing = length + found.usage.completion_tokens - told
        if missing == 0 or told == length + 1:
            return 0
        if missing == 1 and not self._leaves_out_one:
            self._leaves_out_one = found.names_all_tokens
        return 1 if missing == 1 and self._leaves_out_one else None

    async def _complete(self, text: str, wanted: JsonObject) -> Generated | GenerationFailure:
        request = Request(prompt=text, sampling=Sampling(max_tokens=1), seed=0)
        body = generation_body(self._model, request) | wanted
        most_bytes = bytes_for(1) + 256 * len(text.encode())  # a token has at least one byte
        return await _generated(self._calls, "/completions", body, most_bytes=most_bytes)


def _is_whole_text(request: Request) -> bool:
    """Whether a request scores a whole text, for a perplexity.

    It has no prompt and one continuation, unlike choices, and is not greedy, unlike targets.
    """
    return not request.prompt and len(request.continuations) == 1 and not request.is_greedy


def _is_greedy(scored: ScoredTokens) -> bool | None:
    """Whether each token is the most probable one at its position; None if unknown."""
    most = [each for each in scored.highest if each is not None and math.isfinite(each)]
    if len(most) != len(scored.logprobs):
        return None
    return all(own >= other for own, other in zip(scored.logprobs, most, strict=True))


def _answer(request: Request, told: Sequence[ScoredTokens | GenerationFailure], seconds: float) -> Answer:
    known: list[ScoredTokens] = []
    for each in told:
        if isinstance(each, GenerationFailure):
            return each
        if request.is_greedy and _is_greedy(each) is None:
            return no_logprobs("the server does not return the most probable token at each position")
        known.append(each)
    likelihoods = KnownTokens([math.fsum(each.logprobs) for each in known], all(map(_is_greedy, known)))
    return likelihood_answer(request, likelihoods, sum(each.length for each in known), seconds)


UNKNOWN_BEGINNING = GenerationFailure(
    reason="empty_prompt",
    detail="the server does not report the token that begins a text, which scoring needs; start "
    "vLLM's server with --enable-tokenizer-info-endpoint, or choose provider vllm or transformers",
)


class WholeTexts:
    """Score texts without a prompt by a vLLM server, tokenized as by `ContinuationEncoder`.

    Args:
        model: The model.
        calls: The calls to the server.
        root: URL of the server without the version of the API.
        max_model_len: The model's context window in tokens.
    """

    def __init__(self, model: ModelRef, calls: ServerCalls, *, root: str, max_model_len: int) -> None:
        self._model, self._calls, self._root = model, calls, root
        self._longest = max_model_len - 1  # a request generates at least one token
        self._begins: int | GenerationFailure | None = None
        self._asking = anyio.Lock()

    async def score(self, text: str) -> ScoredTokens | GenerationFailure:
        """Log-probabilities of a text's tokens, or the reason why they are unavailable."""
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
        found = ScoredTokens([], [], 0)
        for piece in windows(whole, self._longest):
            told = await self._piece(piece)
            if isinstance(told, GenerationFailure):
                return told
            found = ScoredTokens(
                found.logprobs + told.logprobs, found.highest + told.highest, found.length + told.length
            )
        if likelihood(found.logprobs) is None:
            return no_logprobs(f"for a text the server returned the log-probabilities {found.logprobs[:8]}")
        return found

    async def _piece(self, piece: Continued) -> ScoredTokens | GenerationFailure:
        length = len(piece.ids)
        body = {"model": self._model.model, "prompt": piece.ids, "temperature": 0.0, "max_tokens": 1}
        body |= {"echo": True, "logprobs": 1}
        generated = await _generated(self._calls, "/completions", body, most_bytes=bytes_for(length))
        if isinstance(generated, GenerationFailure):
            return generated
        told = generated.prompt_logprobs[piece.start : length]
        known = [each for each in told if each is not None]
        if len(known) != length - piece.start:
            return no_logprobs(
                f"for {length - piece.start} tokens the server returned {len(known)} log-probabilities"
            )
        return ScoredTokens(known, generated.prompt_highest[piece.start : length], length)

    async def _beginning(self) -> int | GenerationFailure:
        """Token that begins a text: the one that the tokenizer adds, else the one that the server reports."""
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
        fields: JsonObject = {"prompt": text, "add_special_tokens": add_special_tokens}
        found = await _tokens(self._calls, self._root, self._model, fields)
        return found if isinstance(found, GenerationFailure) else found.tokens

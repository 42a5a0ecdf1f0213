"""Parse the answers of an OpenAI-compatible server, which are untrusted."""

import json
from collections.abc import Collection
from contextlib import suppress
from math import inf, isfinite, isnan
from typing import Annotated, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from winnow.tasks.engines.openai.errors import Server, StatusError, Uncounted, Unreadable, words_in
from winnow.tasks.engines.protocol import TOKEN_LIMIT, Answer, Completion, GenerationFailure

MOST_DIGITS = 100
"""Maximum number of digits of an integer; Python's parsing time grows with their square."""

MOST_NESTED = 64
"""Maximum depth of nested brackets in an answer."""

SHOWN_OF_BODY = 40
"""Maximum bytes shown of a body that is not JSON: enough to recognise a web page or a stream."""

LONGEST_NAME = 200
"""Maximum number of characters that are kept of a model's name."""

MOST_LISTED = 10_000
"""Maximum number of models that are read from a server's list."""

STOPPED = frozenset({"stop", "eos", "eos_token", "stop_sequence", "end_turn"})
"""Finish reasons by which servers report a complete text, in lower case; the first is OpenAI's own."""

CUT = frozenset({"length", "max_tokens", "model_length"})
"""Finish reasons by which servers report a text that was cut off at its maximum length."""

BROKEN_OFF = frozenset({"error", "abort", "insufficient_system_resource"})
"""Finish reasons by which servers report that they failed during a text; a new attempt may succeed."""


NOTHING_COUNTED = {"usage": {"prompt_tokens": 0, "completion_tokens": 0}}
"""Token counts put into an answer without counts, to check whether the rest can be read."""


class _Part(BaseModel):
    """Base class for parts of an answer.

    Unneeded fields are ignored, and needed ones must have exactly their type.
    """

    model_config = ConfigDict(strict=True)


PartT = TypeVar("PartT", bound=_Part)


class Usage(_Part):
    """Tokens counted by the server."""

    prompt_tokens: int = Field(ge=0, lt=TOKEN_LIMIT)
    completion_tokens: int = Field(ge=0, lt=TOKEN_LIMIT)
    """Number of generated tokens, including those of reasoning."""
    prompt_tokens_details: object = None
    """Details in which some servers report the tokens found in their prefix caches."""

    @model_validator(mode="before")
    @classmethod
    def _with_thoughts(cls, told: object) -> object:
        """Derive missing token counts from the total.

        Gemini and xAI count reasoning, which they charge, only in the total; some servers return null.
        """
        if not isinstance(told, dict):
            return told
        read, total = told.get("prompt_tokens"), told.get("total_tokens")
        written = told.get("completion_tokens")
        if read is None and type(written) is type(total) is int:
            return told | {"prompt_tokens": max(0, total - written)}
        if type(read) is type(total) is int and type(written) in (int, type(None)) and total < TOKEN_LIMIT:
            return told | {"completion_tokens": max(written or 0, total - read)}
        return told

    @property
    def cached_tokens(self) -> int | None:
        """Number of prompt tokens that were not computed again; None if not reported."""
        told = self.prompt_tokens_details
        cached = told.get("cached_tokens") if isinstance(told, dict) else None
        return cached if type(cached) is int and 0 <= cached <= self.prompt_tokens else None


class Message(_Part):
    """Answer of a chat; without content if all tokens went into reasoning."""

    content: str | list[object] | None = None
    """Text of the answer, or a list of parts: Mistral returns parts if a model reasons, some of them its
    reasoning."""
    refusal: str | None = None
    reasoning: object = None
    """The model's reasoning, used only if it is a text; some servers call it `reasoning_content`."""
    reasoning_content: object = None
    tool_calls: object = None
    """Tools called instead of an answer; some servers nevertheless report the finish reason `stop`."""

    @property
    def text(self) -> str:
        """The answer as a text, also if it consists of parts."""
        parts = self.content if isinstance(self.content, list) else (self.content or "",)
        return "".join(map(_answer_text, parts))

    @property
    def thought(self) -> str | None:
        """The reasoning as a text; None if the server returned no reasoning."""
        parts = self.content if isinstance(self.content, list) else ()
        told = (self.reasoning, self.reasoning_content, "".join(map(_reasoning_text, parts)) or None)
        return next((each for each in told if isinstance(each, str)), None)


THOUGHTS = frozenset({"thinking", "reasoning", "thought"})
"""Types of parts that are reasoning, on servers whose answers have parts."""


def _answer_text(part: object) -> str:
    """Answer text of a part; empty if it is reasoning."""
    if isinstance(part, str):
        return part
    is_thought = isinstance(part, dict) and part.get("type") in THOUGHTS
    return "" if is_thought else _text_under(part, "text")


def _reasoning_text(part: object) -> str:
    """Reasoning text of a part; empty if the part is not reasoning."""
    is_thought = isinstance(part, dict) and part.get("type") in THOUGHTS
    keys = ("thinking", "reasoning", "text", "summary") if is_thought else ("thinking",)
    return next(filter(None, (_text_under(part, key) for key in keys)), "")


def _text_under(part: object, key: str) -> str:
    """Text under a key of a part, which may have parts itself."""
    held = part.get(key) if isinstance(part, dict) else None
    if isinstance(held, list):
        return "".join(_text_under(each, "text") for each in held)
    return held if isinstance(held, str) else ""


Logprob = Annotated[float, BeforeValidator(lambda told: -inf if told is None else told)]
"""A natural logarithm; llama.cpp writes null for the logarithm of 0, which JSON cannot represent."""


class TokenLogprob(_Part):
    """A token and its natural log-probability."""

    token: str
    logprob: Logprob


class TokenPosition(_Part):
    """Token at one position of a chat's answer, with the most probable tokens there."""

    logprob: float | None = None
    top_logprobs: list[TokenLogprob] | None = Field(default=None, fail_fast=True)


class Logprobs(_Part):
    """Log-probabilities in the form of chats (`content`) or of plain completions (`top_logprobs`)."""

    content: list[TokenPosition] | None = Field(default=None, fail_fast=True)
    top_logprobs: list[dict[str, Logprob] | None] | None = Field(default=None, fail_fast=True)
    token_logprobs: list[float | None] | None = Field(default=None, fail_fast=True)
    """Log-probability of each token of a plain completion's text; if the prompt is echoed, its tokens come
    first."""
    tokens: list[str | None] | None = Field(default=None, fail_fast=True)
    """Texts of these tokens."""

    def first(self) -> dict[str, float]:
        """Log-probabilities at the first position, by the token's text as the server writes it.

        If tokens have the same text, the most probable one counts.
        """
        if self.content:
            told = self.content[0].top_logprobs or ()
            return {each.token: each.logprob for each in sorted(told, key=lambda each: each.logprob)}
        return dict(self.top_logprobs[0] or {}) if self.top_logprobs else {}


class Choice(_Part):
    """One of the requested texts; there is only one."""

    text: str | None = None
    message: Message | None = None
    finish_reason: str | None = None
    logprobs: Annotated[Logprobs | None, BeforeValidator(lambda told: told or None)] = None
    """Log-probabilities; servers without them write null or an empty list or object."""


class Generated(_Part):
    """Parsed answer with a completion or a chat completion."""

    choices: list[Choice] = Field(min_length=1, fail_fast=True)
    usage: Usage
    model: object = None
    """The server's name for the model that wrote the text, if it is a text: a dated name, or another model
    that a gateway used instead of the requested one."""

    @property
    def served_as(self) -> str | None:
        """The server's name for the model that wrote the text; None if the server gives no name."""
        return self.model[:LONGEST_NAME] or None if isinstance(self.model, str) else None

    @property
    def first_logprobs(self) -> dict[str, float]:
        """As `Logprobs.first`; empty if the server returned no log-probabilities."""
        logprobs = self.choices[0].logprobs
        return logprobs.first() if logprobs else {}

    @property
    def token_logprobs(self) -> list[float] | None:
        """Log-probability of each token of the text; None unless it is finite for all tokens."""
        if (logprobs := self.choices[0].logprobs) is None:
            return None
        told = logprobs.token_logprobs
        if logprobs.content is not None:
            told = [each.logprob for each in logprobs.content]
        known = [each for each in told or () if each is not None and isfinite(each)]
        return known if told and len(known) == len(told) else None

    @property
    def prompt_highest(self) -> list[float | None]:
        """Highest log-probability returned for each position of `prompt_logprobs`."""
        logprobs = self.choices[0].logprobs
        places = (logprobs.top_logprobs if logprobs else None) or []
        return [_highest(place.values()) if place else None for place in places]

    @property
    def prompt_logprobs(self) -> list[float | None]:
        """Log-probability of each token of an echoed prompt and of the text after it."""
        logprobs = self.choices[0].logprobs
        return (logprobs.token_logprobs if logprobs else None) or []

    @property
    def names_all_tokens(self) -> bool:
        """Whether the tokens with log-probabilities make up the whole text."""
        choice = self.choices[0]
        tokens = (choice.logprobs.tokens if choice.logprobs else None) or []
        return bool(tokens) and "".join(map(str, tokens)).lstrip() == (choice.text or "").lstrip()


def _highest(logprobs: Collection[float]) -> float | None:
    return None if any(map(isnan, logprobs)) else max(logprobs)


class ServedModel(_Part):
    """A model that a server lists."""

    id: str
    owned_by: str | None = None
    max_model_len: int | None = Field(default=None, ge=1, lt=TOKEN_LIMIT)


class Props(_Part):
    """Properties of llama.cpp's server."""

    total_slots: int = Field(ge=1, lt=TOKEN_LIMIT)


class Version(_Part):
    """Version of a vLLM server."""

    version: str = Field(max_length=100)


class Tokens(_Part):
    """A text as token ids, which only vLLM's server returns."""

    tokens: list[Annotated[int, Field(ge=0, lt=2**31)]] = Field(fail_fast=True)
    token_strs: list[str] | None = Field(default=None, fail_fast=True)


class TokenizerInfo(_Part):
    """Special tokens as vLLM's server reports them, if it was started with that endpoint.

    A token is a text, or an object that holds one.
    """

    bos_token: object = None
    eos_token: object = None

    @property
    def first(self) -> str | None:
        """Text of the token that begins a text, or else of the one that ends it; None if unknown."""
        for token in (self.bos_token, self.eos_token):
            spelled = token.get("content") if isinstance(token, dict) else token
            if isinstance(spelled, str) and spelled:
                return spelled
        return None


def json_value(body: bytes) -> object:
    """Parse a JSON body; raises `Unreadable` if invalid, nested too deep, or with an overlong integer."""
    try:
        value = json.loads(body, parse_int=_whole_number)
    except ValueError as error:
        beginning = body[:SHOWN_OF_BODY].decode(errors="replace")
        # At the end, where a part of a key is masked.
        raise Unreadable(f"no JSON: {error}: {beginning}") from error
    except RecursionError as error:
        raise Unreadable("too deeply nested brackets") from error
    _refuse_depth(body, value)
    return value


def _refuse_depth(body: bytes, value: object) -> None:
    """Refuse values nested so deeply that code which walks through them could exhaust the stack."""
    if body.count(b"[") + body.count(b"{") <= MOST_NESTED:
        return
    within: list[object] = [value]
    for _ in range(MOST_NESTED + 1):
        if not within:
            return
        within = [part for each in within for part in _parts_of(each) if isinstance(part, dict | list)]
    raise Unreadable(f"more than {MOST_NESTED} levels of nested brackets")


def _parts_of(value: object) -> Collection[object]:
    return value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _whole_number(digits: str) -> int:
    if len(digits) > MOST_DIGITS:
        raise Unreadable(f"a whole number of {len(digits)} digits (at most {MOST_DIGITS} are allowed)")
    return int(digits)


def read(kind: type[PartT], value: object) -> PartT:
    """Read a JSON value as one of the classes above; raises `Unreadable`."""
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        detail = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in detail["loc"]) or "the answer"
        raise Unreadable(f"{place}: {detail['msg']}") from error


def read_listing(value: object) -> list[ServedModel]:
    """Models listed by a server, as a bare list or under `data`; invalid entries are skipped."""
    listed = value.get("data") if isinstance(value, dict) else value
    found = []
    for each in listed[:MOST_LISTED] if isinstance(listed, list) else []:
        with suppress(ValidationError):
            found.append(ServedModel.model_validate(each))
    return found


def read_generated(value: object, *, chat: bool) -> Generated:
    """Read the answer to a request for a text; raises `Unreadable`."""
    _require_answer(value)
    is_counted = True
    if isinstance(value, dict) and value.get("choices") and not _is_counted(value.get("usage")):
        value, is_counted = value | NOTHING_COUNTED, False
    generated = read(Generated, value)
    choice = generated.choices[0]
    if (choice.message if chat else choice.text) is None:
        raise Unreadable(f"choices.0.{'message' if chat else 'text'}: Field required")
    if (choice.finish_reason or "").lower() in BROKEN_OFF:
        raise Unreadable(f"a text with finish_reason {choice.finish_reason!r}")
    if not is_counted:
        raise Uncounted("it reports no token counts (`usage`), which costs and limits need")
    return generated


def _is_counted(usage: object) -> bool:
    """Whether two of the counts (prompt, text, total) are reported, so that the third follows."""
    if not isinstance(usage, dict):
        return usage is not None  # other types are refused as unreadable
    counts = ("prompt_tokens", "completion_tokens", "total_tokens")
    return sum(usage.get(key) is not None for key in counts) >= 2


def _require_answer(value: object) -> None:
    """Refuse error bodies that gateways and servers send with a status of success."""
    if not isinstance(value, dict):
        return
    if (told := value.get("error")) is not None and not value.get("choices"):
        said = json.dumps(told)
        code = told.get("code") if isinstance(told, dict) else None
        if type(code) is int and 400 <= code < 500:
            raise StatusError(code, {}, said.encode())
        raise Unreadable(f"the error {words_in(told, said).sentence!r}")


def answer_of(
    generated: Generated, server: Server, seconds: float, latency: float, *, wants_logprobs: bool = False
) -> Answer:
    """Convert a server's answer to an `Answer`.

    A text that ended neither complete nor at its maximum length is a failure.
    """
    choice = generated.choices[0]
    refusal = choice.message.refusal if choice.message else None
    text = choice.message.text if choice.message else choice.text
    calls = not text and choice.message is not None and bool(choice.message.tool_calls)
    finish_reason = "tool_calls" if calls else choice.finish_reason
    ended = (finish_reason or "").lower()
    completion = Completion(
        text=refusal or text or "",
        finish_reason="length" if ended in CUT else "stop",
        input_tokens=generated.usage.prompt_tokens,
        output_tokens=generated.usage.completion_tokens,
        seconds=seconds,
        latency=latency,
        reasoning=choice.message.thought if choice.message else None,
        cached_tokens=generated.usage.cached_tokens,
        token_logprobs=generated.token_logprobs if wants_logprobs else None,
        served_as=generated.served_as,
    )
    if refusal:
        why = f"the model refused: {server.shown(refusal)}"
    elif ended not in STOPPED | CUT:
        why = f"the server ended the text with finish_reason {server.shown(repr(finish_reason))}"
    else:
        return completion
    return GenerationFailure(reason="refused", detail=why, spent=completion)

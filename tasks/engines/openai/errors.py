"""Errors of servers that did not answer, and parsing of token limits in a refusal's text.

* the request's own fault (4xx, or only it fails from 500 on)   RequestRefused
* the key, the account, the address or the model                EngineLoadFailed
* anything that may succeed on a new attempt                    a RetryableError
"""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import NamedTuple

import httpx

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.openai.requests import TOKEN_KEYS
from winnow.tasks.engines.protocol import GenerationFailure
from winnow.tasks.text.printable import masked

SHOWN = 300
"""Maximum number of characters shown of a server's message."""

TOO_MUCH = frozenset({429, 498, 503, 529})
"""Statuses by which a server reports overload; 498 is Groq's."""

PASSING = frozenset({408, 409, 424, 425, 429, 498})
"""Statuses below 500 that are not the request's fault; TGI sends 424 if it failed during a text."""

LOADING_WORDS = ("loading model", "is loading", "currently loading")
"""Phrases by which llama.cpp and others report, with status 503, that the model is not loaded yet."""

PROMPT_WORDS = (
    "max_tokens must be at least 1",  # of vLLM: the prompt leaves no room for a token
    "prompt is too long",  # of Anthropic and Fireworks
    "input token count",  # of Gemini
    "available context size",  # of llama.cpp
    "longer than the model's context",  # of SGLang
    "longer than the maximum model length",  # of vLLM
)
"""Phrases by which servers report that a prompt alone is too long."""

CONTEXT_WORDS = (
    "context length",
    "context_length",
    "context window",
    "context_window",
    "context size",
    "context limit",  # of Anthropic
    "n_ctx",
    "max_model_len",  # of vLLM
    "`inputs` tokens + `max_new_tokens` must be <=",  # of TGI, and of Together, whose status is 403
)
"""Phrases by which servers report that a prompt is too long, alone or with the requested tokens."""

TOO_MANY_TOKENS = re.compile(
    r"(?:max_(?:completion_|new_|output_)?tokens|maxoutputtokens|(?:maximum|completion|output) tokens)"
    r".*?(?:too (?:large|high|big|many)|exceed|greater than|less than|lower than|at most|up to|<=|>(?!=)|"
    r"range|maximum (?:value|allowed))"
    r"|(?:requested|too many) (?:\w+ )?tokens.*exceed",
    re.DOTALL,
)
"""Phrases by which servers report that a request allows more tokens than they generate."""

READ_FOR_NUMBERS = 2 * SHOWN
"""Maximum characters of a server's message from which numbers are read; later text may quote a prompt."""

_NOT_TAKEN = (
    r"(?:extra|support|permitted|allowed|unknown|unrecogni[sz]ed|unexpected|invalid|forbidden|deprecated|"
    r"cannot both)"
)
UNKNOWN_KEYS = {
    key: re.compile(rf"\b{key}\b.*{_NOT_TAKEN}|{_NOT_TAKEN}.*\b{key}\b", re.DOTALL)
    for key in ("seed", "top_p", "temperature")
}
"""Phrases by which servers refuse a key, or any value of it except their default."""

RENAMED_LIMIT = re.compile(r"max_tokens\b.*\buse\b.*max_completion_tokens", re.DOTALL)
"""Phrase by which OpenAI reports that a model needs the other name of the token limit."""

TITLE = re.compile(r"<title>\s*([^<]*[^<\s])", re.IGNORECASE)

MODERATION_WORDS = ("moderation", "flagged")
"""Words by which gateways report that a 403 concerns the content of a prompt, not the key."""

USED_UP = (
    "insufficient_quota",
    "billing_not_active",
    "billing_hard_limit_reached",
    "exceeded_current_quota_error",
    "budget_exceeded",  # of LiteLLM's proxy
    "your credit balance is too low",  # of Anthropic
)
"""Codes and first words of messages by which APIs report that no credit is left, with any status."""

BAD_KEY = ("invalid_api_key", "api key not valid")
"""Codes and first words of messages for an invalid key; the second is Gemini's, whose status is 400."""

NO_MODEL = ("model_not_found", "invalid_model", "model not exist", "/chat/completions: invalid model name")
"""Codes and first words of messages for unknown models: of Mistral, DeepSeek and LiteLLM's proxy, with status
400."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Address and key of a server, and its description in messages."""

    model: str
    """Name of the model that is requested there."""
    url: str
    """Base URL, without a password."""
    key: str
    """API key that is sent, which no message may repeat; empty if no key is sent."""
    variable: str | None
    """Name of the environment variable that holds the key."""
    proxy: str = ""
    """Phrase in brackets for the environment's proxy on the way to the server; empty without a proxy."""
    address_key: str = "model_base_url"
    """Key of the campaign's file that holds the URL."""

    @property
    def where(self) -> str:
        """Base URL and the proxy on the way to it, as the subject of a sentence."""
        return f"{self.url}{self.proxy}"

    def shown(self, text: str) -> str:
        """Text of the server or a library, as one short line without the key.

        Servers and libraries may also quote the key as encoded in a URL, or in base64.
        """
        if self.key:
            text = masked(text, {"***": self.key})
        text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
        return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


class RequestRefused(Exception):
    """The server refuses a request, and would refuse it again."""

    def __init__(self, failure: GenerationFailure) -> None:
        super().__init__(failure)
        self.failure = failure


class NoRoom(RequestRefused):
    """The server generates fewer tokens than the request allows, at least after this prompt."""

    def __init__(self, failure: GenerationFailure, sentence: str) -> None:
        super().__init__(failure)
        self.sentence = sentence
        """Part of the server's message that concerns the request."""


class NotThere(EngineLoadFailed):
    """The server does not have the model, or the URL does not exist on it."""


class Forbidden(EngineLoadFailed):
    """The server forbids access with this key, or to this content, as prompt-reading firewalls do."""

    def __init__(self, model: str, why: str, detail: str = "") -> None:
        super().__init__(model, why)
        self.detail = detail
        """Detail of the failure for one request, if the server answers others."""


class Unreadable(Exception):
    """The server's answer does not follow the API; the message says what the server sent."""


class Uncounted(Unreadable):
    """The server's answer has no token counts."""


class NoAnswer(Exception):
    """The server did not answer; the message gives the known reason."""


class StatusError(Exception):
    """The server answered with a status that is not a success."""

    def __init__(self, status: int, headers: Mapping[str, str], said: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.said = said
        """Beginning of the answer's body."""


class Told(NamedTuple):
    """An error as the server words it."""

    sentence: str
    codes: str = ""
    """Codes that identify the error for programs."""
    headers: Mapping[str, str] = {}
    """Headers that would carry the same information on other servers."""

    def is_one_of(self, words: tuple[str, ...]) -> bool:
        """Whether the error has one of these codes, or its message begins with one of them.

        The rest of the message is not searched, because it may quote a prompt.
        """
        return bool(set(words) & set(self.codes.lower().split())) or self.sentence.lower().startswith(words)

    def has_any(self, words: Iterable[str]) -> bool:
        """Whether the codes, or the displayed part of the message, contain any of these words."""
        return any(each in f"{self.codes} {self.sentence[:SHOWN]}".lower() for each in words)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryableError:
    """Reason why an attempt got no answer, if a new attempt may get one."""

    why: str
    """End of a sentence whose subject is the server."""
    too_much: bool = False
    """Whether the server may answer if it receives fewer requests at a time."""
    wait: float | None = None
    """Seconds to wait as requested by the server; None if it requested no wait."""
    is_loading: bool = False
    """Whether the server reports that it is still loading the model."""


def retryable_error(error: Exception, server: Server) -> RetryableError:
    """Classify the exception of a request that may succeed on a new attempt.

    Raises:
        RequestRefused: If the request itself is at fault.
        EngineLoadFailed: If no request can be answered.
        Exception: The exception itself, if no server causes it.
    """
    if isinstance(error, TimeoutError):
        return RetryableError(why="did not answer in time", too_much=True)
    if isinstance(error, httpx.RequestError):
        return RetryableError(why=f"gave no answer: {server.shown(f'{type(error).__name__}: {error}')}")
    if isinstance(error, NoAnswer):
        return RetryableError(why=f"gave no answer: {server.shown(str(error))}")
    if isinstance(error, Unreadable):
        return RetryableError(why=f"sent an invalid answer: {server.shown(str(error))}")
    if isinstance(error, StatusError):
        return _of_status(error, server)
    raise error


def _of_status(error: StatusError, server: Server) -> RetryableError:
    status, told = error.status, _words(error.said)
    said = server.shown(told.sentence)
    if status == 407:
        raise EngineLoadFailed(
            server.model,
            f"{server.where} is unreachable: the proxy requires a user and password (407: {said}); put "
            "them into the proxy's variable, or add the server to $NO_PROXY",
        )
    if status == 402 or told.is_one_of(USED_UP):
        account = f"the account of ${server.variable}" if server.variable else "its account"
        raise EngineLoadFailed(
            server.model,
            f"{server.where} requires payment ({status}: {said}); add credit to {account}, or raise its "
            "limit",
        )
    if status >= 500 or status in PASSING:
        wait = seconds_to_wait({**told.headers, **error.headers})
        is_loading = status == 503 and told.has_any(LOADING_WORDS)
        too_much = status in TOO_MUCH and not is_loading
        return RetryableError(
            why=f"answered {status}: {said}", too_much=too_much, wait=wait, is_loading=is_loading
        )
    detail = f"the server{server.proxy} says {status}: {said}"
    if status in (400, 422) and (remedy := _remedy(told.sentence.lower())):
        detail = f"{detail}; {remedy}"
    is_prompt, is_window = told.has_any(PROMPT_WORDS), told.has_any(CONTEXT_WORDS)
    reason = "prompt_too_long" if is_prompt or is_window else "refused"
    about_prompt = reason == "prompt_too_long" or told.has_any(MODERATION_WORDS)
    if status == 401 or (status == 403 and not about_prompt) or told.is_one_of(BAD_KEY):
        refused = f"the key in ${server.variable}" if server.variable else "requests without a key"
        remedy = "check the key and its permissions" if server.variable else "set api_key"
        why = f"{server.where} refuses {refused} ({status}: {said}); {remedy}"
        raise Forbidden(server.model, why, detail) if status == 403 else EngineLoadFailed(server.model, why)
    if status in (404, 405) or told.is_one_of(NO_MODEL):
        raise NotThere(
            server.model,
            f"{server.where} does not have the model ({status}: {said}); check `model` and `model_base_url`",
        )
    failure = GenerationFailure(reason=reason, detail=detail)
    sentence = told.sentence[:READ_FOR_NUMBERS]
    if not is_prompt and (is_window or TOO_MANY_TOKENS.search(sentence.lower())):
        raise NoRoom(failure, sentence)
    raise RequestRefused(failure)


def _remedy(sentence: str) -> str | None:
    """Setting of `model_args` that removes or renames a key which the server refuses.

    None if the sentence is not about such a key.
    """
    if RENAMED_LIMIT.search(sentence):
        return "model_args: {max_tokens: null, max_completion_tokens: 1000} sends the limit under that name"
    key = next((key for key, refused in UNKNOWN_KEYS.items() if refused.search(sentence)), None)
    return None if key is None else f"model_args: {{{key}: null}} leaves the {key} out of requests"


def _words(said: bytes) -> Told:
    """Error in a body: the value of its key `error`, or else the whole body."""
    text = said.decode(errors="replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        title = TITLE.search(text)  # title of a gateway's web page, whose beginning is only markup
        return Told(sentence=title[1] if title else text or "nothing more")
    body = body[0] if isinstance(body, list) and body else body  # Gemini wraps its errors in a list
    return words_in(body.get("error", body) if isinstance(body, dict) else body, text)


def words_in(told: object, text: str) -> Told:
    """Error as the server words it; `text` if it gives no message."""
    if not isinstance(told, dict):
        return Told(sentence=told if isinstance(told, str) else text)
    sentence = told.get("message") or told.get("detail")
    codes = " ".join(each for key in ("code", "type") if isinstance(each := told.get(key), str))
    return Told(sentence if isinstance(sentence, str) else text, codes, _waits_in(told.get("details")))


def _waits_in(details: object) -> Mapping[str, str]:
    """Wait that Gemini requests ("34s"), in the form of a header."""
    for each in details if isinstance(details, list) else ():
        if isinstance(each, dict) and isinstance(delay := each.get("retryDelay"), str):
            return {"retry-after": delay.removesuffix("s")}
    return {}


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait from Retry-After (seconds or a date) or retry-after-ms.

    None if the headers have no readable time.
    """
    value = headers.get("retry-after", "")
    try:
        seconds = float(headers["retry-after-ms"]) / 1000 if "retry-after-ms" in headers else float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None


MOST_NAMED = 2
"""Maximum number of attempts with a limit that the server names: it may first name its maximum output, and
then the room that the prompt leaves in its window."""

MOST_HALVINGS = 3
"""Maximum number of times that the limit is halved if the server names no limit."""

NUMBER = r"(?<![\w.\-/])(\d{1,3}(?:[,_]\d{3})+|\d+)(?!\w|[.,]\d)"
"""An integer that is not part of a name, unlike 4 in gpt-4 and 32 in 32k."""

WINDOW = (
    r"context[ _-](?:length|window|size|limit)[^\d]{0,60}?" + NUMBER,
    r"(?:max_(?:model|seq)_len|n_ctx)[^\d]{0,20}?" + NUMBER,
    r"(?:must be|be) ?<=? ?" + NUMBER,
    NUMBER + r"[ -](?:tokens? )?(?:maximum )?context",
    r"limit of " + NUMBER,
)
"""Patterns of a context window in tokens."""

PROMPT = (
    NUMBER
    + r" (?:tokens )?(?:in|of|from|for) (?:the |your )?(?:input |text )*(?:prompt|messages?|inputs?)\b",
    NUMBER + r" `?(?:input|inputs|prompt|context)`? tokens",
    r"(?:prompt|inputs?|messages)`?(?: tokens| length)?(?: \w+){0,2}[ :=(]+" + NUMBER,
)
"""Patterns of a prompt's number of tokens."""

TOTAL = (r"requested(?: a total of| about)? " + NUMBER + r" tokens", r"total (?:of )?" + NUMBER)
"""Patterns of the sum of a prompt's number of tokens and `max_tokens`."""

LOWER_BOUND = re.compile(r"at least \d")
"""Pattern of an error whose token count is a lower bound: the server did not read the whole prompt."""

MOST = (
    r"(?:at most|up to|less than or equal to|no more than|not exceed|cannot exceed|greater than|maximum "
    r"(?:is|of|value of|allowed(?: value)? is|output tokens is)|limit of|<=|>)[^\d]{0,30}?" + NUMBER,
    r"[\[(]\d+ ?, ?" + NUMBER + r"[\])]",
)
"""Patterns of the maximum `max_tokens` that a server accepts, whatever the prompt."""

BELOW = (r"(?:lower|less|smaller) than " + NUMBER, NUMBER + r" \(exclusive\)")
"""Patterns of an exclusive upper bound of `max_tokens`."""


class TokenRoom:
    """Lower the token limit of one request until its server accepts it, with few attempts.

    A server refuses a request whose prompt and `max_tokens` together exceed its context window, or whose
    `max_tokens` exceeds its maximum output; the wording differs between servers. With a lower limit it
    generates as much as fits, as a local engine does.
    """

    def __init__(self) -> None:
        self._named = self._halved = 0

    def narrowed(self, body: JsonView, sentence: str) -> JsonObject | None:
        """Body with the limit that a refusal names, or half of its limit; None if no attempt is left.

        Args:
            body: The refused body. None is returned for a body without a limit.
            sentence: The server's message.
        """
        if (limit := limit_of(body)) is None:
            return None
        named, room = room_named(sentence, limit), 0
        if named is not None and named < limit and self._named < MOST_NAMED:
            self._named, room = self._named + 1, named
        elif self._halved < MOST_HALVINGS:
            self._halved, room = self._halved + 1, limit // 2
        lower = {key: min(body[key], room) for key in TOKEN_KEYS if type(body.get(key)) is int}
        return {**body, **lower} if room else None


def limit_of(body: JsonView) -> int | None:
    """Number of tokens that a body allows; None if it sets no limit."""
    return max((body[key] for key in TOKEN_KEYS if type(body.get(key)) is int), default=None)


def why_no_room(body: JsonView, refusal: NoRoom) -> GenerationFailure:
    """Failure of a request for which the server has no room, even with a lower limit."""
    limit, failure = limit_of(body), refusal.failure
    if limit is None or room_named(refusal.sentence, limit) == 0:
        return failure
    return GenerationFailure(
        reason="no_room",
        detail=f"{failure.detail}; the same with max_tokens: {limit}; lower max_tokens or shorten the prompt",
    )


def room_named(sentence: str, limit: int) -> int | None:
    """Number of tokens that a server's message allows; 0 if the prompt leaves no room.

    None if the message gives no number, or counts only the part of the prompt that the server had read.

    Args:
        sentence: The message by which the server refused a request.
        limit: The number of tokens that the request allowed.
    """
    text = sentence.lower()
    window, prompt = _window_and_prompt(text, limit)
    if window is not None and prompt is not None:
        room = max(0, window - prompt)
        return None if room and LOWER_BOUND.search(text) else room
    most = [*_numbers(MOST, text), *(each - 1 for each in _numbers(BELOW, text))]
    most += [] if window is None else [window]
    return max((each for each in most if 0 < each < limit), default=None)


def _window_and_prompt(text: str, limit: int) -> tuple[int | None, int | None]:
    if found := re.search(r"(\d+) \+ (\d+) > (\d+)", text):
        return int(found[3]), int(found[1])
    windows, prompts = _numbers(WINDOW, text), _numbers(PROMPT, text)
    window = next((each for each in windows if each not in prompts), next(iter(windows), None))
    others = [each for each in prompts if each not in (window, limit)]
    totals = [each - limit for each in _numbers(TOTAL, text) if each > limit]
    return window, next(iter([*others, *totals, *(each for each in prompts if each == window)]), None)


def _numbers(patterns: tuple[str, ...], text: str) -> list[int]:
    found = (each for pattern in patterns for each in re.findall(pattern, text))
    return [int(re.sub("[,_]", "", each)) for each in found]

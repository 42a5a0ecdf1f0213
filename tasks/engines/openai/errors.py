"""What it means that a server did not answer: the one place where foreign errors get our names.

* the request's own fault (4xx, or from 500 on alone)    RequestRefused
* the key, the account, the address or the model        EngineLoadFailed
* anything that may be over when it is sent again       a RetryableError
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.engines.protocol import GenerationFailure

SHOWN = 300
"""Characters printed of what a server says."""

TOO_MUCH = frozenset({429, 503, 529})
"""Statuses by which a server says that it has more to do than it can."""

PASSING = frozenset({408, 409, 425, 429})
"""Statuses below 500 that say nothing against the request."""

CONTEXT_WORDS = (
    "context length",
    "context_length",
    "context window",
    "max_tokens must be at least 1",  # of vLLM: the prompt leaves no room for a token
)
"""By which servers say that a prompt is too long."""

MODERATION_WORDS = ("moderation", "flagged")
"""By which gateways say that 403 is about what a prompt says, and not about the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """What a sentence about a server names."""

    model: str
    """What people call the model that is asked there."""
    url: str
    """Base URL, without a password."""
    key: str
    """The key that is sent, which no sentence may repeat; empty for none."""
    variable: str | None
    """Name of the environment variable that it came from."""

    def shown(self, text: str) -> str:
        """What the server or a library said, on one line of bounded length, without the key."""
        text = text.replace(self.key, "***") if self.key else text
        text = " ".join("".join(each if each.isprintable() else " " for each in text).split())
        return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


class RequestRefused(Exception):
    """The server refuses one request, and would again."""

    def __init__(self, failure: GenerationFailure) -> None:
        super().__init__(failure)
        self.failure = failure


class NotThere(EngineLoadFailed):
    """The server does not know the model, or the address."""


class Unreadable(Exception):
    """The server answered, but not as the API says; the message is what it sent in the place of an answer."""


class NoAnswer(Exception):
    """The server did not answer; the message says what is known of it."""


class StatusError(Exception):
    """The server answered with a status that says that this is no answer."""

    def __init__(self, status: int, headers: Mapping[str, str], said: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.headers = headers
        self.said = said
        """The beginning of the body."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryableError:
    """A request was not answered this time."""

    why: str
    """The end of a sentence that begins with the server."""
    too_much: bool = False
    """Whether the server may answer if it is asked for less at once."""
    wait: float | None = None
    """Seconds that it wants to be left alone."""


def retryable_error(error: Exception, server: Server) -> RetryableError:
    """What a failed request means, if it is worth sending again.

    Raises:
        RequestRefused: If the request itself is at fault.
        EngineLoadFailed: If no request can be answered.
        Exception: The error itself, if it is none that a server causes.
    """
    if isinstance(error, TimeoutError):
        return RetryableError(why="did not answer in time", too_much=True)
    if isinstance(error, httpx.RequestError):
        return RetryableError(why=f"gave no answer: {server.shown(f'{type(error).__name__}: {error}')}")
    if isinstance(error, NoAnswer):
        return RetryableError(why=f"gave no answer: {server.shown(str(error))}")
    if isinstance(error, Unreadable):
        return RetryableError(why=f"sent what is no answer: {server.shown(str(error))}")
    if isinstance(error, StatusError):
        return _of_status(error, server)
    raise error


def _of_status(error: StatusError, server: Server) -> RetryableError:
    status, (code, sentence) = error.status, _words(error.said)
    said = server.shown(sentence)
    if status >= 500 or status in PASSING:
        wait = seconds_to_wait(error.headers)
        return RetryableError(why=f"answered {status}: {said}", too_much=status in TOO_MUCH, wait=wait)
    about_prompt = status == 403 and any(word in said.lower() for word in MODERATION_WORDS)
    if status in (401, 402, 403) and not about_prompt:
        refused = f"the key in ${server.variable}" if server.variable else "requests without a key"
        remedy = "look at the key and at what it may use" if server.variable else "name its key as api_key"
        raise EngineLoadFailed(server.model, f"{server.url} refuses {refused} ({status}: {said}); {remedy}")
    if status in (404, 405):
        raise NotThere(
            server.model,
            f"{server.url} does not know it ({status}: {said}); look at `model` and `model_base_url`",
        )
    too_long = any(word in f"{code} {said}".lower() for word in CONTEXT_WORDS)
    reason = "prompt_too_long" if too_long else "refused"
    raise RequestRefused(GenerationFailure(reason=reason, detail=f"the server says {status}: {said}"))


def _words(said: bytes) -> tuple[str, str]:
    """The server's own code and sentence, where the body has them in `error`, or else the body itself."""
    text = said.decode(errors="replace")
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        return "", text or "nothing more"
    return words_in(body.get("error", body) if isinstance(body, dict) else body, text)


def words_in(told: object, text: str) -> tuple[str, str]:
    """The code and the sentence of an error as a server tells it, or else `text`."""
    if not isinstance(told, dict):
        return "", told if isinstance(told, str) else text
    sentence = told.get("message") or told.get("detail")
    return str(told.get("code", ""))[:SHOWN], sentence if isinstance(sentence, str) else text


def seconds_to_wait(headers: Mapping[str, str]) -> float | None:
    """What a server's Retry-After asks for: seconds or a date. None where it asks for nothing readable."""
    value = headers.get("retry-after", "")
    try:
        seconds = float(value)
    except ValueError:
        try:
            date = parsedate_to_datetime(value)
        except (ValueError, OverflowError):
            return None
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        seconds = (date - datetime.now(UTC)).total_seconds()
    return max(0.0, seconds) if math.isfinite(seconds) else None

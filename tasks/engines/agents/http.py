"""Provider `http`: each run sends one request to an endpoint and reads its response."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import wait
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from urllib.parse import quote, urlsplit

from pydantic import AfterValidator, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.agents.kit.calls import CallFailed, Patience, Unreachable, shown, variable_values
from winnow.tasks.engines.agents.kit.replies import json_or_text, refuse_depth
from winnow.tasks.engines.agents.kit.settings import AgentSettings
from winnow.tasks.engines.errors import EngineLoadFailed, one_sentence

if TYPE_CHECKING:
    import anyio
    import httpx

    from winnow.tasks.engines.openai.http_connection import HttpConnection

MOST_BYTES = 4 << 20
"""Maximum bytes of an answer that are read."""

LONGEST_WAIT = 60.0
"""Maximum seconds of waiting that a server requests by Retry-After."""

PLACE = re.compile(r"\{\{\s*([^{}]+?)\s*\}\}")
"""Placeholder in the URL, a header or the body, such as {{ question }} or {{ params.k }}."""

VARIABLE = re.compile(r"\$\{?([A-Za-z_][A-Za-z0-9_]*)\}?")

SECRET_HEADERS = frozenset(
    {
        "authorization",
        "proxy-authorization",
        "cookie",
        "x-api-key",
        "api-key",
        "x-auth-token",
        "x-goog-api-key",
    }
)
"""Headers that hold a key, whose value must come from an environment variable instead of the file."""

OWN_HEADERS = frozenset({"host", "content-length", "transfer-encoding", "connection", "accept-encoding"})
"""Headers that only the connection sets."""


def _url(value: str) -> str:
    parts = urlsplit(PLACE.sub("x", value))
    try:
        is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_url = False
    origin = value.partition("?")[0].split("/", 3)[:3]
    if not is_url or PLACE.search("/".join(origin)):
        raise PydanticCustomError(
            "secret", "must be the URL of an endpoint, such as http://127.0.0.1:8000/answer"
        )
    if "@" in parts.netloc or parts.fragment or VARIABLE.search(value):
        raise PydanticCustomError(
            "secret",
            "must have no user, password, fragment or $NAME, because it is stored; put keys into headers",
        )
    return value


def _pointer(value: str) -> str:
    if value and not value.startswith("/"):
        raise ValueError("must be a JSON pointer such as /choices/0/message/content")
    return value


Pointer = Annotated[str, AfterValidator(_pointer)]


class Settings(AgentSettings):
    """Keys of an entry with `provider: http`."""

    url: Annotated[str, AfterValidator(_url)]
    """URL of the endpoint. {{ NAME }} in its path or query is replaced by a field of the example, prompt,
    seed, params.NAME or sampling.NAME."""
    method: Literal["POST", "GET", "PUT"] = "POST"
    headers: dict[str, str] = Field(default={})
    """Headers of the request; $NAME in a value is replaced by the environment variable."""
    body: JsonValue = None
    """JSON body of the request. Texts in it may have {{ NAME }} as in `url`; a text that is only {{ NAME }}
    becomes the value itself, of any type. Without `body`, POST and PUT send the JSON object that a command
    receives."""
    output: Pointer | None = None
    """JSON pointer to the output in the response; if unset, the response is read like a command's output."""
    usage: Pointer | None = None
    """JSON pointer to the object with input_tokens and output_tokens, or OpenAI's names for them."""
    cost: Pointer | None = None
    """JSON pointer to the price of the run."""
    metrics: Pointer | None = None
    """JSON pointer to an object of numbers."""
    trace: Pointer | None = None
    """JSON pointer to a trace, which is stored with the output."""
    retry_on: list[int] = Field(default=[408, 425, 429, 500, 502, 503, 504])
    """HTTP statuses after which a run is tried again; also done after a failed connection."""

    @model_validator(mode="after")
    def _fits_together(self) -> "Settings":
        for name, value in self.headers.items():
            if not re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name) or name.lower() in OWN_HEADERS:
                raise ValueError(f"headers: {name!r} cannot be set; remove it")
            if name.lower() in SECRET_HEADERS and not VARIABLE.search(value):
                raise PydanticCustomError(
                    "secret",
                    f"headers.{name} holds a key; put it into an environment variable and write $NAME here",
                )
        if self.output is None and any((self.usage, self.cost, self.metrics, self.trace)):
            raise ValueError("usage, cost, metrics and trace need output; add output")
        if self.method == "GET" and self.body is not None:
            raise ValueError("a GET has no body; remove body, or choose method: POST")
        return self

    @classmethod
    def from_text(cls, text: str) -> JsonObject:
        """See `AgentSettings`."""
        return {"url": text}

    @property
    def shown(self) -> str:
        """See `AgentSettings`."""
        return self.url

    @property
    def server(self) -> str | None:
        """See `AgentSettings`."""
        return self.url

    def variables(self) -> Iterator[tuple[str, str]]:
        """See `AgentSettings`."""
        for name, value in self.headers.items():
            for found in VARIABLE.finditer(value):
                yield found[1], f"headers.{name}"

    def check(self) -> None:
        """See `AgentSettings`."""
        variable_values(name for name, _ in self.variables())


class Caller:
    """Send one request for each attempt, with limits against hostile servers.

    Args:
        name: Name of the agent.
        settings: The agent's keys of the campaign's file.
        log_folder: Not used.

    Raises:
        EngineLoadFailed: If no connection can be set up.
    """

    def __init__(self, name: str, settings: Settings, log_folder: Path) -> None:
        from contextlib import ExitStack

        from anyio.from_thread import start_blocking_portal

        self._name, self._settings = name, settings
        self._secrets = variable_values(each for each, _ in settings.variables())
        self._scopes: set[anyio.CancelScope] = set()
        self._was_answered = False
        self._is_closed = False
        self._thread = ExitStack()
        self._loop = self._thread.enter_context(start_blocking_portal(name=f"http {name}"))
        try:
            self._connection: HttpConnection = self._loop.call(self._open)
        except BaseException:
            self._thread.close()
            raise

    def answer(self, message: JsonObject) -> object:
        """See `Caller`."""
        url = self._filled(self._settings.url, message, lambda text: quote(text, safe=""))
        running = self._loop.start_task_soon(self._send, url, self._content(message))
        patience = Patience(self._settings.timeout)
        while not running.done() and (seconds := patience.step()):
            wait([running], timeout=seconds)
        if not running.done():
            running.cancel()
            raise CallFailed(
                f"the endpoint did not answer within {self._settings.timeout:g} s", reason="timed_out"
            )
        return self._read(running.result())

    def close(self) -> None:
        """Abort all requests."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.call(self._close)
            self._thread.close()

    async def _open(self) -> "HttpConnection":
        from winnow.tasks.engines.openai.errors import Server
        from winnow.tasks.engines.openai.http_connection import HttpConnection

        server = Server(
            model=self._name,
            url=PLACE.sub("x", self._settings.url),
            key="",
            variable=None,
            address_key="url",
        )
        return HttpConnection(
            server, max_connections=self._settings.concurrency, headers=self._headers(), follows=False
        )

    def _headers(self) -> dict[str, str]:
        found = {"content-type": "application/json"} if self._settings.method != "GET" else {}
        for name, value in self._settings.headers.items():
            filled = VARIABLE.sub(lambda match: self._secrets[match[1]], value)
            if not (filled.isascii() and filled.isprintable()):
                raise EngineLoadFailed(
                    self._name, f"headers.{name} contains characters that HTTP headers cannot"
                )
            found[name.lower()] = filled
        return found

    async def _close(self) -> None:
        for scope in self._scopes:
            scope.cancel()
        await self._connection.close()

    async def _send(self, url: str, content: bytes | None) -> bytes:
        import anyio
        import httpx

        from winnow.tasks.engines.openai.errors import StatusError, Unreadable

        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                found = await self._connection.send(
                    self._settings.method, url, content, most_bytes=MOST_BYTES
                )
            except StatusError as error:
                raise self._refused(error.status, error.headers, error.said) from error
            except Unreadable as error:
                raise CallFailed(f"the endpoint sent {error}", reason="bad_reply") from error
            except httpx.ConnectError as error:
                why = shown(one_sentence(error), self._secrets)
                raise Unreachable(
                    f"{self._settings.shown} cannot be reached ({why})", may_retry=True
                ) from error
            except (httpx.RequestError, httpx.InvalidURL) as error:
                why = shown(one_sentence(error), self._secrets)
                raise CallFailed(f"the endpoint did not answer ({why})", may_retry=True) from error
            finally:
                self._scopes.discard(scope)
            self._was_answered = True
            return found
        raise CallFailed("the request was aborted")

    def _refused(self, status: int, headers: "Mapping[str, str] | httpx.Headers", said: bytes) -> Exception:
        from winnow.tasks.engines.openai.errors import seconds_to_wait

        words = shown(said.decode(errors="replace"), self._secrets, is_beginning=True)
        why = f"the endpoint answered with status {status}{f': {words}' if words else ''}"
        if status in (401, 403) and not self._was_answered:
            return EngineLoadFailed(self._name, f"{why}; correct headers or the key")
        seconds = seconds_to_wait(headers)
        return CallFailed(
            why,
            may_retry=status in self._settings.retry_on,
            wait=None if seconds is None else min(seconds, LONGEST_WAIT),
            said=_json(said),
        )

    def _content(self, message: JsonObject) -> bytes | None:
        if self._settings.method == "GET":
            return None
        body = message if self._settings.body is None else self._fill(self._settings.body, message)
        return json.dumps(body).encode("ascii")

    def _fill(self, part: object, message: JsonObject) -> object:
        if isinstance(part, Mapping):
            return {key: self._fill(value, message) for key, value in part.items()}
        if isinstance(part, list):
            return [self._fill(each, message) for each in part]
        if not isinstance(part, str):
            return part
        whole = PLACE.fullmatch(part)
        return value_at(whole[1], message) if whole else self._filled(part, message, lambda text: text)

    def _filled(self, text: str, message: JsonObject, spelled: Callable[[str], str]) -> str:
        def value(match: "re.Match[str]") -> str:
            found = value_at(match[1], message)
            return spelled(found if isinstance(found, str) else json.dumps(found))

        return PLACE.sub(value, text)

    def _read(self, body: bytes) -> object:
        settings = self._settings
        if settings.output is None:
            return json_or_text(body)
        try:
            value = json.loads(body)
        except (ValueError, RecursionError) as error:
            said = "the endpoint's answer is not JSON, which `output` needs"
            raise CallFailed(said, reason="bad_reply") from error
        refuse_depth(value)
        found, is_there = pointed(value, settings.output)
        if not is_there:
            raise CallFailed(f"the endpoint's answer has nothing at {settings.output}", reason="bad_reply")
        places = {
            "usage": settings.usage,
            "cost": settings.cost,
            "metrics": settings.metrics,
            "trace": settings.trace,
        }
        others = {key: pointed(value, place)[0] for key, place in places.items() if place is not None}
        return {"output": found, **others}


def _json(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


ROOTS = ("example", "prompt", "params", "sampling", "seed", "limits")
"""Names that refer to a part of the message; any other name is a field of the example."""


def value_at(name: str, message: JsonObject) -> object:
    """Value of a dotted name in a message.

    Raises:
        CallFailed: If the message has no value of this name.
    """
    example = message.get("example", {})
    if name in example:
        return example[name]
    parts = name.split(".")
    found: object = message if parts[0] in ROOTS and parts[0] not in example else example
    for part in parts:
        if not isinstance(found, Mapping) or part not in found:
            raise CallFailed(f"the request needs {name!r}, which is not available", reason="bad_request")
        found = found[part]
    return found


def pointed(value: object, pointer: str) -> tuple[object, bool]:
    """Value at a JSON pointer (RFC 6901), and whether it exists."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and name.isdecimal() and len(name) < 10 and int(name) < len(value):
            value = value[int(name)]
        else:
            return None, False
    return value, True

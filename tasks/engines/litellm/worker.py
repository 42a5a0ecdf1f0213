"""Process in which litellm runs; its peer is `LitellmConnection`.

No other module imports litellm. The process makes single calls, without rounds, retries or checks of answers.
The first message is {"load": {"model", "api_key", "api_base", "url", "timeout"}}. Its answer is {"ready":
version, "takes": parameters that the API supports} or {"load_failed": sentence}. Then each {"number": n,
"call": the arguments of a chat completion as JSON, "most_bytes": limit of a body} is answered by {"number":
n} and one of

* {"answer": the answer that litellm converted to OpenAI's form, as JSON}
* {"status": of a refusal, "retry_after": its header or null, "said": the beginning of its body}
* {"unreadable": reason}, {"silence": reason of a missing answer}, {"elsewhere": origin of a redirect}
* {"unsent": reason why litellm sent no request, "status": status that litellm assigns to it}

in order of completion, until the message {"close": true}. `LitellmConnection` sets the environment of the
process, which contains no keys and no server addresses.

`_guard_http` intercepts every HTTP exchange, whichever code starts it, and restricts the process to one
server. A body is requested uncompressed, read in chunks, and abandoned if it becomes longer than the request
can need. No request is sent to another origin, and names of other hosts are not resolved.
"""

import json
import sys
import traceback
import warnings
from collections.abc import AsyncIterator, Collection
from contextvars import ContextVar
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

import anyio
import httpx

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.errors import one_sentence
from winnow.tasks.engines.openai.errors import SHOWN
from winnow.tasks.engines.openai.http_connection import MOST_REDIRECTS, origin_of
from winnow.tasks.processes.worker_side import ParentLink, run_worker

SAID_BYTES = 4 * SHOWN + 1024
"""Maximum bytes kept of a refusal's body: the part that messages show, with room for JSON around it."""


@dataclass(slots=True, kw_only=True)
class Exchange:
    """Outcome of one call, recorded independently of the exception that litellm raises."""

    most_bytes: int
    """Maximum length of a body that is read."""
    hops: int = 0
    """Number of requests sent for the call, including redirects."""
    status: int | None = None
    """Status of the last answer; None before the first answer."""
    retry_after: str | None = None
    said: bytearray = field(default_factory=bytearray)
    """Beginning of the last answer's body."""
    unreadable: str | None = None
    """Reason why a body was abandoned."""
    elsewhere: str | None = None
    """Another origin to which the request was redirected."""
    silence: str | None = None
    """Reason why no answer arrived."""


EXCHANGE: ContextVar[Exchange] = ContextVar("EXCHANGE")
"""Exchange of the call that the current task makes."""


class GivenUp(httpx.TransportError):
    """An answer is not read further, or a request is not sent."""


class _Bounded(httpx.AsyncByteStream):
    """A body that is read up to the limit of its exchange."""

    def __init__(self, body: httpx.AsyncByteStream, exchange: Exchange) -> None:
        self._body, self._exchange = body, exchange

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for chunk in self._body:
            length += len(chunk)
            self._exchange.said += chunk[: max(0, SAID_BYTES - len(self._exchange.said))]
            if length > self._exchange.most_bytes:
                self._exchange.unreadable = (
                    f"a body of more than {self._exchange.most_bytes} bytes, more than the request can need"
                )
                raise GivenUp(self._exchange.unreadable)
            yield chunk

    async def aclose(self) -> None:
        await self._body.aclose()


def _guard_http(url: str, proxies: Collection[str]) -> None:
    """Restrict this process to one server until it ends."""
    origin = origin_of(httpx.URL(url))
    send = httpx.AsyncHTTPTransport.handle_async_request

    async def guarded(self: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        exchange = EXCHANGE.get(None)
        if exchange is None or not _may_go(exchange, request, origin):
            raise GivenUp(f"blocked request to {request.url.host}")
        request.headers["accept-encoding"] = "identity"
        exchange.hops += 1
        exchange.status = None
        try:
            response = await send(self, request)
        except Exception as error:
            exchange.silence = f"{type(error).__name__}: {error}"
            raise
        return _bounded(response, exchange)

    def refused(self: httpx.HTTPTransport, request: httpx.Request) -> httpx.Response:
        raise GivenUp(f"blocked request to {request.url.host}")

    httpx.AsyncHTTPTransport.handle_async_request = guarded  # type: ignore[method-assign] # the guard
    httpx.HTTPTransport.handle_request = refused  # type: ignore[method-assign] # calls are asynchronous
    _guard_names({host for each in (url, *proxies) if (host := _host(each))})


def _may_go(exchange: Exchange, request: httpx.Request, origin: tuple[str, str, int | None]) -> bool:
    if origin_of(request.url) != origin:
        exchange.elsewhere = f"{request.url.scheme}://{request.url.netloc.decode('ascii', 'replace')}"
        return False
    # The library retries once after a lost connection, but the caller decides on retries.
    is_first = exchange.hops == 0
    is_redirect = exchange.status is not None and 300 <= exchange.status < 400
    return is_first or (is_redirect and exchange.hops <= MOST_REDIRECTS)


def _bounded(response: httpx.Response, exchange: Exchange) -> httpx.Response:
    exchange.status = response.status_code
    exchange.retry_after = response.headers.get("retry-after")
    exchange.said.clear()
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        exchange.unreadable = f"a body compressed by {encoding!r}, which was not requested"
        raise GivenUp(exchange.unreadable)
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = _Bounded(response.stream, exchange)
    return response


def _host(url: str) -> str:
    return (urlsplit(url if "://" in url else f"http://{url}").hostname or "").lower()


def _guard_names(hosts: Collection[str]) -> None:
    """Refuse to look up any other host name; no library can remove an audit hook."""

    def watch(event: str, args: tuple[object, ...]) -> None:
        if event == "socket.getaddrinfo":
            name = args[0].decode("ascii", "replace") if isinstance(args[0], bytes) else str(args[0])
            if name.lower() not in hosts:
                raise PermissionError(f"blocked look-up of the host {name}")

    sys.addaudithook(watch)


ONCE = {"num_retries": 0, "max_retries": 0, "fallbacks": None, "caching": False, "stream": False}
"""Settings with which a call sends a single request, because the caller makes the retries."""

LISTS = (
    "callbacks", "failure_callback", "input_callback", "service_callback", "success_callback",
    "_async_failure_callback", "_async_input_callback", "_async_success_callback",
)  # fmt: skip
"""Names of the lists in which litellm keeps callbacks for each call."""


class Caller:
    """Make calls by litellm, with its telemetry, logs, caches, retries and rewriting disabled."""

    def __init__(self, load: JsonObject) -> None:
        # Imported here, so that the parent is watched during the seconds that this takes.
        import litellm

        warnings.simplefilter("ignore")  # litellm's warnings quote outputs of models

        for name in LISTS:
            setattr(litellm, name, [])
        litellm.telemetry = False
        litellm.turn_off_message_logging = True
        litellm.suppress_debug_info = True
        litellm.disable_hf_tokenizer_download = True
        litellm.disable_aiohttp_transport = True  # the guard is for httpx
        litellm.drop_params = litellm.modify_params = False
        litellm.cache = litellm.num_retries = None
        self._complete = litellm.acompletion
        self._timeout: float = load["timeout"]
        self._fixed = {key: load[key] for key in ("model", "api_key", "api_base")} | ONCE
        self.takes = litellm.get_supported_openai_params(model=load["model"]) or []

    async def reply(self, message: JsonObject) -> JsonObject:
        """Make one call; return its outcome as a message."""
        exchange = Exchange(most_bytes=message["most_bytes"])
        EXCHANGE.set(exchange)
        try:
            with anyio.fail_after(self._timeout):
                response = await self._complete(
                    **json.loads(message["call"]), **self._fixed, timeout=self._timeout
                )
            if exchange.status is None:  # from a cache, or invented
                return {"unsent": "litellm answered without a request", "status": 500}
            return {"answer": json.dumps(_plain(response))}
        except TimeoutError:
            return {"silence": f"nothing within {self._timeout:g} s"}
        except Exception as error:  # litellm has dozens of exceptions, which say less than the exchange
            return _trouble(exchange, error)


def _trouble(exchange: Exchange, error: Exception) -> JsonObject:
    """Message about a failed call, from the recorded exchange rather than the exception."""
    if exchange.elsewhere is not None:
        return {"elsewhere": exchange.elsewhere}
    if exchange.unreadable is not None:
        return {"unreadable": exchange.unreadable}
    if exchange.status is not None and exchange.status >= 300:
        said = exchange.said.decode(errors="replace")
        return {"status": exchange.status, "retry_after": exchange.retry_after, "said": said}
    if exchange.status is not None:
        return {"unreadable": f"litellm cannot read the answer: {_message_of(error)}"}
    if exchange.hops:
        return {"silence": exchange.silence or _message_of(error)}
    return {"unsent": _message_of(error), "status": getattr(error, "status_code", 500)}


def _message_of(error: Exception) -> str:
    """Message of litellm, without the traceback that some of its messages contain."""
    return one_sentence(error).partition(" Traceback (most recent call last)")[0]


def _plain(response: Any) -> JsonObject:  # noqa: ANN401 -- of litellm, whose types are not looked at
    """First text of an answer with its metadata; `usage` is None if tokens were not counted."""
    choice, usage = response.choices[0], getattr(response, "usage", None)
    # litellm writes 0 for missing counts.
    counted = usage and usage.prompt_tokens and (usage.completion_tokens or not choice.message.content)
    return {
        "choices": [
            {
                "finish_reason": choice.finish_reason,
                "message": {
                    "content": choice.message.content,
                    "refusal": getattr(choice.message, "refusal", None),
                    "reasoning_content": getattr(choice.message, "reasoning_content", None),
                },
            }
        ],
        "usage": {key: getattr(usage, key) for key in ("prompt_tokens", "completion_tokens")}
        if counted
        else None,
    }


def main(parent: ParentLink) -> None:
    """Make the requested calls until a close message."""
    load = parent.receive()["load"]
    _guard_http(load["url"], [each for key, each in getproxies().items() if key != "no"])
    try:
        caller = Caller(load)
    except Exception as error:  # importing litellm can raise anything
        traceback.print_exc()
        parent.send({"load_failed": one_sentence(error)})
        return
    parent.send({"ready": version("litellm"), "takes": caller.takes})
    anyio.run(_serve, parent, caller)


async def _serve(parent: ParentLink, caller: Caller) -> None:
    async def answer(message: JsonObject) -> None:
        reply = await caller.reply(message)
        parent.send({**reply, "number": message["number"]})

    async with anyio.create_task_group() as tasks:
        while "close" not in (message := await anyio.to_thread.run_sync(parent.receive)):
            tasks.start_soon(answer, message)
        tasks.cancel_scope.cancel()


if __name__ == "__main__":
    run_worker(main)

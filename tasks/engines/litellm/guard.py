"""Restriction of the litellm process to one server: every HTTP exchange passes here, whoever starts it.

A body is read in chunks, and abandoned once it is longer than the request can need. It is requested
uncompressed, and nothing is sent to another origin. Names of other machines are not even looked up.
"""

import sys
from collections.abc import AsyncIterator, Collection
from contextvars import ContextVar
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx

from winnow.tasks.engines.openai.errors import SHOWN
from winnow.tasks.engines.openai.http_connection import MOST_REDIRECTS, origin_of

SAID_BYTES = 4 * SHOWN + 1024
"""Bytes kept of the body of a refusal: as much as is shown, with room for its JSON."""


@dataclass(slots=True, kw_only=True)
class Exchange:
    """Outcome of one call; the library may raise any exception about it."""

    most_bytes: int
    """Maximum length of a body that is read."""
    hops: int = 0
    """Requests sent for it: the first one, and those to which it was redirected."""
    status: int | None = None
    """Status of the last answer; None before any."""
    retry_after: str | None = None
    said: bytearray = field(default_factory=bytearray)
    """Beginning of the last answer's body."""
    unreadable: str | None = None
    """Reason why a body was abandoned."""
    elsewhere: str | None = None
    """Another origin to which the request was redirected."""
    silence: str | None = None
    """Reason why no answer came."""


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


def guard_http(url: str, proxies: Collection[str]) -> None:
    """Restrict this process to one server until it ends.

    Args:
        url: URL of the server; only its origin is used.
        proxies: URLs of the proxies that requests go through.
    """
    origin = origin_of(httpx.URL(url))
    send = httpx.AsyncHTTPTransport.handle_async_request

    async def guarded(self: httpx.AsyncHTTPTransport, request: httpx.Request) -> httpx.Response:
        exchange = EXCHANGE.get(None)
        if exchange is None or not _may_go(exchange, request, origin):
            raise GivenUp(f"no request goes to {request.url.host}")
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
        raise GivenUp(f"no request goes to {request.url.host}")

    httpx.AsyncHTTPTransport.handle_async_request = guarded  # type: ignore[method-assign] # that is the guard
    httpx.HTTPTransport.handle_request = refused  # type: ignore[method-assign] # litellm is asked for none
    _guard_names({host for each in (url, *proxies) if (host := _host(each))})


def _may_go(exchange: Exchange, request: httpx.Request, origin: tuple[str, str, int | None]) -> bool:
    if origin_of(request.url) != origin:
        exchange.elsewhere = f"{request.url.scheme}://{request.url.netloc.decode('ascii', 'replace')}"
        return False
    # The library retries once after a lost connection; the number of retries is decided by the caller.
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
    """Refuse to look up any host name but these; no library can remove an audit hook."""

    def watch(event: str, args: tuple[object, ...]) -> None:
        if event == "socket.getaddrinfo":
            name = args[0].decode("ascii", "replace") if isinstance(args[0], bytes) else str(args[0])
            if name.lower() not in hosts:
                raise PermissionError(f"the address of {name} is not looked up")

    sys.addaudithook(watch)

"""One HTTP exchange with a server, sent to that server only and bounded in cost.

A body is read in chunks, and abandoned if it becomes longer than the request can need. It is requested
uncompressed, and refused in any other form, so that it cannot grow in memory. The HTTP library limits headers
(100 KiB), the caller the time.
"""

import os
from collections.abc import Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx

from winnow.tasks.engines.errors import EngineLoadFailed, one_sentence
from winnow.tasks.engines.openai.errors import SHOWN, Server, StatusError, Unreadable
from winnow.tasks.engines.openai.requests import KIB, MIB
from winnow.tasks.engines.server_keys import OPENAI_URL

LISTING_BYTES = 8 * MIB
"""Maximum length of a list of models; gateways list hundreds of them with descriptions."""

MOST_REDIRECTS = 5

PLAIN = {"accept": "application/json", "accept-encoding": "identity", "user-agent": "winnow"}
"""Headers of every request."""

ACCOUNT = {"OPENAI_ORG_ID": "openai-organization", "OPENAI_PROJECT_ID": "openai-project"}
"""Variables with an account at OpenAI -> headers that send it to OpenAI, and to no other server."""


class HttpConnection:
    """Connections to one server, for the event loop in which the object was created.

    Args:
        server: The server that receives the requests.
        max_connections: Maximum number of connections.
        headers: Headers to send instead of a key and an account; None sends these.
        follows: Whether redirects to the same origin are followed.

    Raises:
        EngineLoadFailed: If the URL is invalid, or the key or the account at OpenAI cannot be sent in a
            header.
    """

    def __init__(
        self,
        server: Server,
        *,
        max_connections: int,
        headers: Mapping[str, str] | None = None,
        follows: bool = True,
    ) -> None:
        self._server, self._follows = server, follows
        try:
            self._origin = origin_of(httpx.URL(server.url))
            is_local = is_loopback(httpx.URL(server.url).host)
            self._client = httpx.AsyncClient(
                headers={**PLAIN, **headers}
                if headers is not None
                else _headers(server, is_openai=self._origin == origin_of(httpx.URL(OPENAI_URL))),
                timeout=None,  # the caller bounds the whole exchange
                trust_env=not is_local,  # proxies
                verify=httpx.create_ssl_context() if is_local and server.url.startswith("https") else True,
                limits=httpx.Limits(
                    max_connections=max_connections, max_keepalive_connections=max_connections
                ),
                # Cookies of a server are neither kept nor sent back.
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            )
        except (httpx.InvalidURL, ValueError, ImportError) as error:  # of the URL, or of a proxy's
            raise EngineLoadFailed(
                server.model,
                f"no connection to {server.url} can be set up ({server.shown(one_sentence(error))}); correct "
                f"{server.address_key}, or the proxy in the environment",
            ) from error

    async def send(self, method: str, url: str, content: bytes | None, *, most_bytes: int) -> bytes:
        """Send a request and return the body of the answer.

        Args:
            method: "GET", "POST" or "PUT".
            url: A URL on this server.
            content: A JSON text, or None for no body.
            most_bytes: Maximum length of a body that is read.

        Raises:
            StatusError: If the server answers with a status from 300 on that is not a followed redirect.
            Unreadable: If the body is too long or compressed, or there are too many redirects.
            EngineLoadFailed: If the server redirects the request to another server.
            httpx.RequestError: If the server does not answer.
        """
        headers = {} if content is None else {"content-type": "application/json"}
        request = self._client.build_request(method, url, content=content, headers=headers)
        for _ in range(1 + MOST_REDIRECTS):
            response = await self._client.send(request, stream=True)
            try:
                if response.next_request is None or not self._follows:
                    return await _body(response, most_bytes)
                request = response.next_request
            finally:
                await response.aclose()
            self._refuse_elsewhere(request.url)
            if request.method != method and response.status_code != httpx.codes.SEE_OTHER:
                # Browsers send a GET instead; an API that has moved expects the same request.
                request = self._client.build_request(method, request.url, content=content, headers=headers)
        raise Unreadable(f"more than {MOST_REDIRECTS} redirects")

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()

    def _refuse_elsewhere(self, url: httpx.URL) -> None:
        if origin_of(url) != self._origin:
            raise EngineLoadFailed(
                self._server.model,
                f"{self._server.url} redirects requests to {self._server.shown(str(url))}, which gets no "
                f"prompts and no keys; if you mean that server, set {self._server.address_key} to its URL",
            )


async def _body(response: httpx.Response, most_bytes: int) -> bytes:
    status = response.status_code
    encoding = response.headers.get("content-encoding", "").strip().lower() or "identity"
    if status >= 300:
        said = b"" if encoding != "identity" else await _beginning(response)
        raise StatusError(status, response.headers, said)
    if encoding != "identity":
        raise Unreadable(f"a body compressed by {encoding!r}, which was not requested")
    told = response.headers.get("content-length", "")
    body = bytearray()
    if not _is_above(told, most_bytes):
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) > most_bytes:
                break
        else:
            return bytes(body)
    raise Unreadable(f"a body of more than {most_bytes} bytes, more than the request can need")


async def _beginning(response: httpx.Response) -> bytes:
    """Part of a body that messages may show."""
    said = bytearray()
    async for chunk in response.aiter_raw():
        said += chunk
        if len(said) > 4 * SHOWN + KIB:  # with room for JSON around it, and four bytes per character
            break
    return bytes(said)


def _is_above(digits: str, limit: int) -> bool:
    """Whether the number in a header is above a limit, even with very many digits."""
    return digits.isdecimal() and (len(digits) > 18 or int(digits) > limit)


def origin_of(url: httpx.URL) -> tuple[str, str, int | None]:
    """Scheme, host and port; the port is None if it is the default."""
    return url.scheme, url.host, url.port


def _headers(server: Server, *, is_openai: bool) -> Mapping[str, str]:
    headers = dict(PLAIN)
    sent: dict[str, tuple[str | None, str]] = {}
    if server.key:
        sent["authorization"] = server.variable, f"Bearer {server.key}"
    if is_openai:
        accounts = {header: (name, os.environ.get(name, "").strip()) for name, header in ACCOUNT.items()}
        sent |= {header: (name, value) for header, (name, value) in accounts.items() if value}
    for header, (variable, value) in sent.items():
        if not (value.isascii() and value.isprintable()):
            raise EngineLoadFailed(
                server.model,
                f"${variable} contains characters that HTTP headers cannot; set it to the plain key or name",
            )
        headers[header] = value
    return headers


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself, which no proxy can reach instead."""
    name = host.strip("[]").rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


def through_proxy(url: str) -> str:
    """Phrase for the proxy on the way to a URL, without its password; empty without a proxy."""
    proxies = getproxies()
    try:
        parts = urlsplit(url)
        scheme = parts.scheme if parts.scheme in proxies else "all"
        if scheme not in proxies or is_loopback(parts.hostname or "") or proxy_bypass(parts.hostname or ""):
            return ""
        proxy = proxies[scheme]
        shown = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
    except ValueError:  # an invalid URL is reported when it is used
        return ""
    address = shown._replace(netloc=shown.netloc.rpartition("@")[2]).geturl()
    named = (
        name for name, value in os.environ.items() if name.lower() == f"{scheme}_proxy" and value == proxy
    )
    variable = next((f" of ${name}" for name in named), "")
    return f" (through the proxy {address}{variable})"

"""A gate before a web application (ASGI) that blocks refused requests and WebSockets."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from winnow.flows.reports.http_access import Gate, basic

Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

REFUSED = 403
POLICY_VIOLATION = 1008


def behind(gate: Gate, app: Application, *, free: frozenset[str] = frozenset()) -> Application:
    """The application behind a gate, with the token as HTTP basic authentication.

    Args:
        gate: The gate.
        app: The application. It must check a token itself for WebSockets, which have no such header.
        free: Paths that can be read without the token.
    """

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        hosts, origins = headers(scope, "host"), headers(scope, "origin")
        is_free = scope["type"] == "websocket" or (scope["method"] == "GET" and scope["path"] in free)
        tokens = [token for each in headers(scope, "authorization") if (token := basic(each)) is not None]
        refusal = gate.refusal(hosts, origins, tokens, is_free=is_free)
        if refusal is None:
            await app(scope, receive, send)
        else:
            await refuse(scope, send, refusal)

    return guarded


def headers(scope: Scope, name: str) -> list[str]:
    """All values of a header of a request."""
    return [
        value.decode("latin-1") for key, value in scope["headers"] if key.decode("latin-1").lower() == name
    ]


async def refuse(scope: Scope, send: Send, sentence: str) -> None:
    """Refuse a request with a sentence, or a WebSocket before acceptance: the server answers with 403."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": ""})
        return
    await answer(send, REFUSED, f"{sentence}\n", {"content-type": "text/plain; charset=utf-8"})


async def answer(send: Send, status: int, text: str, given: dict[str, str]) -> None:
    """Answer a request, without caching, content sniffing or referrers."""
    body = text.encode()
    sent = {
        **given,
        "content-length": str(len(body)),
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    listed = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in sent.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})

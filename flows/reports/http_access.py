"""HTTP access control: accept only known host names, pages of the same origin, and the token.

A browser sends requests for any page that it shows:

* A page of another origin can resolve its own host name to this machine (DNS rebinding); the browser then
  treats both as one origin. The Host header still contains the other page's name, so only known names are
  accepted.
* A page can open WebSockets to other origins, and cookies do not distinguish ports. So an Origin header must
  equal the requested host and port.
* For requests without these headers, only the token decides.

`behind` puts a `Gate` before an ASGI application and blocks refused requests and WebSockets.
"""

import base64
import hmac
import ipaddress
import os
import re
import secrets
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from winnow.tasks.errors import WinnowError

TOKEN_VARIABLE = "WINNOW_TOKEN"
"""Environment variable with the user's own token; every user of the machine can read command lines."""

SHORTEST_TOKEN = 16
"""Minimum length of a user's own token, in characters."""

LOOPBACK = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::")
"""Wildcard addresses: a server listens on all addresses of the machine."""

_HOST = re.compile(
    r"(?:\[([0-9a-f:.]+)\]|([a-z0-9_](?:[a-z0-9._-]*[a-z0-9_])?)\.?)(?::[0-9]{1,5})?", re.ASCII
)

WRONG_HOST = (
    "this server does not accept the requested host name; use the address that it printed, or start it "
    "with --allow-host NAME"
)
WRONG_ORIGIN = "requests from pages of another origin are refused; open the address that was printed"
WRONG_TOKEN = (
    "a token is needed; open the address that was printed, which ends in ?token=..., "
    "or send the header Authorization: Bearer TOKEN"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Conditions under which a server accepts a request."""

    hosts: frozenset[str]
    """Accepted host names and addresses, in lower case, without ports and brackets."""
    accepts_any_address: bool
    """Whether every numeric address is accepted as host; a page cannot make an address resolve elsewhere."""
    token: str | None
    """The token that a request must contain; None accepts every request with a known host name."""

    @classmethod
    def at(cls, bound: str, *, allowed: Sequence[str], token: str | None) -> Self:
        """Create the gate of a server that listens at an address.

        Args:
            bound: The address; for an address of `EVERYWHERE`, requests for any address and for the machine's
                name are accepted.
            allowed: Additional host names.
            token: The required token; None requires no token.

        Raises:
            WinnowError: If an additional name is not a host name.
        """
        everywhere = bound in EVERYWHERE
        names = {*LOOPBACK, bound.lower(), *map(_parse_host, allowed)}
        return cls(
            hosts=frozenset(names | {socket.gethostname().lower()} if everywhere else names),
            accepts_any_address=everywhere,
            token=token,
        )

    def refusal(
        self, hosts: Sequence[str], origins: Sequence[str], tokens: Sequence[str], *, is_free: bool = False
    ) -> str | None:
        """The reason to refuse a request, as a sentence for its sender; None if it is accepted.

        Args:
            hosts: Values of the request's Host headers; there must be exactly one.
            origins: Values of the request's Origin headers; browsers send one if a page of another origin
                makes the request.
            tokens: All tokens in the request.
            is_free: Whether the request needs no token.
        """
        if len(hosts) != 1 or not self._answers_to(hosts[0]):
            return WRONG_HOST
        if any(not _is_same(origin, hosts[0]) for origin in origins):
            return WRONG_ORIGIN
        is_allowed = is_free or self.token is None or any(map(self.is_token, tokens))
        return None if is_allowed else WRONG_TOKEN

    def is_token(self, token: str) -> bool:
        """Whether a value equals the required token, compared in constant time."""
        return self.token is not None and hmac.compare_digest(_bytes(token), _bytes(self.token))

    def _answers_to(self, host: str) -> bool:
        name = _name(host)
        return name is not None and (name in self.hosts or (self.accepts_any_address and _is_address(name)))


def new_token() -> str:
    """The user's own token from the environment; if the variable is not set, a random token.

    Raises:
        WinnowError: If the user's own token is too short or not valid in a URL.
    """
    own = os.environ.get(TOKEN_VARIABLE)
    if own is None:
        return secrets.token_urlsafe(32)
    if not re.fullmatch(rf"[A-Za-z0-9_.~-]{{{SHORTEST_TOKEN},}}", own):
        raise WinnowError(
            f"{TOKEN_VARIABLE} is not a valid token: set it to {SHORTEST_TOKEN} or more letters, digits and "
            "-._~, or unset it to get a random token"
        )
    return own


def is_loopback(address: str) -> bool:
    """Whether an address is reachable only from this machine."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def reachable(bound: str) -> str:
    """The address at which this machine reaches a server that listens at `bound`.

    A name of this machine alone, such as localhost, becomes one address: another user may listen at the other
    that a browser tries.
    """
    try:
        addresses = {str(address[0]) for *_, address in socket.getaddrinfo(bound, None)}
    except (OSError, ValueError):
        return bound
    reached = {{"0.0.0.0": "127.0.0.1", "::": "::1"}.get(each, each) for each in addresses}
    return min(reached) if reached.issubset(LOOPBACK) else bound


def in_url(bound: str) -> str:
    """The address of `reachable` in the form for a URL: IPv6 addresses in brackets."""
    found = reachable(bound)
    return f"[{found}]" if ":" in found else found


CONNECTIONS = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
"""Linux's tables of this machine's connections and their users, see proc(5)."""

LISTENS = "0A"


def is_of_this_user(client: tuple[str, int] | None, port: int) -> bool:
    """Whether a process of this user, on this machine, is the client of a connection to a port."""
    if client is None:
        return False
    name, ends = _name_in_table(*client), f":{port:04X}"
    users = [
        user for local, remote, _, user in _connections(client[0]) if local == name and remote.endswith(ends)
    ]
    return users == [os.getuid()]


def is_served_by_others(host: str, port: int) -> bool:
    """Whether another user's process listens at this address; False if the system does not show users."""
    try:
        addresses = {str(address[0]) for *_, address in socket.getaddrinfo(host, port)}
    except OSError:
        return False
    addresses |= {f"::ffff:{each}" for each in addresses if ":" not in each}  # sockets of both families
    users = {
        user
        for address in (*addresses, *EVERYWHERE)
        for local, _, state, user in _connections(address)
        if state == LISTENS and local == _name_in_table(address, port)
    }
    return bool(users - {os.getuid()})


def _connections(host: str) -> list[tuple[str, str, str, int]]:
    """Connections of the host's address family: local end, remote end, state, and user of the local end."""
    try:
        lines = CONNECTIONS[ipaddress.ip_address(host).version].read_text().splitlines()[1:]
    except (OSError, ValueError):
        return []
    rows = map(str.split, lines)
    return [(local, remote, state, int(user)) for _, local, remote, state, _, _, _, user, *_ in rows]


def _name_in_table(host: str, port: int) -> str:
    try:
        packed = ipaddress.ip_address(host).packed
    except ValueError:
        return ""
    words = (packed[start : start + 4] for start in range(0, len(packed), 4))
    return "".join(f"{int.from_bytes(word, sys.byteorder):08X}" for word in words) + f":{port:04X}"


def bearer(authorization: str) -> str | None:
    """The token in an Authorization header with the scheme Bearer; None for another scheme."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def basic(authorization: str) -> str | None:
    """User name, colon and password in an Authorization header with the scheme Basic, decoded.

    None for another scheme or invalid base64.
    """
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:
        return None


def _parse_host(name: str) -> str:
    found = _name(f"[{name}]" if ":" in name and _is_address(name) else name)
    if found is None or re.search(r"(?<!:):[0-9]+$", name):
        raise WinnowError(
            f"--allow-host {name!r} is not a host: give a name or an address without http:// and port"
        )
    return found


def _name(host: str) -> str | None:
    """The name or address in a Host header, in lower case; None if the header is malformed."""
    found = _HOST.fullmatch(host.strip().lower())
    return (found[1] or found[2]) if found else None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _is_same(origin: str, host: str) -> bool:
    """Whether an HTTP origin equals the requested host, including the port."""
    try:
        found = urlsplit(origin.strip().lower())
    except ValueError:
        return False
    return found.scheme in ("http", "https") and found.netloc == host.strip().lower()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

REFUSED = 403
POLICY_VIOLATION = 1008


def behind(gate: Gate, app: Application, *, free: frozenset[str] = frozenset()) -> Application:
    """Wrap an application with a gate; the token is sent by HTTP basic authentication.

    Args:
        gate: The gate.
        app: The application. For WebSockets, which lack this header, it must check the token itself.
        free: Paths that can be read (GET) without the token.
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
    """All values of a request's header with this lower-case name."""
    return [
        value.decode("latin-1") for key, value in scope["headers"] if key.decode("latin-1").lower() == name
    ]


async def refuse(scope: Scope, send: Send, sentence: str) -> None:
    """Refuse a request with status 403 and a sentence; close a WebSocket before it is accepted."""
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": POLICY_VIOLATION, "reason": ""})
        return
    await answer(send, REFUSED, f"{sentence}\n", {"content-type": "text/plain; charset=utf-8"})


async def answer(send: Send, status: int, text: str, extra: dict[str, str]) -> None:
    """Send a response with headers that forbid caching, content sniffing and referrers."""
    body = text.encode()
    all_headers = {
        **extra,
        "content-length": str(len(body)),
        "cache-control": "no-store",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
    }
    listed = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in all_headers.items()]
    await send({"type": "http.response.start", "status": status, "headers": listed})
    await send({"type": "http.response.body", "body": body})

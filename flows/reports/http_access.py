"""HTTP access control: only known host names, pages of the same origin, and requests with the token.

A browser sends requests for any page that it shows. A page of another origin can resolve its own host name to
this machine (DNS rebinding), after which the browser treats both as one origin. The Host header still
contains the other page's name, so only known names are accepted. A page can also open WebSockets to other
origins, and cookies do not distinguish ports, so an Origin header must equal the requested host and port.
Requests without such headers are distinguished by the token alone. `behind` puts a gate before a web
application (ASGI), which blocks refused requests and WebSockets.
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
"""Holds a user's own token: a token on the command line would be readable for every user of the machine."""

SHORTEST_TOKEN = 16
"""Minimum length, in characters, of a user's own token."""

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
    """The conditions that a request must meet."""

    hosts: frozenset[str]
    """Accepted host names and addresses, in lower case, without ports and brackets."""
    takes_any_address: bool
    """Whether every numeric address is accepted: no page can make one of those resolve elsewhere."""
    token: str | None
    """The token that a request must contain; None accepts every request with a known host name."""

    @classmethod
    def at(cls, bound: str, *, allowed: Sequence[str], token: str | None) -> Self:
        """The gate of a server with this listening address.

        Args:
            bound: The address; one of `EVERYWHERE` accepts every address and the machine's name.
            allowed: Additional host names.
            token: The attribute of this name.

        Raises:
            WinnowError: If an additional name is not a host name.
        """
        everywhere = bound in EVERYWHERE
        names = {*LOOPBACK, bound.lower(), *map(_checked_name, allowed)}
        return cls(
            hosts=frozenset(names | {socket.gethostname().lower()} if everywhere else names),
            takes_any_address=everywhere,
            token=token,
        )

    def refusal(
        self, hosts: Sequence[str], origins: Sequence[str], tokens: Sequence[str], *, is_free: bool = False
    ) -> str | None:
        """The reason to refuse a request, as a sentence for its sender; None to accept it.

        Args:
            hosts: Values of its Host headers, exactly one is valid.
            origins: Values of its Origin headers; browsers send one with requests of other origins' pages.
            tokens: All tokens in the request.
            is_free: Whether the request needs no token.
        """
        if len(hosts) != 1 or not self._answers_to(hosts[0]):
            return WRONG_HOST
        if any(not _is_same(origin, hosts[0]) for origin in origins):
            return WRONG_ORIGIN
        is_known = is_free or self.token is None or any(map(self.knows, tokens))
        return None if is_known else WRONG_TOKEN

    def knows(self, token: str) -> bool:
        """Whether a given value is the required token, compared in constant time."""
        return self.token is not None and hmac.compare_digest(_bytes(token), _bytes(self.token))

    def _answers_to(self, host: str) -> bool:
        name = _name(host)
        return name is not None and (name in self.hosts or (self.takes_any_address and _is_address(name)))


def new_token() -> str:
    """The user's own token from the environment, or else a random one.

    Raises:
        WinnowError: If the user's own token is too short or not valid in a URL.
    """
    own = os.environ.get(TOKEN_VARIABLE)
    if own is None:
        return secrets.token_urlsafe(32)
    if not re.fullmatch(rf"[A-Za-z0-9_.~-]{{{SHORTEST_TOKEN},}}", own):
        raise WinnowError(
            f"{TOKEN_VARIABLE} is not a token: give {SHORTEST_TOKEN} or more letters, digits and -._~, "
            "or unset it to have one made"
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

    Of the addresses that a browser tries for "localhost", another user may listen at one.
    """
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "localhost": "127.0.0.1"}.get(bound, bound)


def in_url(bound: str) -> str:
    """The address at which this machine reaches such a server, in the form for a URL."""
    found = reachable(bound)
    return f"[{found}]" if ":" in found else found


CONNECTIONS = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}
"""Linux's tables of this machine's connections with the user of each, see proc(5)."""

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
    """Whether a process of another user listens at this address; False if the system does not show it."""
    try:
        addresses = {str(address[0]) for *_, address in socket.getaddrinfo(host, port)}
    except OSError:
        return False
    addresses |= {f"::ffff:{each}" for each in addresses if ":" not in each}  # of a socket for both families
    users = {
        user
        for address in (*addresses, *EVERYWHERE)
        for local, _, state, user in _connections(address)
        if state == LISTENS and local == _name_in_table(address, port)
    }
    return bool(users - {os.getuid()})


def _connections(host: str) -> list[tuple[str, str, str, int]]:
    """Both ends of each connection of the host's address family, its state, and the user of the first end."""
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
    """The token in an Authorization header."""
    scheme, _, token = authorization.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def basic(authorization: str) -> str | None:
    """The user name and password in an Authorization header, separated by a colon."""
    scheme, _, encoded = authorization.partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        return base64.b64decode(encoded.strip(), validate=True).decode()
    except ValueError:
        return None


def _checked_name(name: str) -> str:
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
    """Whether an origin equals the requested host, including its port."""
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

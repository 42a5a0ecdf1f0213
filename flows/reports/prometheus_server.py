"""The server that Prometheus scrapes, with access control."""

import socket
import sys
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from winnow.flows.reports.http_access import Gate, bearer
from winnow.storage.json_types import JsonObject

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

SILENCE = 30.0
"""Seconds after which a silent connection is closed."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(
        self, request: socket.socket | tuple[bytes, socket.socket], client_address: object
    ) -> None:
        """Ignore the error: a scraper may disconnect at any time."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _ServerOfIPv6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = SILENCE

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: scrapes every few seconds would hide all other lines."""

    def get_environ(self) -> JsonObject:
        """The WSGI variables, with repeated headers, for which WSGI itself has no place."""
        return {**super().get_environ(), "winnow.headers": self.headers}


def metrics_server(registry: "CollectorRegistry", host: str, port: int, gate: Gate) -> WSGIServer:
    """A bound server that does not serve yet; port 0 chooses a free port.

    Raises:
        OSError: If the address or port is not available.
    """
    from prometheus_client import make_wsgi_app

    kind = _ServerOfIPv6 if ":" in host else _Server
    return make_server(host, port, _behind(gate, make_wsgi_app(registry)), kind, _Handler)


def _behind(gate: Gate, app: Callable[..., Iterable[bytes]]) -> Callable[..., Iterable[bytes]]:
    def answer(environ: JsonObject, start_response: Callable[..., object]) -> Iterable[bytes]:
        headers = environ["winnow.headers"]
        hosts, origins = (headers.get_all(name, []) for name in ("Host", "Origin"))
        refusal = gate.refusal(hosts, origins, _tokens(environ))
        if refusal is None:
            found: Iterable[bytes] = app(environ, start_response)
            return found
        plain = [("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff")]
        start_response("403 Forbidden", plain)
        return [f"{refusal}\n".encode()]

    return answer


def _tokens(environ: JsonObject) -> list[str]:
    try:
        query = parse_qsl(environ.get("QUERY_STRING", ""), max_num_fields=100)
    except ValueError:
        query = []
    sent = bearer(environ.get("HTTP_AUTHORIZATION", ""))
    return [value for name, value in query if name == "token"] + ([] if sent is None else [sent])

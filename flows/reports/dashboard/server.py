"""Server process of the dashboard: streamlit with access control, until the parent command ends."""

import hmac
import os
import sys
from collections.abc import Sequence
from functools import cache
from http.cookies import CookieError, SimpleCookie
from pathlib import Path
from urllib.parse import parse_qsl, quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from winnow.flows.reports.dashboard import SCRIPT, TICKET_VARIABLE, TOKEN_VARIABLE
from winnow.flows.reports.http_access import Gate, answer, bearer, headers, is_of_this_user, refuse
from winnow.tasks.plugins.own_files import state_folder
from winnow.tasks.processes.parent_watchdog import exit_with_parent

GOING_AWAY = 303


class AccessMiddleware:
    """ASGI middleware that refuses requests by a gate, and replaces the token in an address by a cookie.

    The redirection keeps the token out of histories, bookmarks and Referer headers. The cookie's name
    contains the port, because cookies ignore ports: two servers on one machine would share a cookie.
    """

    def __init__(self, app: ASGIApp, *, gate: Gate, port: int, ticket: str | None = None) -> None:
        self._app = app
        self._gate = gate
        self._port = port
        self._cookie = f"winnow-{port}"
        self._ticket = ticket
        """See `TICKET_VARIABLE`; None admits no ticket."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, refuse it, or redirect it with a cookie."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        asked = [token for name, token in _query(scope) if name == "token"]
        if self._gate.token is not None and self._has_ticket(scope):
            asked.append(self._gate.token)
        tokens = [*asked, *self._in_cookies(scope), *_in_authorization(scope)]
        refusal = self._gate.refusal(headers(scope, "host"), headers(scope, "origin"), tokens)
        if refusal is not None:
            await refuse(scope, send, refusal)
        elif (
            scope["type"] == "http"
            and scope["method"] in ("GET", "HEAD")
            and any(map(self._gate.is_token, asked))
        ):
            await self._exchange(scope, send)
        else:
            await self._app(scope, receive, send)

    def _has_ticket(self, scope: Scope) -> bool:
        shown = [ticket.encode() for name, ticket in _query(scope) if name == "ticket"]
        has_it = self._ticket is not None and any(
            hmac.compare_digest(each, self._ticket.encode()) for each in shown
        )
        return has_it and is_of_this_user(scope.get("client"), self._port)

    def _in_cookies(self, scope: Scope) -> list[str]:
        found = []
        for header in headers(scope, "cookie"):
            try:
                cookies = SimpleCookie(header)
            except CookieError:
                continue
            if self._cookie in cookies:
                found.append(cookies[self._cookie].value)
        return found

    async def _exchange(self, scope: Scope, send: Send) -> None:
        rest = urlencode([(name, value) for name, value in _query(scope) if name not in ("token", "ticket")])
        # One slash, because a browser reads two slashes as the beginning of another server's name.
        place = "/" + quote(scope["path"].lstrip("/")) + (f"?{rest}" if rest else "")
        # Lax: browsers send the cookie with links from other sites, but not with their other requests.
        cookie = f"{self._cookie}={self._gate.token}; Path=/; HttpOnly; SameSite=Lax"
        await answer(send, GOING_AWAY, "", {"location": place, "set-cookie": cookie})


def _query(scope: Scope) -> list[tuple[str, str]]:
    try:
        return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    except ValueError:
        return []


def _in_authorization(scope: Scope) -> list[str]:
    return [token for each in headers(scope, "authorization") if (token := bearer(each)) is not None]


SETTINGS = {
    "browser.gatherUsageStats": False,
    "client.showErrorDetails": "none",
    "client.showErrorLinks": False,
    "client.toolbarMode": "viewer",
    "global.developmentMode": False,
    "logger.hideWelcomeMessage": True,
    "logger.level": "warning",
    "runner.magicEnabled": False,
    "server.fileWatcherType": "none",
    "server.headless": True,
    "server.showEmailPrompt": False,
    # Set for each theme: a colour for both would be a custom theme, which is always light.
    "theme.light.primaryColor": "#0072b2",
    "theme.dark.primaryColor": "#2a7ab8",
}
"""Streamlit's settings: no data is sent elsewhere, and errors that are bugs go to the terminal."""


PAGES = ("campaign", "over-time", "matrix", "compare", "factors", "judges", "comparisons", "sql", "label")
"""Paths of all pages except the first."""

PLACE = '<script>window.__streamlit = {BACKEND_BASE_URL: new URL(".", location.href).href}</script>'
"""Sets the server's address for a page's script; by default the script first tries a wrong address."""


def page_routes() -> list[Route]:
    """Routes that serve streamlit's HTML at the paths of all pages."""

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(_page(), headers={"cache-control": "no-cache"})

    return [Route(f"/{name}", page) for name in PAGES]


@cache
def _page() -> str:
    """The HTML of streamlit's start page, with the server's address."""
    from streamlit import file_util

    page = (Path(file_util.get_static_dir()) / "index.html").read_text("utf-8")
    return page.replace("<head>", f"<head>{PLACE}", 1)


def serve(host: str, port: int, allowed: Sequence[str]) -> None:
    """Serve the dashboard until a signal ends it; the token and ticket are read from the environment."""
    from starlette.middleware import Middleware
    from streamlit.starlette import App

    from winnow.flows.reports.dashboard.plots import library_route

    gate = Gate.at(host, allowed=allowed, token=os.environ.pop(TOKEN_VARIABLE, None))
    access = Middleware(AccessMiddleware, gate=gate, port=port, ticket=os.environ.pop(TICKET_VARIABLE, None))
    app = App(SCRIPT, routes=[library_route(), *page_routes()], middleware=[access])
    app.run(config={**SETTINGS, "server.address": host, "server.port": port})


def leave_folder() -> None:
    """Change to an empty folder of the user, because Streamlit reads settings from the working folder."""
    empty = state_folder() / "streamlit"
    empty.mkdir(mode=0o700, parents=True, exist_ok=True)
    os.chdir(empty)


if __name__ == "__main__":
    exit_with_parent()
    leave_folder()
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3:])

"""The process that serves the page: streamlit behind its gate, until the command that started it is gone."""

import os
import sys
from collections.abc import Sequence

from winnow.flows.reports.dashboard import SCRIPT, TOKEN_VARIABLE
from winnow.flows.reports.http_access import Gate
from winnow.flows.run.signals import exit_with_parent

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
    # One each: a colour for both would be a theme of its own, which is always light.
    "theme.light.primaryColor": "#0072b2",
    "theme.dark.primaryColor": "#2a7ab8",
}
"""Nothing is sent anywhere, asked for or watched; errors that are bugs go to the terminal."""


def serve(host: str, port: int, allowed: Sequence[str]) -> None:
    """Serve until a signal ends it; the environment holds the token, if one is asked for."""
    from starlette.middleware import Middleware
    from streamlit.starlette import App

    from winnow.flows.reports.dashboard.door import Door

    gate = Gate.at(host, allowed=allowed, token=os.environ.pop(TOKEN_VARIABLE, None))
    app = App(SCRIPT, middleware=[Middleware(Door, gate=gate, port=port)])
    app.run(config={**SETTINGS, "server.address": host, "server.port": port})


if __name__ == "__main__":
    exit_with_parent()
    serve(sys.argv[1], int(sys.argv[2]), sys.argv[3:])

"""view: serve a live page on a results database, by streamlit in a separate process."""

import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType
from typing import Annotated

import typer

from winnow.flows.cli.browser import open_in_browser
from winnow.flows.cli.options import DEFAULT_STORAGE, AllowHost, Storage, TokenOption
from winnow.flows.reports.default_database import tell_if_unreadable, to_read
from winnow.flows.reports.http_access import Gate, in_url, is_served_by_others, new_token, reachable
from winnow.tasks.errors import WinnowError
from winnow.tasks.plugins.extras import require
from winnow.tasks.processes.child_process import end_process, module_command, start_process

FIRST_PORT, PORTS = 8501, 20
"""First port to try, and number of ports to try, if --port is not given."""

START_TIMEOUT = 60.0
"""Seconds to wait for the page's first response, which takes long on a slow disk."""

STOP_TIMEOUT = 5.0
"""Seconds after which a server that does not end is killed."""


def view(
    storage: Storage = DEFAULT_STORAGE,
    port: Annotated[
        int | None,
        typer.Option(
            min=1, max=65535, help=f"Port to listen on; default: the first free port from {FIRST_PORT}."
        ),
    ] = None,
    host: Annotated[
        str,
        typer.Option(
            help="Address to listen on; everybody who can reach it and has the token can read all results."
        ),
    ] = "127.0.0.1",
    allow_host: AllowHost = None,
    token: TokenOption = True,
    allow_labels: Annotated[
        bool,
        typer.Option(
            "--allow-labels",
            help="Add a page for labels and judgments, and let readers star outputs and write notes.",
        ),
    ] = False,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Serve a live page on a database: campaigns, figures, single comparisons and SQL.

    The page only reads. If the default database does not exist, it shows the last database used in this
    folder. With --allow-labels, annotators can also give the judgments that campaigns wait for, star outputs
    and write notes; the page then always uses the database of --storage.

    The printed address contains a token, which the browser keeps until it is closed.
    """
    require("view", "winnow view")
    if not allow_labels:  # a page that writes uses no other database than the named one
        storage = to_read(storage)
    secret = new_token() if token else None
    # Check the names here, where an error becomes a message; the server is another process.
    Gate.at(host, allowed=allow_host or (), token=secret)
    chosen = _first_free_port(host) if port is None else port
    if not _is_free(host, chosen):
        raise WinnowError(f"{host}:{chosen} is not available; choose another port with --port")
    tell_if_unreadable(storage)
    # End the server when this command is stopped or its terminal is closed. SIGINT is set as well, because
    # shells let commands in the background ignore it.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    # Only Linux shows which user a connection is from.
    ticket = secrets.token_urlsafe(32) if secret and sys.platform == "linux" else None
    server = _start(storage, host, chosen, allow_host or [], secret, ticket, allow_labels=allow_labels)
    try:
        _wait_until_up(server, host, chosen)
        page = f"http://{in_url(host)}:{chosen}/"
        url = f"{page}?token={secret}" if secret else page
        print(f"serving {url}; stop with Ctrl-C", flush=True)
        if browser:
            open_in_browser(f"{page}?ticket={ticket}" if ticket else url)
        server.wait()
        raise _ended(server)
    except KeyboardInterrupt:
        return
    finally:
        end_process(server, STOP_TIMEOUT)


def _start(
    storage: str,
    host: str,
    port: int,
    allowed: Sequence[str],
    token: str | None,
    ticket: str | None,
    *,
    allow_labels: bool,
) -> subprocess.Popen[bytes]:
    from winnow.flows.reports.dashboard import (
        ALLOW_LABELS_VARIABLE,
        STORAGE_VARIABLE,
        TICKET_VARIABLE,
        TOKEN_VARIABLE,
    )
    from winnow.storage.engine.database import absolute_url

    # Drop these variables, so that the user's environment cannot let readers write.
    dropped = (TOKEN_VARIABLE, TICKET_VARIABLE, ALLOW_LABELS_VARIABLE)
    environment = {name: value for name, value in os.environ.items() if name not in dropped}
    storage = absolute_url(storage)  # the server leaves this folder
    environment |= {STORAGE_VARIABLE: storage} | ({ALLOW_LABELS_VARIABLE: "1"} if allow_labels else {})
    secret = {TOKEN_VARIABLE: token, TICKET_VARIABLE: ticket}
    environment |= {name: value for name, value in secret.items() if value is not None}
    return start_process(
        module_command("winnow.flows.reports.dashboard.server", host, port, *allowed),
        stdin=subprocess.PIPE,  # the server ends when this pipe closes, however this process ends
        stdout=None,
        stderr=None,
        environment=environment,
    )


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _wait_until_up(server: subprocess.Popen[bytes], host: str, port: int) -> None:
    deadline = time.monotonic() + START_TIMEOUT
    while time.monotonic() < deadline:
        if server.poll() is not None:
            raise _ended(server)
        with suppress(OSError), socket.create_connection((reachable(host), port), timeout=1):
            if is_served_by_others(reachable(host), port):
                raise WinnowError(
                    f"another user of this machine has just taken {host}:{port}; choose another with --port"
                )
            return
        time.sleep(0.1)
    raise WinnowError(f"the page did not start within {START_TIMEOUT:g} s; try again on a less busy machine")


def _ended(server: subprocess.Popen[bytes]) -> WinnowError:
    return WinnowError(
        f"Streamlit ended unexpectedly (exit code {server.returncode}); see its messages above, if any"
    )


def _first_free_port(host: str) -> int:
    ports = range(FIRST_PORT, FIRST_PORT + PORTS)
    return next((port for port in ports if _is_free(host, port)), FIRST_PORT)


def _is_free(host: str, port: int) -> bool:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # Set as the server sets it, so that a port that was just released counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError:
            return False
    return True

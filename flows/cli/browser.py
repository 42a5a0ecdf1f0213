"""Open a page in the user's browser, if the machine has a display."""

import os
import sys
from contextlib import suppress

import typer

from winnow.tasks.processes.child_process import start_process


def open_in_browser(address: str) -> None:
    """Open a page in the browser; do nothing if the machine has no display.

    Over ssh and in containers, xdg-open would try several browsers, and print below the answer that each is
    missing.

    Args:
        address: A URL, or the path of a file.
    """
    if not sys.platform.startswith("linux"):
        typer.launch(address)
    elif os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        with suppress(OSError):  # the user can open the printed address
            start_process(["xdg-open", address])

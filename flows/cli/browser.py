"""Open a page in the user's browser, if the machine has a display."""

import os
import sys
from contextlib import suppress

import typer

from winnow.tasks.processes.child_process import start_process


def open_in_browser(address: str) -> None:
    """Open a page in the browser; do nothing if the machine has no display.

    Over ssh and in containers the opener would try one browser after the other, and print that each is
    missing, right below the answer.

    Args:
        address: A URL, or the path of a file.
    """
    if not sys.platform.startswith("linux"):
        typer.launch(address)
    elif os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        with suppress(OSError):  # the address was printed
            start_process(["xdg-open", address])

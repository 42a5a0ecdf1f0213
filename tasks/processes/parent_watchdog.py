"""End processes that are useless without their parent."""

import os
import sys
import threading


def exit_with_parent() -> None:
    """End this process once its standard input, a pipe from its parent, closes."""
    threading.Thread(target=_wait_and_exit, daemon=True).start()


def _wait_and_exit() -> None:
    # Past Python's buffer, whose lock a thread that waits would still hold while the interpreter ends.
    while os.read(sys.stdin.fileno(), 4096):
        pass
    os._exit(0)

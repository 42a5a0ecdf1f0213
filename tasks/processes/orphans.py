"""Ends programs that outlive this process, however it ended: a kill leaves nobody to end them."""

import subprocess
import sys
import threading
from contextlib import suppress

from winnow.tasks.processes.child_process import FORCED_SECONDS, start_process

_SCRIPT = """
import os, signal, sys
groups = set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
for group in groups:
    try:
        os.killpg(group, signal.SIGKILL)
    except OSError:
        pass
"""


class OrphanGuard:
    """A small process that ends the process groups it was told of once this process is gone.

    Threads may share it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process = start_process([sys.executable, "-I", "-S", "-c", _SCRIPT], stdin=subprocess.PIPE)

    def watch(self, group: int) -> None:
        """Have a process group ended with this process."""
        self._send(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Leave a process group alone, which has ended."""
        self._send(f"-{group}\n")

    def close(self) -> None:
        """End the guard, and all groups that it still watches."""
        with self._lock, suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(FORCED_SECONDS)

    def _send(self, line: str) -> None:
        with self._lock, suppress(OSError, ValueError):  # it was ended by somebody else, or closed
            if self._process.stdin is not None:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()

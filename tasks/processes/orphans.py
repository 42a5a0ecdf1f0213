"""End programs that outlive this process, even if it was killed and could not end them itself."""

import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import psutil

from winnow.tasks.processes import process_tree
from winnow.tasks.processes.child_process import FORCED_SECONDS, start_process

_SCRIPT = """
import os, runpy, signal, sys
end, groups = lambda group: os.killpg(group, signal.SIGKILL), set()
for line in sys.stdin:
    (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
if groups:
    sys.path.append(sys.argv[2])
    try:
        end = runpy.run_path(sys.argv[1])["end_tree"]
    except Exception:  # for example if the environment was removed meanwhile
        pass
for group in groups:
    try:
        end(group)
    except OSError:
        pass
"""

_ARGUMENTS = (process_tree.__file__, str(Path(psutil.__file__).parents[1]))


class OrphanGuard:
    """A small process that ends the watched programs and their descendants after this process.

    A program is identified by its process group; see `process_tree`. Thread-safe.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        command = [sys.executable, "-I", "-S", "-c", _SCRIPT, *_ARGUMENTS]
        self._process = start_process(command, stdin=subprocess.PIPE)

    def watch(self, group: int) -> None:
        """End a process group as soon as this process has ended."""
        self._send(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Stop watching a process group, because it has ended."""
        self._send(f"-{group}\n")

    def close(self) -> None:
        """End the guard, and all groups that it still watches."""
        with self._lock, suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(FORCED_SECONDS)

    def _send(self, line: str) -> None:
        with self._lock, suppress(OSError, ValueError):  # the guard was ended from outside, or closed
            if self._process.stdin is not None:
                self._process.stdin.write(line.encode())
                self._process.stdin.flush()

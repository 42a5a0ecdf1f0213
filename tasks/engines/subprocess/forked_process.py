"""A process that is not our child but a fork server's, with as much of `subprocess.Popen` as we use."""

import os
import signal
import subprocess
import threading
from contextlib import suppress

from winnow.tasks.engines.subprocess.channel import Channel


class ForkedProcess:
    """A running process that leads a session of its own.

    Args:
        pid: Its process id.
        report: Where its fork server says how it ended; it is closed with that.
    """

    def __init__(self, pid: int, report: Channel) -> None:
        self.pid = pid
        self._report = report
        self._code: int | None = None
        self._reading = threading.Lock()

    def poll(self) -> int | None:
        """Its exit code, or minus the number of the signal that ended it; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float) -> int:
        """The same, once it has ended; raises `subprocess.TimeoutExpired` after so many seconds."""
        with self._reading:
            if self._code is None:
                self._code = self._ending(timeout)
                self._report.close()
        return self._code

    def _ending(self, timeout: float) -> int:
        try:
            return int(self._report.receive(timeout)["code"])
        except TimeoutError:
            raise subprocess.TimeoutExpired(f"the forked process {self.pid}", timeout) from None
        except (EOFError, KeyError, OSError, TypeError, ValueError):
            # The server is gone, and nobody will say. What it forked ends with it, in a second at most.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            return -signal.SIGKILL

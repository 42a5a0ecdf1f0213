"""Client side of a fork server, which forks workers with their modules already imported.

The server runs until its block ends; code that starts a worker meanwhile need not handle it. If a server
cannot start or has ended, only time is lost, because a worker then makes its own imports.
"""

import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from winnow.tasks.processes.channel import Channel
from winnow.tasks.processes.child_process import (
    end_process,
    module_command,
    open_log,
    start_process,
    worker_environment,
)


class ForkedProcess:
    """A running forked process that leads its own session.

    Args:
        pid: Process id.
        report: The channel on which the fork server reports the exit; it is closed after that.
    """

    def __init__(self, pid: int, report: Channel) -> None:
        self.pid = pid
        self._report = report
        self._code: int | None = None
        self._reading = threading.Lock()

    def poll(self) -> int | None:
        """Exit code, or minus the number of the signal that ended it; None while it runs."""
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0.0)
        return None

    def wait(self, timeout: float) -> int:
        """Wait for the exit code; raises `subprocess.TimeoutExpired` after `timeout` seconds."""
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
            # The server has ended, so no report comes. Its forks end with it, within a second.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            return -signal.SIGKILL


LOGGER = logging.getLogger("winnow.engines")

IMPORT_SECONDS = 600.0
"""Maximum seconds until a server answers; on two busy cores it took 27."""

SEND_SECONDS = 60.0
LOOK_PERIOD = 0.5  # seconds between checks whether a silent server runs
END_SECONDS = 5.0
GOING_SECONDS = 1.0  # a socket closes shortly before its process ends


class NoFork(Exception):
    """A server could not fork a worker; the message says why."""


class ForkServer:
    """A running `fork_server_side`, which may still import after the constructor returned.

    It leads its own session, like workers, and ends with this process in any case; so do the workers that it
    forked.

    Args:
        module: The module that workers run.
        log: File to which the server's output is appended.
        environment: Additional variables; the user's values take precedence.

    Raises:
        WinnowError: If the log cannot be written.
    """

    def __init__(self, module: str, *, log: Path, environment: Mapping[str, str]) -> None:
        self.log = log
        self.has_answered = False
        with open_log(log) as output:
            self._control, theirs = socket.socketpair()
            with theirs:
                command = module_command(f"{__name__}_side", module, theirs.fileno(), os.getpid())
                self._process = start_process(
                    command,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    environment=worker_environment(environment, {}),
                    descriptors=[theirs.fileno()],
                )

    @property
    def pid(self) -> int:
        """Process id of the server."""
        return self._process.pid

    def is_gone(self, patience: float = 0.0) -> bool:
        """Whether the server has ended, or ends within `patience` seconds."""
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            return False
        return True

    def fork(
        self, link: socket.socket, log: BinaryIO, environment: Mapping[str, str], forced: Collection[str]
    ) -> ForkedProcess:
        """Fork a worker; waits for the server's imports.

        Args:
            link: The worker's end of a message connection.
            log: The file for the worker's output.
            environment: All variables of the worker.
            forced: The variables among them that no import reads.

        Raises:
            NoFork: If the worker cannot be forked.
        """
        ours, theirs = socket.socketpair()
        ours.settimeout(SEND_SECONDS)
        report = Channel(ours)
        try:
            with theirs:
                request = {"environment": dict(environment), "forced": sorted(forced), "folder": os.getcwd()}
                socket.send_fds(self._control, [b"f"], [link.fileno(), log.fileno(), theirs.fileno()])
            report.send(request)
            pid = self._pid_from(report)
        except BaseException as error:
            report.close()
            if isinstance(error, OSError | EOFError | ValueError | KeyError | TypeError):
                raise NoFork(f"{type(error).__name__} {error}".strip()) from error
            raise
        self.has_answered = True
        return ForkedProcess(pid, report)

    def close(self) -> None:
        """End the server and all workers that it forked; return when the server has ended."""
        self._control.close()
        if self.has_answered:  # otherwise it may still import, and check nothing
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
        end_process(self._process)

    def _pid_from(self, report: Channel) -> int:
        deadline = time.monotonic() + IMPORT_SECONDS
        while True:
            try:
                return int(report.receive(LOOK_PERIOD)["pid"])
            except TimeoutError:
                # A process forked here may hold a copy of the server's end.
                if self.is_gone() or time.monotonic() > deadline:
                    raise


class _ModuleServer:
    """The server of a module while a block needs it; a server that ends is replaced."""

    def __init__(self, module: str, log: Path, environment: Mapping[str, str]) -> None:
        self.holders = 0
        self._module = module
        self._log = log
        self._environment = environment
        self._lock = threading.Lock()
        self._server: ForkServer | None = None
        self._is_hopeless = False

    def server(self) -> ForkServer | None:
        """The running server, started if necessary; None if the server failed before."""
        with self._lock:
            if self._server is not None and self._server.is_gone():
                self._lose(self._server, "it has ended")
            if self._server is None and not self._is_hopeless:
                self._server = ForkServer(self._module, log=self._log, environment=self._environment)
            return self._server

    def record_refusal(self, server: ForkServer, error: NoFork) -> None:
        """Record that a server did not fork a worker; if it hangs, end it with all its workers."""
        is_gone = server.is_gone(GOING_SECONDS)
        with self._lock:
            if server is not self._server:
                return
            if is_gone or isinstance(error.__cause__, TimeoutError):
                self._lose(server, str(error))
            else:
                LOGGER.warning(
                    "an engine could not be forked and imports its modules itself (%s); see %s",
                    error,
                    server.log,
                    extra={"event": "not_forked"},
                )

    def close(self) -> None:
        """End the server, if it runs."""
        with self._lock:
            if self._server is not None:
                self._server.close()
                self._server = None

    def _lose(self, server: ForkServer, why: str) -> None:
        server.close()
        self._server = None
        self._is_hopeless = not server.has_answered
        LOGGER.warning(
            "no engine can be forked from the process that has imported its modules (%s); see %s",
            why,
            server.log,
            extra={"event": "fork_server_ended"},
        )


_held: dict[str, _ModuleServer] = {}
_holding = threading.Lock()


@contextmanager
def forking(
    module: str, *, log: Path, environment: Mapping[str, str], at_once: bool = False
) -> Generator[None, None, None]:
    """Fork workers of a module until the block ends, which ends the server and all workers.

    Nested blocks, and blocks in several threads, share the first block's server. A process with so many
    imports can be forked only on Linux; elsewhere this does nothing.

    Args:
        module: The module that workers run.
        log: The file for the server's output.
        environment: Additional variables, the same as its workers'.
        at_once: Whether to start the server now instead of with the first worker.

    Raises:
        WinnowError: If the log cannot be written.
    """
    if sys.platform != "linux":
        yield
        return
    with _holding:
        holding = _held.setdefault(module, _ModuleServer(module, log, environment))
        holding.holders += 1
    try:
        if at_once:
            holding.server()
        yield
    finally:
        with _holding:
            holding.holders -= 1
            if last := holding.holders == 0:
                del _held[module]
        if last:
            holding.close()


def fork_worker(
    module: str, link: socket.socket, log: BinaryIO, environment: Mapping[str, str], forced: Collection[str]
) -> ForkedProcess | None:
    """Fork a worker from the module's server; None if no server runs or the fork fails.

    See `ForkServer.fork` for the arguments.
    """
    with _holding:
        holding = _held.get(module)
    if holding is None or (server := holding.server()) is None:
        return None
    try:
        return server.fork(link, log, environment, forced)
    except NoFork as error:
        holding.record_refusal(server, error)
        return None

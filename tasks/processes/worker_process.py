"""A Python module that runs as a child process, answers messages, and surely ends on close."""

import contextlib
import math
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from winnow.storage.json_types import JsonObject
from winnow.tasks.processes.channel import Channel
from winnow.tasks.processes.child_process import (
    end_process,
    last_lines,
    module_command,
    open_log,
    start_process,
    worker_environment,
)
from winnow.tasks.processes.fork_server import ForkedProcess, fork_worker

LIVENESS_PERIOD = 0.5  # seconds between checks of a silent process
SEND_TIMEOUT = 60.0  # seconds; a worker always reads, so one that does not is stuck
POLITE_SECONDS = 5.0
REPORTED_LOG_LINES = 5

_Started = tuple["subprocess.Popen[bytes] | ForkedProcess", socket.socket]


class WorkerEnded(Exception):
    """The process ended unexpectedly, or closed the connection; the message quotes its log's end."""


class WorkerProcess:
    """A running `python -m module DESCRIPTOR PARENT`, which ends at the message {"close": true}.

    It leads its own session: a terminal's Ctrl-C does not reach it, and its children can be ended with it.
    Both its output streams go to the log. If `fork_server.forking` runs a server of the module, the process
    is forked from that server, without repeating imports.

    Args:
        module: Dotted name of the module to run, with the descriptor of its socket and our process id as
            arguments.
        log: File to which the output is appended; folders are created.
        environment: Additional variables; the user's values take precedence.
        forced: Variables that override the user's. The module's imports must not read them.
        inherited: The user's variables to pass on; the process is then not forked. None for all.

    Raises:
        WinnowError: If the log cannot be written.
    """

    def __init__(
        self,
        module: str,
        *,
        log: Path,
        environment: Mapping[str, str],
        forced: Mapping[str, str] = MappingProxyType({}),
        inherited: Collection[str] | None = None,
    ) -> None:
        self._log = log
        with open_log(log) as output:
            self._log_start = output.tell()
            started = _fork(module, output, environment, forced) if inherited is None else None
            variables = worker_environment(environment, forced, inherited)
            self._process, ours = started or _spawn(module, output, variables)
        ours.settimeout(SEND_TIMEOUT)
        self._channel = Channel(ours)

    @property
    def pid(self) -> int:
        """Process id, which is also the id of the session and process group."""
        return self._process.pid

    def send(self, message: Mapping[str, object]) -> None:
        """Send a message; raises `WorkerEnded` if the process has ended."""
        try:
            self._channel.send(message)
        except OSError as error:
            raise WorkerEnded(self._last_words()) from error

    def receive(
        self, timeout: float | None, most_bytes: Callable[[], float] = lambda: math.inf
    ) -> JsonObject:
        """Receive the next message, of at most `most_bytes`.

        `timeout` is in seconds; None means no limit.

        Raises:
            TimeoutError: If no message arrives in time.
            WorkerEnded: If the process ended or closed the connection.
            ValueError: If the process sent an invalid message; it must not be used again.
        """
        deadline = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            try:
                patience = max(0.0, min(LIVENESS_PERIOD, deadline - time.monotonic()))
                return self._channel.receive(patience, most_bytes)
            except EOFError as error:
                raise WorkerEnded(self._last_words()) from error
            except TimeoutError:
                # A grandchild may hold the socket open after the worker's own end.
                if self._process.poll() is not None:
                    raise WorkerEnded(self._last_words()) from None
                if time.monotonic() >= deadline:
                    raise

    def close(self) -> None:
        """Request the end, then send SIGTERM, then SIGKILL; return when all processes have ended."""
        with contextlib.suppress(OSError):  # it has ended, or was closed before
            self._channel.send({"close": True})
        patience = 0.0
        try:
            self._process.wait(POLITE_SECONDS)
        except subprocess.TimeoutExpired:
            patience = POLITE_SECONDS
        self._end(patience)

    def kill(self) -> None:
        """Kill the process and its children; return when they have ended."""
        self._end(0.0)

    def _end(self, patience: float) -> None:
        end_process(self._process, patience)
        self._channel.close()

    def _last_words(self) -> str:
        """Cause of the process's end as a clause, with the end of its output."""
        try:
            code = self._process.wait(POLITE_SECONDS)  # the socket closes shortly before the process ends
        except subprocess.TimeoutExpired:
            return f"it closed the connection without an answer{self._log_tail()}"
        if code < 0:
            killer = " (often the kernel, short of memory)" if -code == signal.SIGKILL else ""
            return f"it was ended by signal {signal.Signals(-code).name}{killer}{self._log_tail()}"
        return f"it ended with exit code {code}{self._log_tail()}"

    def _log_tail(self) -> str:
        with self._log.open("rb") as log:
            tail = last_lines(log, REPORTED_LOG_LINES, self._log_start)
        return f"; the end of {self._log}:\n" + "\n".join(tail) if tail else f"; {self._log} is empty"


def _fork(
    module: str, log: BinaryIO, environment: Mapping[str, str], forced: Mapping[str, str]
) -> _Started | None:
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            process = fork_worker(module, theirs, log, worker_environment(environment, forced), forced.keys())
    except BaseException:
        ours.close()
        raise
    if process is None:
        ours.close()
        return None
    return process, ours


def _spawn(module: str, log: BinaryIO, variables: Mapping[str, str]) -> _Started:
    ours, theirs = socket.socketpair()
    with theirs:
        process = start_process(
            module_command(module, theirs.fileno(), os.getpid()),
            stdout=log,
            stderr=subprocess.STDOUT,
            environment=variables,
            descriptors=[theirs.fileno()],
        )
    return process, ours

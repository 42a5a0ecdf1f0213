"""One process that imports vLLM for the engines of many campaign processes, killed ones included.

A campaign's process has a fork server of its own, which spends half a minute on imports; a process that is
killed again and again would do little else. Here it forks its engines from the harness's server, whose socket
it is sent. All else is as it is.
"""

import os
import signal
import socket
import tempfile
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from winnow.tasks.engines.vllm import WORKER, WORKER_ENVIRONMENT
from winnow.tasks.processes import fork_server
from winnow.tasks.processes.fork_server import ForkedProcess, ForkServer

_forked: list[int] = []
"""Engines of this process."""


@dataclass(frozen=True)
class SharedImports:
    """A tampering: have vLLM's engines forked from another process's server; can be pickled for a fork."""

    control: socket.socket
    """Ours of the two ends of the conversation with the server."""

    def __call__(self) -> None:
        holding = fork_server._ModuleServer(WORKER, Path(os.devnull), WORKER_ENVIRONMENT)
        holding.holders, holding._server = 1, _Borrowed(self.control)
        fork_server._held[WORKER] = holding


@contextmanager
def shared_imports() -> Generator[SharedImports, None, None]:
    """A server that has imported vLLM, gone with its engines when the block ends."""
    with tempfile.TemporaryDirectory(prefix="winnow-imports-") as folder:
        server = ForkServer(WORKER, log=Path(folder) / "imports.log", environment=WORKER_ENVIRONMENT)
        try:
            yield SharedImports(server._control)
        finally:
            server.close()


def kill_forked() -> bool:
    """Kill this process's engines; return whether there was one."""
    was_there = False
    for pid in _forked:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
            was_there = True
    return was_there


class _Borrowed(ForkServer):
    """Another process's server; it ends when that process lets it."""

    def __init__(self, control: socket.socket) -> None:
        self._control, self.log, self.has_answered = control, Path(os.devnull), True

    def is_gone(self, patience: float = 0.0) -> bool:
        return False

    def fork(
        self, link: socket.socket, log: BinaryIO, environment: Mapping[str, str], forced: Collection[str]
    ) -> ForkedProcess:
        process = super().fork(link, log, environment, forced)
        _forked.append(process.pid)
        return process

    def close(self) -> None:
        self._control.close()

"""The server that campaigns of the kind "served" ask: a process, so that it can be killed for real.

It always has the same address, so that another one can take its place.
"""

import multiprocessing
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing.process import BaseProcess
from pathlib import Path

from faulty_server import MODEL, Call, Fault, FaultyServer, Script, is_canary, no_faults

from winnow.tasks.engines.openai.engine import CONTROL

HOST = "127.0.0.1"
PATIENCE = 60.0
"""Seconds that a server may take to listen."""


class ModelServer:
    """An address, and the process that listens there, if any does."""

    def __init__(self) -> None:
        self._process: BaseProcess | None = None

    @property
    def url(self) -> str:
        """Base URL, as a spec names it."""
        return f"http://{HOST}:{self._port}/v1"

    def start(self, script: Script = no_faults) -> None:
        """Have a new server listen, in the place of the one that does; the script must be picklable."""
        self.kill()
        forks = multiprocessing.get_context("forkserver")
        self._process = forks.Process(target=_serve, args=(self._port, script), daemon=True)
        self._process.start()
        deadline = time.monotonic() + PATIENCE
        while True:
            with suppress(ConnectionRefusedError), socket.create_connection((HOST, self._port)):
                return
            assert time.monotonic() < deadline, "no server came up"
            time.sleep(0.01)

    def kill(self) -> None:
        """End it with SIGKILL; its connections are cut off, and new ones refused."""
        if self._process is not None:
            self._process.kill()
            self._process.join()

    @property
    def _port(self) -> int:
        port: int = self._place.getsockname()[1]
        return port

    @cached_property
    def _place(self) -> socket.socket:
        """Bound and never listened at: nobody else is given the port while no server is there."""
        place = socket.socket()
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind((HOST, 0))
        return place


SERVER = ModelServer()


@dataclass(frozen=True, kw_only=True)
class Spoils:
    """A script that spoils the first attempts at some texts, and lets canaries be."""

    fault: Fault
    met: Path
    """A file that is there once the fault was met."""
    times: float = 2
    """Attempts at each of the texts."""
    texts: float = 4
    after: int = 9
    """Calls before the first of them; the second round has begun by then."""
    _chosen: set[str] = field(default_factory=set)
    """The texts, as they come to be known by their first attempts."""

    def __call__(self, call: Call) -> Fault | None:
        if is_canary(call.body):
            return None
        if call.prompt == CONTROL.prompt:  # what happens to these texts happens to all while it lasts
            return self.fault
        text = f"{call.prompt} {call.body['seed']}"
        if call.attempt == 0 and self.after <= call.number < self.after + self.texts:
            self._chosen.add(text)
        if text not in self._chosen or call.attempt >= self.times:
            return None
        self.met.touch()
        return self.fault


@dataclass(frozen=True, kw_only=True)
class Dies:
    """A script by which the server ends as if the kernel had decided so, with calls under way."""

    after: int = 9

    def __call__(self, call: Call) -> None:
        if call.number == self.after and not is_canary(call.body):
            os.kill(os.getpid(), signal.SIGKILL)


def _serve(port: int, script: Script) -> None:
    FaultyServer(script, _reply, None, MODEL, port)
    threading.Event().wait()


def _reply(call: Call) -> str:
    """Texts that differ in quality: some are answered with many letters."""
    return "aeioustrn"[: 1 + (len(call.prompt) + call.body.get("seed", 0)) % 9]

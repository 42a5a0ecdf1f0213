"""A command in a process of its own: held, signalled, waited for, and what it said."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

PATIENCE = 300.0
"""Seconds after which a process that neither gets where it should nor ends is stuck."""


class Process(Protocol):
    """What is needed of a fork, and of a process that was started anew."""

    pid: int

    @property
    def exitcode(self) -> int | None: ...

    def join(self, timeout: float | None = None) -> None: ...

    def kill(self) -> None: ...


class Run:
    """A command that was started."""

    def __init__(self, process: Process, folder: Path, out: Path, err: Path) -> None:
        self.process, self._folder, self._out, self._err = process, folder, out, err

    @property
    def pid(self) -> int:
        return self.process.pid

    def held(self) -> "Run":
        """Wait until it is held at the point that was asked for."""
        self.until((self._folder / f"held-{self.pid}").exists)
        return self

    def go(self) -> "Run":
        """Let it go on."""
        (self._folder / f"go-{self.pid}").touch()
        return self

    def until(self, holds: Callable[[], object]) -> "Run":
        """Wait until something holds; raises if the process ends before."""
        deadline = time.monotonic() + PATIENCE
        while not holds():
            if self.process.exitcode is not None:
                raise AssertionError(f"it ended before its time with {self.process.exitcode}: {self.said}")
            if time.monotonic() > deadline:
                self.process.kill()
                raise AssertionError(f"it did not get there in {PATIENCE:g} s: {self.said}")
            time.sleep(0.005)
        return self

    def send(self, number: signal.Signals) -> "Run":
        os.kill(self.pid, number)
        return self

    def ended(self) -> "Run":
        """Wait for its end."""
        self.process.join(PATIENCE)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
            raise AssertionError(f"it did not end in {PATIENCE:g} s: {self.said}")
        return self

    @property
    def code(self) -> int:
        """Its exit code; minus the signal that ended it."""
        code = self.ended().process.exitcode
        assert code is not None
        return code

    @property
    def out(self) -> str:
        return self._out.read_text(errors="replace") if self._out.exists() else ""

    @property
    def said(self) -> str:
        """What it wrote to standard error."""
        return self._err.read_text(errors="replace") if self._err.exists() else ""

    @property
    def sentence(self) -> str:
        """The last line of what it said to people."""
        lines = [line for line in self.said.splitlines() if line.strip()]
        return lines[-1].strip() if lines else ""

"""Provider `command`: a program that reads JSON from standard input and prints its output."""

import json
import os
import selectors
import shlex
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from signal import Signals
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, Field

from winnow.storage.json_types import JsonObject
from winnow.tasks.engines.agents.kit.calls import NAME, CallFailed, Patience, shown, variable_values
from winnow.tasks.engines.agents.kit.program_files import (
    code_of_command,
    code_that_runs,
    code_to_allow,
    ignores_variables,
)
from winnow.tasks.engines.agents.kit.replies import is_reply, json_or_text
from winnow.tasks.engines.agents.kit.settings import AgentSettings
from winnow.tasks.engines.errors import EngineLoadFailed
from winnow.tasks.plugins.allowed_code import Act, NotAllowed
from winnow.tasks.processes.child_process import end_process, start_process
from winnow.tasks.processes.orphans import OrphanGuard
from winnow.tasks.processes.process_tree import end_tree

MOST_BYTES = 4 << 20
"""Maximum bytes of standard output of a run."""

KEPT_OF_STDERR = 1 << 16

TEMPORARY = 75
"""Exit code of a temporary failure: EX_TEMPFAIL of sysexits.h."""

PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV",
             "SSL_CERT_FILE", "SSL_CERT_DIR")  # fmt: skip
"""Environment variables passed to every program, in addition to those that begin with LC_."""

REST = 20.0
"""Seconds between two checks of the program's files, as a multiple of the duration of a check."""


def _variable(name: str) -> str:
    if (found := NAME.fullmatch(name)) is None:
        raise ValueError("must be names of environment variables, such as OPENAI_API_KEY")
    return found[1]


class Settings(AgentSettings):
    """Keys of an entry with `provider: command`."""

    KNOBS: ClassVar[tuple[str, ...]] = (*AgentSettings.KNOBS, "env")

    command: list[Annotated[str, Field(min_length=1)]] = Field(min_length=1)
    """The program and its arguments, such as [python, agent.py]; no shell interprets them."""
    env: list[Annotated[str, AfterValidator(_variable)]] = Field(default=[])
    """Additional environment variables for the program, besides PATH, HOME, language and time zone."""
    reply: Literal["auto", "json", "text"] = "auto"
    """Format of standard output. "json": an object with `output`; "text": the output itself; "auto": detected
    from the content."""
    retry_on: list[int] = Field(default=[TEMPORARY])
    """Exit codes after which a run is tried again."""

    @classmethod
    def from_text(cls, text: str) -> JsonObject:
        """See `AgentSettings`."""
        return {"command": shlex.split(text)}

    @property
    def shown(self) -> str:
        """See `AgentSettings`."""
        return shlex.join(self.command)

    def acts(self, folder: Path) -> Iterator[tuple[str, Act]]:
        """See `AgentSettings`."""
        text = f"run the command {shlex.join(self.command)!a} in {str(folder.resolve())!a}"
        if self.env:
            text += f" with the environment variables {', '.join(sorted(set(self.env)))}"
        yield "command", Act(text, code_to_allow(self.command, folder) or None)

    def code(self) -> Mapping[str, str]:
        """See `AgentSettings`."""
        return code_of_command(self.command, Path.cwd())

    def check(self) -> None:
        """See `AgentSettings`."""
        if shutil.which(self.command[0]) is None:
            raise ValueError(
                f"there is no program {self.command[0]!r}; install it, or give its path relative to "
                f"{Path.cwd()}"
            )
        variable_values(self.env)


class Caller:
    """Run the program once for each attempt.

    Args:
        name: Name of the agent.
        settings: The agent's keys of the campaign's file.
        log_folder: Not used, because the reason of a failed run quotes the program's error output.
    """

    def __init__(self, name: str, settings: Settings, log_folder: Path) -> None:
        self._name, self._settings = name, settings
        self._secrets = variable_values(settings.env)
        passed = {key for key in os.environ if key in PASSED_ON or key.startswith("LC_")}
        # Bytecode next to a source file could belong to another version, so each run of Winnow compiles anew.
        self._compiled = tempfile.TemporaryDirectory(prefix="winnow-compiled-", ignore_cleanup_errors=True)
        forced = {"PYTHONPYCACHEPREFIX": self._compiled.name}
        self._environment = {**{key: os.environ[key] for key in passed}, **self._secrets, **forced}
        program, *arguments = settings.command
        if ignores_variables(settings.command):
            arguments = ["-X", f"pycache_prefix={self._compiled.name}", *arguments]
        self._command = [program, *arguments]
        self._guard = OrphanGuard()
        self._folder = Path.cwd()
        self._looking = threading.Lock()  # guards the next two
        self._code: Mapping[str, str] | None = code_that_runs(settings.command, self._folder)
        self._next_look = 0.0
        self._changed = threading.Condition()  # guards everything below
        self._running: set[subprocess.Popen[bytes]] = set()
        self._closed = False

    def answer(self, message: JsonObject) -> object:
        """See `Caller`."""
        self._require_unchanged()
        process = self._started()
        try:
            run = _Run(process, json.dumps(message).encode("ascii"))
            is_done = run.within(Patience(self._settings.timeout))
        finally:
            self._end(process)
        self._require_unchanged()  # otherwise the reply could come from other code
        if not is_done:
            raise CallFailed(
                f"the command did not end within {self._settings.timeout:g} s", reason="timed_out"
            )
        if run.is_too_long:
            raise CallFailed(f"the command printed more than {MOST_BYTES} bytes", reason="bad_reply")
        if code := process.returncode:
            raise CallFailed(
                f"the command {_ending(code)}{self._words(run.errors)}",
                may_retry=code in self._settings.retry_on,
                said=_output_json(bytes(run.output)),
            )
        return self._read(bytes(run.output))

    def close(self) -> None:
        """End all programs and their children."""
        with self._changed:
            self._closed = True
            for process in self._running:
                if process.returncode is None:
                    end_tree(process.pid)
            self._changed.wait_for(lambda: not self._running)
        self._guard.close()
        self._compiled.cleanup()

    def _require_unchanged(self) -> None:
        """Raise `NotAllowed` if the program's files have changed; `REST` limits how often they are read."""
        with self._looking:
            begun = time.monotonic()
            if self._code is not None and begun < self._next_look:
                return
            if self._code is None or code_that_runs(self._settings.command, self._folder) != self._code:
                self._code = None
                raise NotAllowed(
                    f"the code of the command {self._settings.shown!a} was changed while the campaign ran; "
                    "undo the change, or begin a new campaign: winnow run SPEC --fork NEW_NAME"
                )
            now = time.monotonic()
            self._next_look = now + REST * (now - begun)

    def _started(self) -> "subprocess.Popen[bytes]":
        with self._changed:
            if self._closed:
                raise CallFailed("the command was ended")
            try:
                process = start_process(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    environment=self._environment,
                )
            except OSError as error:
                why = f"the command {self._settings.shown!r} cannot be started ({error.strerror})"
                raise EngineLoadFailed(self._name, why) from error
            self._guard.watch(process.pid)
            self._running.add(process)
            return process

    def _end(self, process: "subprocess.Popen[bytes]") -> None:
        try:
            if process.poll() is None:
                end_tree(process.pid)
            end_process(process)
        finally:
            self._guard.forget(process.pid)
            with self._changed:
                self._running.discard(process)
                self._changed.notify_all()

    def _read(self, output: bytes) -> object:
        if self._settings.reply == "text":
            return output.decode("utf-8", errors="replace").removesuffix("\n")
        said = json_or_text(output)
        if self._settings.reply == "json" and not is_reply(said):
            raise CallFailed("the command printed no JSON object with output", reason="bad_reply")
        return said

    def _words(self, errors: bytearray) -> str:
        words = shown(errors.decode(errors="replace"), self._secrets)
        return f": {words}" if words else ""


class _Run:
    """Write a program's input and read its output, of which a bounded part is kept."""

    def __init__(self, process: "subprocess.Popen[bytes]", content: bytes) -> None:
        self._process, self._left = process, memoryview(content)
        self.output, self.errors = bytearray(), bytearray()

    @property
    def is_too_long(self) -> bool:
        """Whether the program wrote more than `MOST_BYTES` to standard output."""
        return len(self.output) > MOST_BYTES

    def within(self, patience: Patience) -> bool:
        """Write and read until the program ends; return whether it ended in time."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        with selectors.DefaultSelector() as selector:
            for pipe, event in (
                (self._process.stdin, selectors.EVENT_WRITE),
                (self._process.stdout, selectors.EVENT_READ),
                (self._process.stderr, selectors.EVENT_READ),
            ):
                os.set_blocking(pipe.fileno(), False)
                selector.register(pipe, event)
            while not self._is_over(selector):
                if not (seconds := patience.step()):
                    return False
                for key, _ in selector.select(seconds):
                    if not self._move(key.fd):
                        selector.unregister(key.fileobj)
                        key.fileobj.close()  # type: ignore[union-attr]  # the selector has only files
        if self.is_too_long:
            return True
        while seconds := patience.step():
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
                return True
        return self._process.poll() is not None

    def _is_over(self, selector: selectors.BaseSelector) -> bool:
        if self.is_too_long:
            return True
        open_files = {key.fileobj for key in selector.get_map().values()}
        if not open_files & {self._process.stdout, self._process.stderr}:
            return True
        # A child of the program may hold its pipes open after the program's own end.
        return self._process.poll() is not None and not selector.select(0)

    def _move(self, descriptor: int) -> bool:
        """Write or read as much as the pipe allows now; return whether more may follow."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            if not self._process.stdin.closed and descriptor == self._process.stdin.fileno():
                self._left = self._left[os.write(descriptor, self._left[: 1 << 16]) :]
                return bool(self._left)
            chunk = os.read(descriptor, 1 << 16)
        except BlockingIOError:
            return True
        except OSError:  # the program may close its standard input
            return False
        if not self._process.stdout.closed and descriptor == self._process.stdout.fileno():
            self.output += chunk
        else:
            self.errors += chunk
            del self.errors[:-KEPT_OF_STDERR]
        return bool(chunk)


def _ending(code: int) -> str:
    if code > 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by signal {Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"


def _output_json(output: bytes) -> object:
    """Output of a failed run as a JSON value, which may report its cost; None if it is not JSON."""
    try:
        return json.loads(output)
    except (ValueError, RecursionError):
        return None

"""Start and end child processes, with their command, environment and log.

Every child of Winnow leads its own session: a terminal's Ctrl-C does not reach it, and it is ended together
with all processes that it started. It inherits no descriptors except the named ones. A child that must not
outlive its parent detects the parent's end itself: `worker_side.ParentLink` checks the parent's process id,
`parent_watchdog` waits until the pipe at its standard input closes.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import DEVNULL
from typing import IO, BinaryIO, Protocol

from winnow.tasks.errors import WinnowError
from winnow.tasks.plugins.library_settings import compiled_code
from winnow.tasks.plugins.own_files import open_to_append

ROOT = Path(__file__).parents[3]  # the folder with the package `winnow`; in a checkout it has links


def module_command(module: str, *arguments: object) -> list[str]:
    """Command line that runs a module."""
    # -P: a folder `tasks` in the working folder must not replace ours.
    return [sys.executable, "-P", "-m", module, *map(str, arguments)]


def worker_environment(
    environment: Mapping[str, str], forced: Mapping[str, str], inherited: Collection[str] | None = None
) -> dict[str, str]:
    """All environment variables of a worker.

    Args:
        environment: Additional variables; the user's values take precedence.
        forced: Variables that override the user's.
        inherited: The user's variables to pass on; None for all.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    users = {name: value for name, value in os.environ.items() if inherited is None or name in inherited}
    return {**compiled_code(), **environment, **users, **forced, "PYTHONPATH": path}


Stream = int | IO[bytes] | None
"""A file, a descriptor, `subprocess.PIPE` or the like; None means the parent's own stream."""

FORCED_SECONDS = 10.0
"""Maximum seconds for a killed process to end."""


def start_process(
    command: Sequence[str],
    *,
    stdin: Stream = DEVNULL,
    stdout: Stream = DEVNULL,
    stderr: Stream = DEVNULL,
    environment: Mapping[str, str] | None = None,
    descriptors: Collection[int] = (),
    folder: str | None = None,
) -> subprocess.Popen[bytes]:
    """Start a program as the leader of a new session; end it with `end_process`.

    Args:
        command: The program and its arguments.
        stdin: Standard input of the program.
        stdout: Standard output of the program.
        stderr: Standard error of the program.
        environment: All variables of the program; None for those of this process.
        descriptors: The descriptors that the program inherits.
        folder: Working folder of the program; None for that of this process.

    Raises:
        OSError: If the program cannot be started.
    """
    return subprocess.Popen(
        command,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=environment,
        pass_fds=tuple(descriptors),
        cwd=folder,
        start_new_session=True,
    )


class SessionLeader(Protocol):
    """Interface of a child process that leads a session, started directly or by a fork server."""

    @property
    def pid(self) -> int:
        """Process id, which is also the id of the process group."""

    def wait(self, timeout: float, /) -> int:
        """Exit code; raises `subprocess.TimeoutExpired` after `timeout` seconds."""


def end_process(process: SessionLeader, patience: float = 0.0) -> None:
    """End a process and its children, and close our ends of its pipes.

    Returns when all of them have ended.

    Args:
        process: The process; it can have ended already.
        patience: Seconds between SIGTERM and SIGKILL; 0 sends SIGKILL at once.
    """
    for pipe in (getattr(process, name, None) for name in ("stdin", "stdout", "stderr")):
        if pipe is not None:
            with suppress(OSError):  # unwritten data have no reader
                pipe.close()
    if patience:
        _signal_group(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    _signal_group(process.pid, signal.SIGKILL)
    process.wait(FORCED_SECONDS)
    deadline = time.monotonic() + FORCED_SECONDS
    while _signal_group(process.pid, signal.SIGKILL) and time.monotonic() < deadline:
        time.sleep(0.01)


def _signal_group(group: int, number: signal.Signals) -> bool:
    """Signal every process of the group; return whether the group had any."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):  # macOS raises the latter for a group of zombies
        return False
    return True


@contextmanager
def running_process(
    command: Sequence[str], *, stdin: Stream = DEVNULL, stdout: Stream = DEVNULL, stderr: Stream = DEVNULL
) -> Generator[subprocess.Popen[bytes], None, None]:
    """Run a program as `start_process` does; end it with its children when the block ends."""
    process = start_process(command, stdin=stdin, stdout=stdout, stderr=stderr)
    try:
        yield process
    finally:
        end_process(process)


MOST_SHOWN_BYTES = 1 << 16
"""Maximum bytes at the end of a process's output that are searched for its last lines."""


def last_lines(output: BinaryIO, count: int, start: int = 0) -> list[str]:
    """The last lines of a process's output that are not blank.

    Args:
        output: The file with the output.
        count: Maximum number of lines.
        start: Offset in the file at which the process's output begins.
    """
    end = output.seek(0, os.SEEK_END)
    output.seek(max(start, end - MOST_SHOWN_BYTES))
    lines = output.read(MOST_SHOWN_BYTES).decode(errors="replace").split("\n")
    return [line for line in lines if line.strip()][-count:]


def log_file(folder: Path, model: str) -> Path:
    """Path of a model's log file; the model's name may have any characters."""
    return folder / f"{re.sub(r'[^A-Za-z0-9._-]', '_', model)}.log"


def open_log(log: Path) -> BinaryIO:
    """Open a log file for appending; creates its folders.

    Raises:
        WinnowError: If the file cannot be written.
    """
    try:
        return open_to_append(log)
    except OSError as error:
        raise WinnowError(
            f"the log {log} of an engine cannot be written ({error.strerror}); free disk space, "
            "or set execution.log_folder to another folder"
        ) from error

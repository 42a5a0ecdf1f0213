"""The sandbox from outside: start, supervise and kill its processes; report the outcome.

A program and its tests run in separate processes, so that the program's changes to its interpreter cannot
affect its verdict; or both in one process, if the tests need that. The processes confine themselves before
they run anything (`inside.confinement`). This module enforces the limits that they cannot enforce themselves:
wall time, total size of files, and threads.
"""

import json
import os
import select
import signal
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import asdict, dataclass
from secrets import token_hex
from typing import Literal

from winnow.storage.json_types import JsonObject
from winnow.tasks.judges.code.inside.confinement import Limits
from winnow.tasks.processes.child_process import ROOT, start_process

CLOCK_FACTOR = 5
"""Wall seconds allowed per processor second: enough for a busy machine, and limits sleeping processes."""

MOST_FILES_BYTES = 64 << 20
MOST_FILES = 1_000
MOST_THREADS = 64

_LOOK_SECONDS = 0.05  # between checks of files and threads
_END_SECONDS = 1.0  # for a process to end after it closed its pipe
_REPORT_BYTES = 1 << 16

_NOT_SET_UP = "the sandbox could not be set up"

_CODE = "import sys; sys.path.insert(0, {root!r}); from {module} import main; main()"
_MODULE = "winnow.tasks.judges.code.inside.main"

Role = Literal["tests", "program", "both"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """An output with a program, and tests of the program."""

    output: str
    prefix: str
    """Text that the output continues."""
    tests: str
    entry_point: str | None
    """Name of the program's function that the tests call `candidate`."""
    stops: bool
    """Whether the first failing test ends the tests."""
    same_process: bool
    """Whether the tests run in the program's own interpreter."""
    limits: Limits
    """Limits of each process."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Result of a task, or the reason why it has none."""

    tests: int = 0
    passed: int = 0
    failure: str | None = None
    """Why not all tests passed, as a sentence; None if all passed."""
    no_tests: str | None = None
    """Why the tests cannot judge any program; None if they can."""
    broken: str | None = None
    """Why the sandbox could not judge this program, which is not the program's fault; None if it could."""


def run_tasks(tasks: Collection[Task]) -> dict[Task, Outcome]:
    """Run several programs in parallel, as many as this process has processors."""
    executor = ThreadPoolExecutor(len(os.sched_getaffinity(0)), "winnow-code")
    try:
        return dict(zip(tasks, executor.map(run_task, tasks), strict=True))
    finally:
        executor.shutdown(cancel_futures=True)  # if the call is interrupted


def run_task(task: Task) -> Outcome:
    """Run a program and its tests; on return all processes have ended and their files are removed."""
    try:
        with ExitStack() as stack:
            kept = tempfile.TemporaryDirectory(prefix="winnow-code-", ignore_cleanup_errors=True)
            folder = stack.enter_context(kept)
            processes = stack.enter_context(_started(task, folder))
            stopped = _watched(processes, folder, task.limits.seconds * CLOCK_FACTOR)
            for process in processes:
                process.end(_END_SECONDS if stopped is None else 0.0)
            return _outcome(processes, stopped, task.limits)
    except OSError as error:  # no process, pipe or folder is available
        return Outcome(broken=f"{_NOT_SET_UP}: {error}")


class _Process:
    """One process of a task.

    Args:
        role: The part of the task that it runs: the tests, the program or both.
        setup: The task and settings that it receives, as JSON values.
        links: Descriptors that it inherits.
    """

    def __init__(self, role: Role, setup: JsonObject, links: Sequence[int]) -> None:
        self.role = role
        self.was_killed = False
        self.status: int | None = None
        self.cpu_seconds = 0.0
        self._mark = token_hex(16)
        self._told = bytearray()
        self.reads, report = os.pipe()
        try:
            with tempfile.TemporaryFile() as task:
                told = {**setup, "role": role, "link": links, "report": report, "mark": self._mark}
                task.write(json.dumps(told).encode("ascii"))
                task.seek(0)
                self._process = start_process(
                    _command(),
                    stdin=task,
                    environment={"PYTHONHASHSEED": "0"},
                    descriptors=[*links, report],
                    folder="/",
                )
        except BaseException:
            os.close(self.reads)
            raise
        finally:
            os.close(report)

    def read(self) -> bool:
        """Read messages of the process; return whether more may come."""
        chunk = os.read(self.reads, _REPORT_BYTES)
        self._told += chunk[: _REPORT_BYTES - len(self._told)]
        return bool(chunk)

    def messages(self) -> Iterator[JsonObject]:
        """Messages of the process; lines without its mark are ignored."""
        for line in bytes(self._told).splitlines():
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(message, dict) and message.get("mark") == self._mark:
                yield message

    @property
    def threads(self) -> int:
        """Number of threads of the process; 0 after it has ended."""
        try:
            return len(os.listdir(f"/proc/{self._process.pid}/task"))
        except OSError:
            return 0

    def end(self, patience: float) -> None:
        """Wait up to `patience` seconds for the process to end, then kill it.

        The process has ended when this returns.
        """
        deadline = time.monotonic() + patience
        while not self._reaped(os.WNOHANG):
            if time.monotonic() >= deadline:
                self.was_killed = True
                self._process.send_signal(signal.SIGKILL)
                self._reaped(0)
                return
            time.sleep(0.002)

    def close(self) -> None:
        """Kill the process if it still runs, and release its resources."""
        self.end(0.0)
        os.close(self.reads)

    def _reaped(self, options: int) -> bool:
        if self.status is not None:
            return True
        pid, status, usage = os.wait4(self._process.pid, options)
        if pid:
            self.status = self._process.returncode = os.waitstatus_to_exitcode(status)
            self.cpu_seconds = usage.ru_utime + usage.ru_stime
        return bool(pid)


def _command() -> list[str]:
    python = getattr(sys, "_base_executable", None) or sys.executable
    # No -I: the interpreter would then choose a random hash seed.
    return [python, "-P", "-S", "-s", "-B", "-c", _CODE.format(root=str(ROOT), module=_MODULE)]


@contextmanager
def _started(task: Task, folder: str) -> Iterator[list[_Process]]:
    """Start the processes of a task; the process of the tests is first."""
    setup = {
        **{key: value for key, value in asdict(task).items() if key != "same_process"},
        "folder": folder,
        "parent": os.getpid(),
        "root": str(ROOT),
    }
    with ExitStack() as stack:
        if task.same_process:
            yield [stack.enter_context(closing(_Process("both", setup, ())))]
            return
        with ExitStack() as pipes:
            ends = [*os.pipe(), *os.pipe()]
            for each in ends:
                pipes.callback(os.close, each)
            program = stack.enter_context(
                closing(_Process("program", setup | {"tests": ""}, (ends[0], ends[3])))
            )
            tests = stack.enter_context(
                closing(_Process("tests", setup | {"output": "", "prefix": ""}, (ends[2], ends[1])))
            )
        yield [tests, program]


def _watched(processes: Sequence[_Process], folder: str, seconds: float) -> str | None:
    """Wait for the first process to finish its messages.

    Returns:
        The reason to stop it earlier; None if it finished.
    """
    deadline = time.monotonic() + seconds
    first, *_ = processes
    ready = select.poll()
    open_ends = {process.reads: process for process in processes}
    for each in open_ends:
        ready.register(each)
    while first.reads in open_ends:
        for descriptor, _ in ready.poll(_LOOK_SECONDS * 1000.0):
            if not open_ends[descriptor].read():
                ready.unregister(descriptor)
                del open_ends[descriptor]
        if time.monotonic() > deadline:
            return f"took more than {seconds:g} s by the clock"
        if any(process.threads > MOST_THREADS for process in processes):
            return f"had more than {MOST_THREADS} threads"
        if _is_full(folder):
            return f"kept more than {MOST_FILES_BYTES >> 20} MiB or {MOST_FILES} files"
    return None


def _is_full(folder: str) -> bool:
    total = 0
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries, 1):
            try:
                total += entry.stat(follow_symlinks=False).st_blocks * 512
            except OSError:
                continue
            if count > MOST_FILES or total > MOST_FILES_BYTES:
                return True
    return False


def _outcome(processes: Sequence[_Process], stopped: str | None, limits: Limits) -> Outcome:
    told = [list(process.messages()) for process in processes]
    failed = [each[0]["failed"] for each in told if each and "failed" in each[0]]
    report = told[0][-1] if told[0] else {}
    has_result = bool(report) and report.keys().isdisjoint({"confined", "ended"})
    if failed or not (has_result or all(told)):
        why = failed[0] if failed else stopped or "its process ended at once"
        return Outcome(broken=f"{_NOT_SET_UP}: {why}")
    if stopped is not None:
        return Outcome(failure=f"the program {stopped}")
    if has_result:
        return _reported(report)
    return _ended(processes[-1] if "ended" in report else processes[0], report, limits)


def _reported(report: JsonObject) -> Outcome:
    if "not_carried" in report:
        return Outcome(no_tests=f"{report['not_carried']}, which needs same_process: true")
    if "no_tests" in report:
        return Outcome(no_tests=str(report["no_tests"]))
    tests, passed, failure = report.get("tests", 0), report.get("passed", 0), report.get("failure")
    if failure is None and (type(tests), type(passed)) == (int, int) and 0 < tests == passed:
        return Outcome(tests=tests, passed=passed)
    return Outcome(tests=int(tests), passed=int(passed), failure=str(failure))


def _ended(process: _Process, report: JsonObject, limits: Limits) -> Outcome:
    """Outcome of a process that reported no result."""
    what = "the tests" if process.role == "tests" else "the program"
    if process.status == -signal.SIGKILL and not process.was_killed:
        if process.cpu_seconds > limits.seconds - 0.5:
            return Outcome(failure=f"{what} took more than {limits.seconds} s of a processor")
        return Outcome(broken="the system killed the sandbox's process, probably because memory is short")
    if process.was_killed or process.status is None:
        return Outcome(failure=f"{what} gave no answer that can be read ({report.get('ended', 'none')})")
    if process.status < 0:
        return Outcome(failure=f"{what} ended by {signal.Signals(-process.status).name}")
    return Outcome(failure=f"{what} ended, with exit code {process.status}, before all tests were run")

"""Judge in a separate process, which is killed if it exceeds its time.

A library can run forever or fill the memory on a model's output, and user code can do anything. So such code
never runs in the campaign's process. The judge's process starts with the first output, judges one output
after another, and is replaced after it had to be killed.
"""

import contextlib
import os
import signal
import tempfile
import weakref
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from winnow.storage.json_types import JsonObject
from winnow.tasks.judges.protocol import INVALID_SCORE, JUDGE_FAILED, InvalidScore, Sample, Verdict
from winnow.tasks.plugins.entry_points import Plugin, log_folder, logged
from winnow.tasks.processes.worker_process import WorkerEnded, WorkerProcess

START_SECONDS = 120.0
"""Maximum seconds for a process's imports; symbolic libraries take a second, others more."""

MOST_BYTES = 1 << 24
"""Maximum bytes of a reply."""

LOG = "judge.log"
"""Name of the file, in a campaign's log folder, for what judges print."""


class IsolationFailed(Exception):
    """The judge's process could not start or load its code; the message says why."""


class IsolatedJudge:
    """Judge that runs in a child process.

    Args:
        build: "module:callable" of Winnow, called in the child with `params`; it returns a function from a
            `Sample` to a `Verdict`.
        params: JSON values.
        plugin: The plug-in or built-in judge whose code the child runs, for messages.
        seconds: Maximum wall seconds for one output.
        exhausted: The reason for an output that exceeded the time or memory, or ended the process.
        processor_seconds: Maximum processor seconds, independent of other processes; if None, `seconds` on
            every processor.
        memory: Bytes for judging on top of the memory after loading; None for no limit.
    """

    def __init__(
        self,
        build: str,
        params: Mapping[str, object],
        *,
        plugin: Plugin,
        seconds: float,
        exhausted: str,
        processor_seconds: float | None = None,
        memory: int | None = None,
    ) -> None:
        self._setup = {
            "build": build,
            "params": dict(params),
            "plugin": asdict(plugin),
            "processor_seconds": processor_seconds or seconds * (os.cpu_count() or 1) + 1.0,
            "memory": memory,
        }
        self._plugin = plugin
        self._seconds = seconds
        self._exhausted = exhausted
        self._process: WorkerProcess | None = None
        self._end: weakref.finalize[..., object] | None = None

    def start(self) -> None:
        """Start the process and load its code.

        Raises:
            IsolationFailed: If the process cannot start or load; the message names the judge.
        """
        if self._process is not None:
            return
        folder = None if log_folder() is not None else tempfile.TemporaryDirectory(prefix="winnow-judge-")
        log = (Path(folder.name).resolve() if folder else log_folder() or Path()) / LOG
        process = WorkerProcess("winnow.tasks.judges.isolated.worker", log=log, environment=_SETTINGS)
        self._process = process
        self._end = weakref.finalize(self, _end, process, folder, os.getpid())
        try:
            reply = self._answer(self._setup, START_SECONDS)
        except _Exhausted as error:
            raise IsolationFailed(f"{self._plugin} {error}") from None
        if "failed" in reply:
            self._drop()
            raise IsolationFailed(_logged(reply))

    def judge(self, sample: Sample) -> Verdict:
        """Verdict of the child; its errors become reasons and are not raised."""
        try:
            self.start()
            reply = self._answer({"sample": asdict(sample)}, self._seconds)
        except IsolationFailed as error:
            return Verdict.unscored(JUDGE_FAILED, detail=f"{error}")
        except _Exhausted as error:
            return Verdict.unscored(self._exhausted, detail=f"{self._plugin} {error}")
        if "failed" in reply:
            return Verdict.unscored(JUDGE_FAILED, detail=_logged(reply))
        if "exhausted" in reply:
            return Verdict.unscored(self._exhausted, detail=f"{self._plugin} {reply['exhausted']}")
        try:
            return Verdict(**reply["verdict"])
        except (InvalidScore, KeyError, TypeError) as error:
            return Verdict.unscored(INVALID_SCORE, detail=str(error))

    def _answer(self, message: Mapping[str, object], seconds: float) -> JsonObject:
        """Answer of the child to a message; any exception leaves no child running.

        Raises:
            _Exhausted: If the child does not answer in time, or ended.
        """
        assert self._process is not None
        try:
            self._process.send(message)
            return self._process.receive(seconds, lambda: MOST_BYTES)
        except TimeoutError:
            self._drop()
            raise _Exhausted(f"did not answer within {seconds:g} s") from None
        except (WorkerEnded, ValueError) as error:
            self._drop()
            raise _Exhausted(self._ending(str(error).partition(";")[0])) from None
        except BaseException:  # a late answer would be read as that of the next output
            self._drop()
            raise

    def _ending(self, said: str) -> str:
        if signal.Signals.SIGVTALRM.name in said:
            return f"took more than {self._setup['processor_seconds']:g} s of a processor"
        return f"ended its process: {said}"

    def _drop(self) -> None:
        if self._end is not None:
            self._end()
        self._process = self._end = None


class _Exhausted(Exception):
    """The child had to be killed, or ended unexpectedly."""


_SETTINGS = {
    **{"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
    "PYTHONHASHSEED": "0",  # so that sets have the same order in each process
}


def _end(process: WorkerProcess, folder: "tempfile.TemporaryDirectory[str] | None", owner: int) -> None:
    if os.getpid() != owner:  # a fork must not kill the process that its parent still uses
        return
    process.kill()
    if folder is not None:
        with contextlib.suppress(OSError):
            folder.cleanup()


def _logged(reply: Mapping[str, object]) -> str:
    return logged(str(reply["failed"]), str(reply["raised_at"]), str(reply["traceback"]))

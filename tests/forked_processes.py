"""Tests in several processes, which are forked from the one that collected them.

Collecting imports what thousands of tests need, for ten seconds of a processor and more. A forked process has
all of it at once and shares its memory, so that there may be more processes than processors, and no processor
idles while a test waits. What each process is given, and in which order, is in tests/distribution.py.
"""

import atexit
import os
import sys
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from tempfile import TemporaryFile
from typing import IO

import pytest
import spare_process
from _pytest.capture import FDCapture
from _pytest.config import create_terminal_writer

Share = deque[int]
"""Positions of tests among those that were collected."""


class Processes:
    """Run what was collected in this many processes."""

    def __init__(
        self,
        config: pytest.Config,
        count: int,
        shares: Callable[[Sequence[pytest.Item]], Sequence[Sequence[int]]],
    ) -> None:
        self._config = config
        self._count = count
        self._shares_of = shares
        self._waiting: deque[Share] = deque()
        self._running: dict[Connection, _Process] = {}
        self._begun = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """In the place of pytest's own loop, which says what there is to say of a collection that failed."""
        if session.testsfailed or self._config.option.collectonly:
            return None
        self._waiting = deque(deque(share) for share in self._shares_of(session.items))
        try:
            for _ in range(min(self._count, len(self._waiting))):
                self._begin(session)
            while self._running:
                self._hear(session)
        finally:
            self._end()
        if session.shouldfail:
            raise session.Failed(session.shouldfail)
        if session.shouldstop:
            raise session.Interrupted(session.shouldstop)
        return True

    def _begin(self, session: pytest.Session) -> None:
        """Fork a process and give it the share that is next."""
        ours, theirs = Pipe()
        self._begun += 1
        sys.stdout.flush()
        sys.stderr.flush()
        if (pid := os.fork()) == 0:
            for other in (ours, *self._running):
                other.close()  # only then does a process notice that this one is gone
            _Worker(session, theirs, self._begun).live()
        theirs.close()
        self._running[ours] = _Process(pid)
        self._give(ours)

    def _give(self, process: Connection) -> None:
        share = self._waiting.popleft() if self._waiting else None
        self._running[process].share.extend(share or ())
        process.send(share)

    def _hear(self, session: pytest.Session) -> None:
        for process in wait(list(self._running)):
            try:
                told, what = process.recv()
            except (EOFError, ConnectionResetError):
                self._bury(process, session)
                continue
            self._heed(process, told, what)
            if session.shouldfail or session.shouldstop:
                self._waiting.clear()
                for each in self._running:
                    _tell_to_stop(each)

    def _heed(self, process: Connection, told: str, what: object) -> None:
        hook = self._config.hook
        if told == "more":
            self._give(process)
        elif told == "ended":
            self._running[process].is_done = True
        elif told == "broken":
            raise RuntimeError(f"a process of the suite broke:\n{what}")
        elif told == "begun":
            self._running[process].share.popleft()
            self._running[process].test = what
            hook.pytest_runtest_logstart(nodeid=what[0], location=what[1])
        elif told == "finished":
            self._running[process].test = None
            hook.pytest_runtest_logfinish(nodeid=what[0], location=what[1])
        else:
            report = hook.pytest_report_from_serializable(config=self._config, data=what)
            hook.pytest_runtest_logreport(report=report)

    def _bury(self, process: Connection, session: pytest.Session) -> None:
        """A process that ended as it should, or whose test took it along: that one failed, others go on."""
        gone = self._running.pop(process)
        process.close()
        _, status = os.waitpid(gone.pid, 0)
        if gone.is_done:
            return
        nodeid, location = gone.test or ("a process between two tests", ("", None, ""))
        self._config.hook.pytest_runtest_logreport(
            report=pytest.TestReport(
                nodeid=nodeid,
                location=location,
                keywords={},
                outcome="failed",
                longrepr=f"its process ended with {os.waitstatus_to_exitcode(status)}",
                when="call",
            )
        )
        if session.shouldfail or session.shouldstop:
            return
        if gone.share:
            self._waiting.appendleft(gone.share)
        if self._waiting:
            self._begin(session)

    def _end(self) -> None:
        """Have all processes end that still run, as they do when nobody hears them."""
        for process, gone in self._running.items():
            process.close()
            os.waitpid(gone.pid, 0)
        self._running.clear()


class _Process:
    """What is known of one: its tests that have not begun, and the one that runs."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.share: Share = deque()
        self.test = None
        self.is_done = False


def _tell_to_stop(process: Connection) -> None:
    try:
        process.send(None)
    except OSError:
        return  # it ends already


class _Worker:
    """A forked process: runs what it is given, and tells of it."""

    def __init__(self, session: pytest.Session, parent: Connection, number: int) -> None:
        self._session = session
        self._parent = parent
        self._number = number

    def live(self) -> None:
        """Run shares of tests until there is none left; does not return."""
        code = 1
        try:
            self._settle()
            try:
                self._run()
            finally:
                self._session._setupstate.teardown_exact(None)
            self._parent.send(("ended", None))
            code = 0
        except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
            pass  # nobody hears it any more
        except BaseException:
            self._parent.send(("broken", traceback.format_exc()))
        finally:
            atexit._run_exitfuncs()
            os._exit(code)

    def _settle(self) -> None:
        """Leave alone what is the parent's: what it does at its end, its folder, what it captures or says."""
        atexit._clear()
        config = self._session.config
        folders = config._tmp_path_factory
        folders._basetemp = folders.getbasetemp() / f"process-{self._number}"
        folders._basetemp.mkdir()
        if capturing := config.pluginmanager.getplugin("capturemanager")._global_capturing:
            for each in (capturing.out, capturing.err):
                if isinstance(each, FDCapture):
                    _have_a_file_of_its_own(each.tmpfile)
        silence = open(os.devnull, "w")  # noqa: SIM115 - until the process ends
        config.pluginmanager.getplugin("terminalreporter")._tw = create_terminal_writer(config, silence)
        config.pluginmanager.register(_Telling(config, self._parent))
        spare_process.keep_one([self._parent])

    def _run(self) -> None:
        items = self._session.items
        share = self._parent.recv()
        while share and not self._is_stopped():
            item = items[share.popleft()]
            if not share:  # what comes next decides which fixtures end
                self._parent.send(("more", None))
                share = self._parent.recv()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=items[share[0]] if share else None)

    def _is_stopped(self) -> bool:
        """Whether a test here or elsewhere was the last one that may fail."""
        if self._session.shouldfail or self._session.shouldstop:
            return True
        return self._parent.poll() and self._parent.recv() is None


def _have_a_file_of_its_own(captured: IO[str]) -> None:
    """Let what is written there go to another file; the object stays, as loggers have it."""
    with TemporaryFile() as own:
        os.dup2(own.fileno(), captured.fileno())


class _Telling:
    """Tells the parent what pytest tells of tests."""

    def __init__(self, config: pytest.Config, parent: Connection) -> None:
        self._config = config
        self._parent = parent

    def pytest_runtest_logstart(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._parent.send(("begun", (nodeid, location)))

    def pytest_runtest_logfinish(self, nodeid: str, location: tuple[str, int | None, str]) -> None:
        self._parent.send(("finished", (nodeid, location)))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        data = self._config.hook.pytest_report_to_serializable(config=self._config, report=report)
        self._parent.send(("report", data))

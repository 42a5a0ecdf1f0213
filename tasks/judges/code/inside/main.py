"""Sandboxed process: read the task, confine itself, run the tests, the program or both."""

import json
import os
import random
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

from winnow.tasks.judges.code.inside.confinement import Limits, confine
from winnow.tasks.judges.code.inside.link import Link, LinkEnded
from winnow.tasks.judges.code.inside.program_side import raised, run_program, serve
from winnow.tasks.judges.code.inside.program_text import program_text
from winnow.tasks.judges.code.inside.remote import NotCarried, Program, ProgramEnded
from winnow.tasks.judges.code.inside.source_names import NO_PYTHON
from winnow.tasks.judges.code.inside.testing import (
    CANDIDATE,
    MOST_OF_A_SENTENCE,
    TESTS,
    names_in,
    run_tests,
    wanted_of,
)

Setup = Mapping[str, Any]


class _Report:
    """Pipe to the judge; messages carry a mark, so that no printed line is mistaken for one."""

    def __init__(self, descriptor: int, mark: str) -> None:
        self._descriptor = descriptor
        self._mark = mark

    def tell(self, **facts: object) -> None:
        """Send a message with these JSON values, as one line that fits into a pipe."""
        line = json.dumps({"mark": self._mark, **facts}) + "\n"
        os.write(self._descriptor, line.encode("ascii"))

    def close(self) -> None:
        """Close the pipe, so that no code in this process can write to it."""
        os.close(self._descriptor)


def main() -> None:
    """Read the task from standard input, and run it."""
    setup: Setup = json.loads(sys.stdin.buffer.read())
    report = _Report(setup["report"], setup["mark"])
    sys.path.remove(setup["root"])
    try:
        confine(Limits(**setup["limits"]), setup["folder"], setup["parent"])
    except Exception as error:
        report.tell(failed=f"{type(error).__name__}: {error}"[:MOST_OF_A_SENTENCE])
        os._exit(1)
    _leave_nothing_behind()
    report.tell(confined=True)
    _ROLES[setup["role"]](setup, report)
    os._exit(0)  # does not wait for threads of the program


def _leave_nothing_behind() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
    os.environ.clear()
    sys.argv[:] = [""]
    random.seed(0)


def _program(setup: Setup, report: _Report) -> None:
    report.close()
    with suppress(LinkEnded):  # the tests are done
        serve(partial(_chosen, setup), Link(*setup["link"]))


def _tests(setup: Setup, report: _Report) -> None:
    """Run the tests here, and the program in the other process."""
    program = Program(Link(*setup["link"]))
    entry_point = setup["entry_point"]
    found: dict[str, object] = {}
    with suppress(ProgramEnded, NotCarried):  # `program.broken` holds the exception
        try:
            names = names_in(setup["tests"]) | ({entry_point} if entry_point else set())
            wanted = wanted_of(setup["tests"], entry_point)
            found = _tested(setup, lambda: program.names(names, wanted))
        except NO_PYTHON as error:
            found = _no_tests(error)
    if isinstance(program.broken, ProgramEnded):
        found = {"ended": f"{program.broken}"[:MOST_OF_A_SENTENCE]}
    elif program.broken is not None:
        found = {"not_carried": f"{program.broken}"[:MOST_OF_A_SENTENCE]}
    report.tell(**found)


def _both(setup: Setup, report: _Report) -> None:
    """Run the tests and the program in this process.

    The program can affect the tests, which run after it.
    """
    try:
        program = _chosen(setup, wanted_of(setup["tests"], setup["entry_point"]))
    except NO_PYTHON as error:
        report.tell(**_no_tests(error))
        return
    report.tell(**_tested(setup, lambda: run_program(program)))


def _chosen(setup: Setup, wanted: Collection[str]) -> str:
    """The program to run, chosen by the names that the tests need from it."""
    prefix: str = setup["prefix"]
    return prefix + program_text(setup["output"], prefix, wanted)


def _tested(setup: Setup, run: Callable[[], dict[str, object]]) -> dict[str, object]:
    """Result of the tests for the judge; `run` runs the program and returns its names."""
    try:
        names = run()
    except (ProgramEnded, NotCarried):
        raise
    except BaseException as error:
        return {"failure": _said(error)}
    entry_point = setup["entry_point"]
    if entry_point is not None:
        if entry_point not in names:
            return {"failure": f"the program defines no {entry_point!r}"}
        names[CANDIDATE] = names[entry_point]
    names["__name__"] = TESTS
    try:
        count = run_tests(setup["tests"], names, entry_point, stops=setup["stops"])
    except NO_PYTHON as error:
        return _no_tests(error)
    if count.tests == 0 and count.failure is None:
        return {"no_tests": "they test nothing"}
    return {"tests": count.tests, "passed": count.passed, "failure": count.failure}


def _no_tests(error: Exception) -> dict[str, object]:
    return {"no_tests": f"{type(error).__name__}: {error}"[:MOST_OF_A_SENTENCE]}


def _said(error: BaseException) -> str:
    told = raised(error)
    said = f"{told['raised']}: {told['message']}" if told["message"] else f"{told['raised']}"
    return f"the program raised {said}"[:MOST_OF_A_SENTENCE]


_ROLES = {"program": _program, "tests": _tests, "both": _both}

if __name__ == "__main__":
    main()

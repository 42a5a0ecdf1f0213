"""Judge of programs: tests that the program in the output must pass, in a sandbox.

The program is a fenced block, or the whole output. `prefix` is placed before it, for models that continue
their prompt. The tests are the example's target, which no prompt shows, or a field of it. `sandbox` describes
how program and tests run, and `inside` how they are confined.
"""

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from platform import python_version
from typing import Annotated, ClassVar

from pydantic import Field

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.sandboxed_templates import Template, compile_template, render
from winnow.tasks.data.template_grammar import TARGET
from winnow.tasks.errors import JudgeError, TemplateError
from winnow.tasks.judges.code.inside.confinement import Limits, missing
from winnow.tasks.judges.code.sandbox import Outcome, Task, run_task, run_tasks
from winnow.tasks.judges.protocol import JUDGE_FAILED, NO_TARGET, Judge, Sample, Scale, Verdict
from winnow.tasks.plugins.allowed_code import PROGRAMS_OF_MODELS, require_allowed

_LIMITS = Limits(seconds=20, memory=512 << 20)

_ATTEMPTS = """
import os, socket, threading
escaped = []

def attempt(name, act, *args):
    try:
        act(*args)
    except OSError:
        return
    escaped.append(name)

attempt("reads a file", open, OUTSIDE)
attempt("writes a file", open, OUTSIDE, "a")
attempt("cuts a file", os.truncate, OUTSIDE, 0)
attempt("changes a file's rights", os.chmod, OUTSIDE, 0o777)
attempt("lists a folder", os.listdir, os.path.dirname(OUTSIDE))
attempt("lists processes", os.listdir, "/proc")
attempt("opens a socket", socket.socket, socket.AF_INET)
attempt("opens a local socket", socket.socket, socket.AF_UNIX)
attempt("sends a signal", os.kill, PARENT, 0)
attempt("makes a process", os.fork)
attempt("runs a program", os.execv, "/bin/sh", ["sh", "-c", "exit"])
attempt("makes a folder", os.mkdir, "folder")

with open("own", "w") as file:
    file.write("kept")
thread = threading.Thread(target=escaped.extend, args=((),))
thread.start()
thread.join()
"""

_TESTS = """
assert not escaped, ', '.join(escaped)
assert open("own").read() == "kept"
"""


@cache
def escape() -> str | None:
    """Test the sandbox on this machine, once; return its fault, or None if it works.

    A fault is a forbidden action that succeeds, or anything that prevents a program from running.
    """
    with tempfile.NamedTemporaryFile(prefix="winnow-outside-") as outside:
        values = f"OUTSIDE, PARENT = {outside.name!r}, {os.getpid()}\n"
        task = Task(
            output=values + _ATTEMPTS,
            prefix="",
            tests=_TESTS,
            entry_point=None,
            stops=True,
            same_process=True,
            limits=_LIMITS,
        )
        outcome = run_task(task)
    return outcome.broken or outcome.no_tests or outcome.failure


UNREADABLE_TARGET, NO_ANSWER = "unreadable_target", "no_answer"


@dataclass(frozen=True, kw_only=True)
class CodeJudge(Judge[Sample]):
    """The output's program passes the example's tests in a sandbox; needs `allow_code: true`."""

    scale: ClassVar = Scale(unit="share of the tests, 0 or 1 unless `partial`", formula="as it is")

    allow_code: bool = False
    """Whether programs written by models may run, in the sandbox."""
    tests: str = "{{ target }}"
    """The tests of an example in Python, as a template of its fields and `target`."""
    entry_point: str | None = None
    """Name of the function that tests call `candidate`, as a template like `tests`."""
    prefix: str | None = None
    """Text that the output continues, as a template like `tests`; put before the program."""
    partial: bool = False
    """Whether the score is the share of tests that pass; otherwise it is 0 if a test fails."""
    same_process: bool = False
    """Whether tests run in the program's own interpreter, where the program can tamper with them."""
    timeout: Annotated[int, Field(ge=1, le=3600)] = 5
    """Maximum processor seconds of the program; its wall time may be five times as long."""
    memory: Annotated[int, Field(ge=16, le=1 << 20)] = 1024
    """Maximum memory of the program, in MiB."""
    _templates: Mapping[str, Template] = field(init=False, repr=False, compare=False)
    _known: dict[Task, Outcome] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        if not self.allow_code:
            raise JudgeError(
                "runs programs that models write; to allow this, set allow_code: true", "judge.allow_code"
            )
        if (what := missing()) is not None:
            raise JudgeError(_refusal(f"this machine lacks {what}"), "judge.type")
        given = {name: getattr(self, name) for name in ("tests", "entry_point", "prefix")}
        compiled = {
            name: compile_template(source, None, f"judge.{name}", shows_target=True)
            for name, source in given.items()
            if source is not None
        }
        object.__setattr__(self, "_templates", compiled)

    @staticmethod
    def code(**params: object) -> JsonObject:
        """Version of the interpreter that runs the programs."""
        return {"python": python_version()}

    def try_out(self) -> None:
        """Test whether a program can escape from the sandbox; see `Judge`.

        Raises:
            JudgeError: If the sandbox does not work on this machine.
        """
        if (why := escape()) is not None:
            raise JudgeError(_refusal(f"it does not hold here: {why}"), "judge.type")

    def ahead(self, samples: Sequence[Sample], /) -> None:
        """Run the programs of these outputs in parallel; see `Judge`."""
        asked = map(self._asked, samples)
        self._known.clear()
        self._known.update(run_tasks({each for each in asked if isinstance(each, Task)}))

    def judge(self, sample: Sample) -> Verdict:
        """Score 1 if all tests pass, else 0 or the share that passes, with the first failure."""
        asked = self._asked(sample)
        if isinstance(asked, Verdict):
            return asked
        known = self._known.get(asked)
        return self._verdict(run_task(asked) if known is None or known.broken is not None else known)

    @property
    def variables(self) -> frozenset[str]:
        """Fields of an example that the templates use."""
        return frozenset().union(*(template.variables for template in self._templates.values()))

    def rendered(self, fields: JsonView, targets: Sequence[str], key: str | None = None) -> dict[str, str]:
        """Rendered templates of an example, by parameter; errors name its key.

        Raises:
            TemplateError: If a template cannot be rendered.
        """
        shown = {**fields, TARGET: "\n".join(targets)}
        return {name: render(template, shown, key) for name, template in self._templates.items()}

    def _asked(self, sample: Sample) -> Task | Verdict:
        """Task to run for an output, or the verdict if it has no program or no tests."""
        try:
            given = self.rendered(sample.fields, sample.targets)
        except TemplateError as error:
            return Verdict.unscored(UNREADABLE_TARGET, detail=error.message)
        if not given["tests"].strip():
            return Verdict.unscored(NO_TARGET)
        entry_point = given.get("entry_point", "").strip() or None
        if not sample.output.strip():
            return Verdict.unscored(NO_ANSWER)
        require_allowed(PROGRAMS_OF_MODELS)
        return Task(
            output=sample.output,
            prefix=given.get("prefix", ""),
            tests=given["tests"],
            entry_point=entry_point,
            stops=not self.partial,
            same_process=self.same_process,
            limits=Limits(seconds=self.timeout, memory=self.memory << 20),
        )

    def _verdict(self, outcome: Outcome) -> Verdict:
        if outcome.broken is not None:
            return Verdict.unscored(JUDGE_FAILED, detail=outcome.broken)
        if outcome.no_tests is not None:
            return Verdict.unscored(UNREADABLE_TARGET, detail=f"the tests: {outcome.no_tests}")
        if outcome.failure is None:
            return Verdict(score=1.0, answer=f"passed {outcome.passed} of {outcome.tests} tests")
        if not self.partial or not outcome.tests:
            return Verdict(score=0.0, answer=outcome.failure)
        told = f"passed {outcome.passed} of {outcome.tests} tests; {outcome.failure}"
        return Verdict(score=outcome.passed / outcome.tests, answer=told)


def _refusal(why: str) -> str:
    return (
        f"the sandbox for programs is unavailable: {why}; run this judge on a machine "
        "that has Linux 5.13 or later with Landlock and seccomp"
    )

"""Find the tests of a task, run them, and count how many pass.

One test is an assertion or a call at the top level, a function whose name begins with `test` and which needs
no arguments, a method of a `unittest.TestCase`, or HumanEval's `check(candidate)`.
"""

import ast
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from inspect import Parameter, signature
from types import FunctionType
from typing import Any

from winnow.tasks.judges.code.inside.remote import NotCarried, ProgramEnded
from winnow.tasks.judges.code.inside.source_names import names_of
from winnow.tasks.judges.code.inside.values import JSON

TESTS = "tests"
CHECK = "check"
CANDIDATE = "candidate"
_RUNNERS = frozenset({"unittest.main()", "pytest.main()"})

MOST_OF_A_SENTENCE = 400

Names = dict[str, Any]
"""Global names of the tests, with their values."""


@dataclass(kw_only=True)
class Count:
    """Results of the tests so far."""

    stops: bool
    """Whether the first failure ends the tests."""
    tests: int = 0
    passed: int = 0
    failure: str | None = None
    """The first failure as a sentence; None if no test failed."""
    lines: Sequence[str] = field(default_factory=list)
    """Lines of the tests' source."""

    def run(self, name: str, test: Callable[[], object]) -> None:
        """Run one test; raises `_Over` if its failure ends the tests."""
        self.tests += 1
        if self.attempt(name, test):
            self.passed += 1

    def attempt(self, name: str, step: Callable[[], object]) -> bool:
        """Run a step and return whether it succeeded; raises `_Over` if its failure ends the tests."""
        try:
            step()
        except (ProgramEnded, NotCarried):
            raise
        except BaseException as error:
            self.failure = self.failure or self._sentence(name, error)
            if self.stops:
                raise _Over from None
            return False
        return True

    def _sentence(self, name: str, error: BaseException) -> str:
        line = _line_of(error)
        text = self.lines[line - 1].strip() if 0 < line <= len(self.lines) else name
        said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        return f"{said}, at {text!r}"[:MOST_OF_A_SENTENCE]


class _Over(Exception):
    """A test failed that ends the tests."""


def names_in(source: str) -> set[str]:
    """Names that the tests use.

    Raises:
        SyntaxError, ValueError, RecursionError: If the tests are not Python.
    """
    return {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}


def wanted_of(source: str, entry_point: str | None) -> set[str]:
    """Global names that the tests need from a program, with `entry_point` instead of `candidate`.

    Raises:
        SyntaxError, ValueError, RecursionError: If the tests are not Python.
    """
    wanted = set(names_of(source).needed)
    return wanted if entry_point is None else wanted - {CANDIDATE} | {entry_point}


def run_tests(source: str, names: Names, entry_point: str | None, *, stops: bool) -> Count:
    """Run the tests.

    Args:
        source: Source of the tests, in Python.
        names: Names that the tests can use and extend, in particular the program's.
        entry_point: Name of the function passed to HumanEval's `check`; None without an entry point.
        stops: Whether the first failure ends the tests.

    Raises:
        SyntaxError, ValueError: If the tests are not Python.
        ProgramEnded: If the program's process ends.
        NotCarried: If the tests need the program in the same interpreter.
    """
    tree = ast.parse(source)
    count = Count(stops=stops, lines=source.splitlines())
    try:
        for statement in tree.body:
            _run_statement(statement, names, count)
        for name, test in _collected(tree, names, entry_point):
            count.run(name, test)
    except _Over:
        pass
    return count


def _run_statement(statement: ast.stmt, names: Names, count: Count) -> None:
    text = ast.unparse(statement)
    if text in _RUNNERS:
        return
    code = compile(ast.Module([statement], []), f"{TESTS}.py", "exec")
    is_test = isinstance(statement, ast.Assert) or (
        isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    )

    def run() -> None:
        exec(code, names)

    if is_test:
        count.run(text, run)
    elif not count.attempt(text, run):
        count.stops, count.passed = True, 0
        raise _Over


def _collected(
    tree: ast.Module, names: Names, entry_point: str | None
) -> Iterator[tuple[str, Callable[[], object]]]:
    """Tests that the statements only define: functions, methods and HumanEval's `check`."""
    defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    functions = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {each.id for each in functions if isinstance(each, ast.Name)}
    for name in dict.fromkeys(defined):
        found: JSON = names.get(name)
        if name == CHECK and entry_point is not None and name not in called:
            yield name, partial(found, names[entry_point])
        elif isinstance(found, FunctionType) and name.startswith("test") and _needs_nothing(found):
            yield name, found
        elif isinstance(found, type):
            yield from _methods(found)


def _methods(found: type) -> Iterator[tuple[str, Callable[[], object]]]:
    unittest = sys.modules.get("unittest")  # slow to import, and already imported if a class uses it
    if unittest is not None and issubclass(found, unittest.TestCase):
        for test in unittest.defaultTestLoader.loadTestsFromTestCase(found):
            yield str(test), test.debug


def _needs_nothing(function: FunctionType) -> bool:
    return all(
        each.default is not Parameter.empty or each.kind in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
        for each in signature(function).parameters.values()
    )


def _line_of(error: BaseException) -> int:
    """Number of the tests' line that ran last; 0 if no line of theirs ran."""
    line, frame = 0, error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == f"{TESTS}.py":
            line = frame.tb_lineno
        frame = frame.tb_next
    return line

"""What the runs of a cell depend on: its arguments, and the code of its world and of its selector alone.

So another selector, or another cell, leaves the runs of all others as they are; and so do comments,
docstrings, messages of errors, and the names and places of modules, which nothing is decided by. The
registry is left out, as it only finds the selector, and the package's front door, which lists names; so are
Python, numpy and scipy.
"""

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.errors import cells
from tests.benchmarks.errors.cells import Cell
from winnow.algorithms.registry import SELECTORS
from winnow.tasks.plugins.source_code import code_digests

DIGITS = 12
FRONT_DOOR = "winnow"
"""The package by itself, whose names are imported when they are asked for."""
OWN = ("winnow", "tests")
"""The packages whose modules may be moved and renamed."""
ADDRESS = re.compile(rf"({'|'.join(OWN)})(\.\w+)+:\w+")
"""Of an object that is imported when it is needed: its module and its name."""


def code_of(cell: Cell) -> str:
    """A digest, hexadecimal, that changes when runs of the cell might."""
    world = cell.build.func
    parts = [
        repr((world.__qualname__, cell.build.args, sorted(cell.build.keywords.items()))),
        _code_of_selector(cell.selector),
        _code(world.__module__, world.__qualname__),
        _code(cells.__name__, cells.play.__name__),
    ]
    return sha256("\n".join(parts).encode()).hexdigest()[:DIGITS]


def digest_of_selector(name: str) -> str:
    """A digest, hexadecimal, that changes when what a selector does might."""
    return sha256(_code_of_selector(name).encode()).hexdigest()[:DIGITS]


def _code_of_selector(name: str) -> str:
    path = next(names[name] for names in SELECTORS.values() if name in names)
    return _code(*path.split(":"))


@cache
def _code(module: str, name: str) -> str:
    """Of an object, and of its module and all that this imports from its own top-level package.

    A module is named by the digest of its text. Those without code, of which a move may add some, count once.
    """
    found = _modules(module, name)
    lines = {_line(each, found) for each in found}
    return "\n".join([f"{name} of {_text(module).digest}", *sorted(lines)])


def _modules(module: str, name: str) -> set[str]:
    """The module and all that it imports, also by an address, from its own top-level package."""
    found: set[str] = set()
    waiting = [f"{module}:{name}"]
    while waiting:
        entry = EntryPoint(name=name, value=waiting.pop(), group="")
        more = code_digests(entry).keys() - found - {FRONT_DOOR}
        found |= more
        waiting += [
            f"{each.module}:{each.name}" for new in more for each in _text(new).imports if each.is_address
        ]
    return found


def _line(module: str, found: set[str]) -> str:
    """A module's text, and where each name that it imports is from."""
    names = []
    for each in _text(module).imports:
        as_module = f"{each.module}.{each.name}"
        is_module = as_module in found
        where = as_module if is_module else each.module
        digest = _text(where).digest if where in found else ""
        names.append(f"{each.bound}={'' if is_module else each.name}@{digest}")
    return " ".join([_text(module).digest, *sorted(names)])


class _Import(NamedTuple):
    """One name of an import from the project's own packages."""

    module: str
    name: str
    bound: str
    """The name that it has in the module that imports it."""
    is_address: bool


class _Text(NamedTuple):
    """What a module does, without what may be reworded and without the names of modules."""

    digest: str
    imports: tuple[_Import, ...]


@cache
def _text(module: str) -> _Text:
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{module} was imported and is gone: start again", name=module)
    reader = _Reader()
    tree = reader.visit(ast.parse(Path(spec.origin).read_bytes()))
    return _Text(sha256(ast.dump(tree).encode()).hexdigest(), tuple(reader.imports))


@dataclass
class _Reader(ast.NodeTransformer):
    """Takes docstrings, messages of errors and imports from the project's own packages out of a tree."""

    imports: list[_Import] = field(default_factory=list)
    errors: set[str] = field(default_factory=lambda: {Exception.__name__})
    """Names of exceptions that the module defines."""
    within_errors: int = 0

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """A string by itself is the docstring of what is around it, or of the field before it."""
        is_text = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        return None if is_text else self.generic_visit(node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST | None:
        module = node.module or ""
        if node.level or module.partition(".")[0] not in OWN:
            return node
        self.imports += [_Import(module, each.name, each.asname or each.name, False) for each in node.names]
        return None

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        if not any(isinstance(base, ast.Name) and base.id in self.errors for base in node.bases):
            return self.generic_visit(node)
        self.errors.add(node.name)
        return self._without_words(node)

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return self._without_words(node)

    def _without_words(self, node: ast.AST) -> ast.AST:
        self.within_errors += 1
        self.generic_visit(node)
        self.within_errors -= 1
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        if self.within_errors:
            node.values = [each for each in node.values if isinstance(each, ast.FormattedValue)]
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if not isinstance(node.value, str):
            return node
        if self.within_errors:
            return ast.Constant("")
        if ADDRESS.fullmatch(node.value):
            module, _, name = node.value.partition(":")
            self.imports.append(_Import(module, name, "", True))
            return ast.Constant(f":{name}")
        return node

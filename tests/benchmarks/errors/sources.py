"""What the runs of a cell depend on: its arguments, and the code of its world and of its selector alone.

So another selector, or another cell, leaves the runs of all others as they are; and so do comments and
docstrings. The registry is left out, as it only finds the selector, and the package's front door, which
lists names; so are Python, numpy and scipy.
"""

import ast
from functools import cache
from hashlib import sha256
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

from tests.benchmarks.errors import cells
from tests.benchmarks.errors.cells import Cell
from winnow.algorithms.registry import SELECTORS
from winnow.tasks.plugins.source_code import code_digests

DIGITS = 12
FRONT_DOOR = "winnow"
"""The package by itself, whose names are imported when they are asked for."""


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
    """Of a module and all that it imports from its own top-level package."""
    found = code_digests(EntryPoint(name=name, value=f"{module}:{name}", group=""))
    return "\n".join(f"{each} {_digest(each)}" for each in sorted(found) if each != FRONT_DOOR)


@cache
def _digest(module: str) -> str:
    """Of what a module does: its file without comments and docstrings."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{module} was imported and is gone: start again", name=module)
    tree = ast.parse(Path(spec.origin).read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [each for each in node.body if not _is_text(each)]
    return sha256(ast.dump(tree).encode()).hexdigest()


def _is_text(node: ast.stmt) -> bool:
    """Whether it is a string by itself: a docstring of what is around it, or of the field before it."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )

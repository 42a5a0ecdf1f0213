"""Functions in the user's Python files: find them without running the file, import them."""

import ast
import sys
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from winnow.algorithms.state.plugin_registry import in_words
from winnow.storage.plain_files import require_plain
from winnow.storage.text import in_home
from winnow.tasks.errors import unknown_name
from winnow.tasks.plugins.source_code import FromSource, import_sources_of


def locate_function(path: str) -> tuple[Path, str]:
    """File and name of the function that `FILE.py:FUNCTION` names.

    Raises:
        ValueError: If the file does not exist, or the path names no function.
    """
    file, colon, function = path.rpartition(":")
    if not colon or not function.isidentifier():
        raise ValueError(f"must be FILE.py:FUNCTION, got {path!r}")
    found = Path(in_home(file))
    try:
        require_plain(found)
        is_there = True
    except (FileNotFoundError, NotADirectoryError, ValueError):
        is_there = False
    except OSError as error:
        raise ValueError(f"the Python file {file!r} cannot be read: {error.strerror}") from error
    if not is_there or found.suffix != ".py":
        raise ValueError(f"there is no Python file {file!r}; give its path relative to {Path.cwd()}")
    return found.resolve(), function


def require_bound(file: Path, function: str) -> None:
    """Refuse a file that is not Python, or that does not define this name; the file is not run.

    Raises:
        ValueError: If the file is refused; the message names it.
    """
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        raise ValueError(f"the file {str(file)!r} is not valid Python: {in_words(error)}") from error
    names = {name for node in tree.body for name in _bound(node)}
    if function not in names and "*" not in names:
        raise ValueError(unknown_name(f"function of {file.name}", function, sorted(names)))


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Names that a statement of a module may bind, including those in nested blocks."""
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]


def import_function(file: str, function: str, digests: Mapping[str, str]) -> Callable[..., object]:
    """Import a file into this process and return its function.

    Args:
        file: Full path of the file.
        function: Name of the function.
        digests: SHA-256 of the files that were checked, by module name.

    Raises:
        ImportError: If the code no longer matches the digests.
        AttributeError, TypeError: If the file has no such function.
    """
    import_sources_of(Path(file).parent, digests)
    name = Path(file).stem
    spec = spec_from_file_location(name, file, loader=FromSource(name, file))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    _require_unchanged(digests)
    call: Callable[..., object] = getattr(module, function)
    if not callable(call):
        raise TypeError(f"{function} is not a function")
    return call


def _require_unchanged(digests: Mapping[str, str]) -> None:
    for name, digest in digests.items():
        file = getattr(sys.modules.get(name), "__file__", None)
        if file is not None and sha256(Path(file).read_bytes()).hexdigest() != digest:
            raise ImportError(f"{file} was changed after the campaign started or resumed")

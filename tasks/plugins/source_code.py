"""Digests of a plug-in's code, one for each of its own source files.

A plug-in may be edited in place, so neither its name nor its version identifies its behaviour. So the modules
that it can import are hashed with it, if they are its own: those of its top-level package and distribution,
and all modules outside the folders of installed packages. Other packages, Python's own modules and Winnow's
are excluded; `campaigns.versions` has the versions of the most important ones. Modules imported under a
computed name, and files read as data, are not detected. Imports for type checkers never run, and are
excluded.
"""

import ast
import os
import sys
import sysconfig
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from importlib.abc import MetaPathFinder, PathEntryFinder
from importlib.machinery import (
    BYTECODE_SUFFIXES,
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
    SourcelessFileLoader,
)
from importlib.metadata import EntryPoint, packages_distributions
from importlib.util import spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from types import FrameType, ModuleType
from typing import ClassVar, NoReturn, TypeGuard
from weakref import WeakKeyDictionary

from winnow.algorithms.state.plugin_registry import Registered

IMPORTING = ("import_module", "__import__")
"""Functions that import a module by its name."""

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""Exceptions of the parser for a file that is not Python."""

INSTALLED = frozenset({"site-packages", "dist-packages"})

PACKAGE = Path(__file__).parents[2]  # not resolved, because in a checkout its folders are links
OURS = tuple((PACKAGE / name).resolve() for name in (".", "algorithms", "flows", "infra", "storage", "tasks"))

PYTHONS = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))

_digests: "WeakKeyDictionary[ModuleType, dict[str, str]]" = WeakKeyDictionary()


def code_digests(entry: EntryPoint) -> dict[str, str]:
    """SHA-256 of the file of each module of a plug-in, hexadecimal, by the module's name.

    Files are read once per import of the plug-in: a process that runs for weeks continues with the code that
    it imported, even if files change. For a plug-in registered by a script or a notebook, only its own source
    is hashed.
    """
    if isinstance(entry, Registered) and _is_of_a_script(entry):
        return {entry.value: sha256(vars(entry)["source"].encode()).hexdigest()}
    module = import_module(entry.module)
    if module not in _digests:
        own = _own_names(entry)
        _digests[module] = _read_digests(entry.module, lambda name: _if_own(_found(name), own))
    return dict(_digests[module])


def _is_of_a_script(entry: Registered) -> bool:
    """Whether a plug-in is defined in a script, a notebook or a file that was run."""
    module = entry.value.partition(":")[0]
    return module == "__main__" or module not in sys.modules


def file_digests(path: Path, *, with_calls: bool = False) -> dict[str, str]:
    """SHA-256 of a Python file and of each of its own imported modules, by module name.

    Imports nothing. The file's own modules are those in its folder, and those outside the folders of
    installed packages.

    Args:
        path: The file.
        with_calls: Whether to include modules named in calls of `import_module` and `__import__`. They are
            not included for the versions of judges, which are stored.

    Raises:
        OSError: If the file cannot be read.
    """
    given = path.resolve(strict=True)

    def find(name: str) -> ModuleSpec | None:
        if name == given.stem:  # whatever its suffix: a program may have none
            return spec_from_file_location(name, given, loader=SourceFileLoader(name, str(given)))
        return _in_folder_or_own(name, given.parent)

    return _read_digests(given.stem, find, with_calls=with_calls)


def libraries_of(path: Path) -> tuple[str, ...]:
    """Installed distributions that a Python file and its own modules import; imports nothing.

    Raises:
        OSError: If the file cannot be read.
    """
    own = file_digests(path)
    known = packages_distributions()
    found: set[str] = set()
    for name in own:
        spec = _in_folder_or_own(name, path.resolve().parent) if name != path.stem else None
        content = path.read_bytes() if spec is None else _content(spec) or b""
        named = _imports(spec or ModuleSpec(name, None), content)
        found |= {each for top in named for each in known.get(top.partition(".")[0], ())}
    return tuple(sorted(found))


def module_digests(name: str, folder: Path) -> dict[str, str]:
    """SHA-256 of the code that `python -m` runs from a folder.

    Args:
        name: Name of a module, or of a package, whose `__main__` runs.
        folder: The folder that Python searches first.

    Returns:
        As by `file_digests` with `with_calls`, for the module, its packages and their imports; empty if the
        folder has no such module.

    Raises:
        OSError: If a file cannot be read.
    """
    spec = _in_folder(name, folder)
    if spec is None:
        return {}
    runs = name if spec.submodule_search_locations is None else f"{name}.__main__"
    return _read_digests(runs, lambda each: _in_folder_or_own(each, folder), with_calls=True)


def modules_within(folder: Path) -> frozenset[str]:
    """Names of modules and packages in a folder, which programs there import before libraries."""
    return frozenset(each.name for each in iter_modules([str(folder)]))


def _in_folder_or_own(name: str, folder: Path) -> ModuleSpec | None:
    spec = _in_folder(name, folder)
    return _if_own(_found(name), frozenset()) if spec is None else spec


class FromSource(SourceFileLoader):
    """Loader of a module from its source; bytecode next to it could belong to another source."""

    digests: ClassVar[Mapping[str, str]] = {}
    """SHA-256 of files that this process may run, by module name; other files are allowed as well."""

    def path_stats(self, path: str) -> NoReturn:
        """Raise `OSError`, so that no bytecode is read or written."""
        raise OSError(f"{path} is always compiled")

    def get_data(self, path: str) -> bytes:
        """Content of the file, if it has the approved digest.

        Raises:
            ImportError: If the file was changed after it was approved.
        """
        content = super().get_data(path)
        if self.digests.get(self.name, digest := sha256(content).hexdigest()) != digest:
            raise ImportError(f"{path} was changed after the campaign started or resumed")
        return content


def import_sources_of(folder: Path, digests: Mapping[str, str]) -> None:
    """Make this process import a folder's modules by `FromSource`, except installed packages.

    Code in the folder can import all modules there. Libraries can import only the approved ones: otherwise a
    new file could take the name of a library's module.

    Args:
        folder: Full path of the folder, without links.
        digests: SHA-256 of the approved files, by module name.
    """
    FromSource.digests = digests
    finder = FileFinder.path_hook(
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (FromSource, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )

    def hook(path: str) -> PathEntryFinder:
        places = Path(os.path.abspath(path)), Path(path).resolve()  # for a link, both
        if not any(_is_within(place, folder) for place in places):
            raise ImportError(f"{path} is outside the folder")
        return finder(path)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()
    known = frozenset(name.partition(".")[0] for name in digests)
    sys.meta_path.insert(sys.meta_path.index(PathFinder), _FinderWithin(folder, known))
    sys.meta_path.append(_FinderWithin(folder, None))


def _is_within(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder) and not INSTALLED & set(path.parts)


@dataclass(frozen=True, slots=True)
class _FinderWithin(MetaPathFinder):
    """Import finder for a folder's modules."""

    folder: Path
    names: frozenset[str] | None
    """Names of the modules to find; None for all modules, if code of the folder imports them."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """See `MetaPathFinder`."""
        is_wanted = self._is_asked_by_its_own() if self.names is None else name in self.names
        return PathFinder.find_spec(name, [str(self.folder)]) if path is None and is_wanted else None

    def _is_asked_by_its_own(self) -> bool:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "importlib":
            frame = frame.f_back
        file = None if frame is None else frame.f_globals.get("__file__")
        return file is not None and _is_within(Path(file), self.folder)


def _in_folder(name: str, folder: Path) -> ModuleSpec | None:
    """`ModuleSpec` of a module in a folder, directly or in packages; None if it is not there."""
    places: Sequence[str] | None = [str(folder)]
    spec = None
    parts = name.split(".")
    for number in range(1, len(parts) + 1):
        spec = None if places is None else PathFinder.find_spec(".".join(parts[:number]), places)
        if spec is None:
            return None
        places = spec.submodule_search_locations
    return spec


def _read_digests(
    name: str, find: Callable[[str], ModuleSpec | None], *, with_calls: bool = False
) -> dict[str, str]:
    """Digests of a module and of its imports.

    Args:
        name: Name of the module.
        find: Finds a module by name; returns None for modules to exclude.
        with_calls: See `file_digests`.
    """
    found: dict[str, str] = {}
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        # Importing a.b.c runs a and a.b as well.
        waiting += [name.rpartition(".")[0]] if "." in name else []
        if (spec := find(name)) is not None and (content := _content(spec)) is not None:
            found[name] = sha256(content).hexdigest()
            waiting += _imports(spec, content)
            waiting += _imported_by_calls(spec, content) if with_calls else ()
    return dict(sorted(found.items()))


def _own_names(entry: EntryPoint) -> frozenset[str]:
    """Top-level names of a plug-in's distribution, including its own module's."""
    files = (entry.dist.files if entry.dist else None) or []
    names = {file.parts[0].partition(".")[0] for file in files if file.suffix in (".py", ".so", ".pyd")}
    return frozenset(names | {entry.module.partition(".")[0]})


def _found(name: str) -> ModuleSpec | None:
    """`ModuleSpec` of a module, found without importing the module or its packages.

    None if there is no such module.
    """
    loaded = sys.modules.get(name)
    if loaded is not None and loaded.__spec__ is not None:
        return loaded.__spec__
    path: Sequence[str] | None = None
    if parent := name.rpartition(".")[0]:
        around = _found(parent)
        path = None if around is None else around.submodule_search_locations
        if path is None:
            return None
    specs = (finder.find_spec(name, path) for finder in sys.meta_path if hasattr(finder, "find_spec"))
    return next((spec for spec in specs if spec is not None), None)


def _if_own(spec: ModuleSpec | None, own: frozenset[str]) -> ModuleSpec | None:
    return spec if spec is not None and _is_own(spec, own) else None


def _is_own(spec: ModuleSpec, own: frozenset[str]) -> bool:
    top = spec.name.partition(".")[0]
    if top in own:
        return True
    if not spec.has_location or spec.origin is None or top in sys.stdlib_module_names:
        return False
    path = Path(spec.origin).resolve()
    elsewhere = any(path.is_relative_to(folder) for folder in (*OURS, *PYTHONS))
    return not (elsewhere or INSTALLED & set(path.parts))


def _content(spec: ModuleSpec) -> bytes | None:
    """Bytes of a module's file, source or compiled; None for a folder without code."""
    read = getattr(spec.loader, "get_data", None)
    if not spec.has_location or spec.origin is None or read is None:
        return None
    content: bytes = read(spec.origin)
    return content


def _imports(spec: ModuleSpec, content: bytes) -> Iterator[str]:
    """Names of all modules that a source file may import, including imports in functions."""
    try:
        tree = ast.parse(content)
    except UNREADABLE:  # an extension, or a file that cannot be imported
        return
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, spec)
            yield base
            # May be a module, or a name in a module.
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _imported_by_calls(spec: ModuleSpec, content: bytes) -> Iterator[str]:
    """Modules named by literals: in calls of `IMPORTING`, and in a package's `__all__`."""
    try:
        tree = ast.parse(content)
    except UNREADABLE:
        return
    is_package = spec.submodule_search_locations is not None
    package = spec.name if is_package else spec.name.rpartition(".")[0]
    names = {*IMPORTING, *(each.asname for each in ast.walk(tree) if _is_other_name(each))}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            given = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "name")]
            if function in names:
                yield from (name for each in _texts(given) for name in _from(each, package))
        elif isinstance(node, ast.Assign | ast.AugAssign) and is_package:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(getattr(each, "id", None) == "__all__" for each in targets):
                yield from (f"{package}.{each}" for each in _texts(ast.walk(node.value)))


def _is_other_name(node: ast.AST) -> TypeGuard[ast.alias]:
    return isinstance(node, ast.alias) and node.name in IMPORTING and node.asname is not None


def _texts(nodes: Iterable[ast.AST]) -> Iterator[str]:
    return (each.value for each in nodes if isinstance(each, ast.Constant) and isinstance(each.value, str))


def _from(name: str, package: str) -> Iterator[str]:
    """Modules that an argument of `import_module` may mean; it may be relative to a package."""
    plain = name.lstrip(".")
    yield plain
    if plain != name:
        parents = package.split(".")
        yield ".".join([*parents[: len(parents) - (len(name) - len(plain)) + 1], plain])


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a syntax tree except those below `if TYPE_CHECKING:`."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and _names_type_checking(node.test):
            waiting += node.orelse
        else:
            waiting += ast.iter_child_nodes(node)


def _names_type_checking(test: ast.expr) -> bool:
    return "TYPE_CHECKING" in (getattr(test, "id", None), getattr(test, "attr", None))


def _absolute(node: ast.ImportFrom, spec: ModuleSpec) -> str:
    if not node.level:
        return node.module or ""
    is_package = spec.submodule_search_locations is not None
    package = spec.name if is_package else spec.name.rpartition(".")[0]
    for _ in range(node.level - 1):
        package = package.rpartition(".")[0]
    return f"{package}.{node.module}" if node.module else package

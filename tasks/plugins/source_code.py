"""The code of a plug-in as digests, one for each source file that it brings along.

A plug-in may be edited where it stands, so that neither its name nor its version says what it does. So the
modules that it can import are hashed with it, as far as they are its own: those of its top-level package and
of its distribution, and whatever else does not lie where installed packages do. Packages of others, Python's
own and Winnow's are left out; `campaigns.versions` names the most important of them. A module that is
imported under a computed name, and a file that is read as data, are not seen. What is imported for type
checkers alone never runs, and is left out.
"""

import ast
import os
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
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
from importlib.metadata import EntryPoint
from importlib.util import spec_from_file_location
from pathlib import Path
from types import FrameType, ModuleType
from typing import ClassVar, NoReturn
from weakref import WeakKeyDictionary

from winnow.algorithms.state.plugin_registry import Registered

IMPORTING = ("import_module", "__import__")
"""Functions that import a module by its name."""

INSTALLED = frozenset({"site-packages", "dist-packages"})

PACKAGE = Path(__file__).parents[2]  # not resolved: in a checkout its folders are links to others
OURS = tuple((PACKAGE / name).resolve() for name in (".", "algorithms", "flows", "infra", "storage", "tasks"))

PYTHONS = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib"))

_digests: "WeakKeyDictionary[ModuleType, dict[str, str]]" = WeakKeyDictionary()


def code_digests(entry: EntryPoint) -> dict[str, str]:
    """SHA-256 of the file of each module of a plug-in, hexadecimal, by the module's name.

    Files are read once for each time that the plug-in is imported: a process that runs for weeks continues
    with the code that it imported, whatever becomes of the files. Of what a script or a notebook registers,
    nothing but its own text is hashed.

    Args:
        entry: The entry point by which the plug-in is installed; its module is imported.
    """
    if isinstance(entry, Registered) and _is_of_a_script(entry):
        return {entry.value: sha256(vars(entry)["source"].encode()).hexdigest()}
    module = import_module(entry.module)
    if module not in _digests:
        own = _own_names(entry)
        _digests[module] = _read_digests(entry.module, lambda name: _if_own(_found(name), own))
    return dict(_digests[module])


def _is_of_a_script(entry: Registered) -> bool:
    """Whether it stands in a script, a notebook or a file that was run, mostly about other things."""
    module = entry.value.partition(":")[0]
    return module == "__main__" or module not in sys.modules


def file_digests(path: Path, *, with_calls: bool = False) -> dict[str, str]:
    """SHA-256 of a Python file and of each module of its own that it imports, by the module's name.

    Nothing is imported. Its own are the modules in its folder, and those that do not lie where installed
    packages do.

    Args:
        path: The file.
        with_calls: Whether modules count that `import_module` and `__import__` are called with by name. They
            do not for the versions of judges, which are stored.

    Raises:
        OSError: If the file cannot be read.
    """
    given = path.resolve(strict=True)

    def find(name: str) -> ModuleSpec | None:
        if name == given.stem:
            return spec_from_file_location(name, given)
        spec = _in_folder(name, given.parent)
        return _if_own(_found(name), frozenset()) if spec is None else spec

    return _read_digests(given.stem, find, with_calls=with_calls)


class FromSource(SourceFileLoader):
    """Loads a module from its source: what lies compiled beside it may be of another one."""

    digests: ClassVar[Mapping[str, str]] = {}
    """SHA-256 of the files that this process may run, by the module's name; others it may run as well."""

    def path_stats(self, path: str) -> NoReturn:
        """Tell nothing of the file, without which no compiled one is looked for or written."""
        raise OSError(f"{path} is compiled anew")

    def get_data(self, path: str) -> bytes:
        """The file's content, if it is the one that was looked at.

        Raises:
            ImportError: If it is another one.
        """
        content = super().get_data(path)
        if self.digests.get(self.name, digest := sha256(content).hexdigest()) != digest:
            raise ImportError(f"{path} was changed after the campaign started or resumed")
        return content


def import_sources_of(folder: Path, digests: Mapping[str, str]) -> None:
    """Have this process import what lies in a folder by `FromSource`, installed packages excepted.

    Code in the folder can import all modules there. For libraries there are none of these but those that were
    looked at: a new file could else take the name of a module of theirs.

    Args:
        folder: The whole path of the folder, with no link in it.
        digests: SHA-256 of the files that were looked at, by the module's name.
    """
    FromSource.digests = digests
    finder = FileFinder.path_hook(
        (ExtensionFileLoader, EXTENSION_SUFFIXES),
        (FromSource, SOURCE_SUFFIXES),
        (SourcelessFileLoader, BYTECODE_SUFFIXES),
    )

    def hook(path: str) -> PathEntryFinder:
        places = Path(os.path.abspath(path)), Path(path).resolve()  # of a link, both
        if not any(_is_within(place, folder) for place in places):
            raise ImportError(f"{path} is none of the folder's")
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
    """Finds the modules of a folder."""

    folder: Path
    names: frozenset[str] | None
    """The names that are looked for; None for those that code of the folder imports."""

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
    """The `ModuleSpec` of a module within a folder, by itself or in packages; None if there is none."""
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
    """Digests of a module and of what it imports.

    Args:
        name: Name of the module.
        find: Finds a module by its name; returns None for one whose digest is not wanted.
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
        # Whoever imports a.b.c runs a and a.b as well.
        waiting += [name.rpartition(".")[0]] if "." in name else []
        if (spec := find(name)) is not None and (content := _content(spec)) is not None:
            found[name] = sha256(content).hexdigest()
            waiting += _imports(spec, content)
            waiting += _imported_by_calls(content) if with_calls else ()
    return dict(sorted(found.items()))


def _own_names(entry: EntryPoint) -> frozenset[str]:
    """The top-level names of a plug-in's distribution, its own module's among them."""
    files = (entry.dist.files if entry.dist else None) or []
    names = {file.parts[0].partition(".")[0] for file in files if file.suffix in (".py", ".so", ".pyd")}
    return frozenset(names | {entry.module.partition(".")[0]})


def _found(name: str) -> ModuleSpec | None:
    """The `ModuleSpec` of a module, found without importing it or any package around it."""
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
    """The bytes of a module's file, source or compiled; None if it has none, as a folder without code."""
    read = getattr(spec.loader, "get_data", None)
    if not spec.has_location or spec.origin is None or read is None:
        return None
    content: bytes = read(spec.origin)
    return content


def _imports(spec: ModuleSpec, content: bytes) -> Iterator[str]:
    """The names of all modules that a source file may import, those inside functions included."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):  # an extension, or a file that nobody can import
        return
    for node in _run(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(node, spec)
            yield base
            # A module, or a name within one: nobody can tell from here.
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _imported_by_calls(content: bytes) -> Iterator[str]:
    """The modules that calls of `import_module` and `__import__` name by a text."""
    try:
        tree = ast.parse(content)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            function = getattr(node.func, "id", None) or getattr(node.func, "attr", None)
            texts = [each.value for each in node.args if isinstance(each, ast.Constant)]
            if function in IMPORTING and texts and isinstance(texts[0], str):
                yield texts[0].lstrip(".")


def _run(tree: ast.AST) -> Iterator[ast.AST]:
    """All nodes of a syntax tree but those below `if TYPE_CHECKING:`."""
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

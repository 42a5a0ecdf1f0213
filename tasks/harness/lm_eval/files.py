"""Find and read a task's YAML file without importing anything that it names."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import yaml

from winnow.algorithms.state.plugin_registry import in_words
from winnow.storage.json_types import JsonObject
from winnow.storage.plain_files import read_text
from winnow.tasks.errors import SpecError, did_you_mean

KEY = "task.lm_eval"

SUFFIXES = (".yaml", ".yml")

_NAMED = re.compile(r"^task:[ \t]*[\"']?([^\"'\s#]+)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)

_GROUP = re.compile(r"^group:[ \t]*[\"']?([^\"'\s#]+)[\"']?[ \t]*(?:#.*)?$", re.MULTILINE)


class Function(NamedTuple):
    """A Python function that a task's file names with `!function`."""

    file: str
    """Path of the function's file, or name of its module if no such file is next to the task's."""
    name: str

    def __str__(self) -> str:
        return f"{self.file}:{self.name}"


@contextmanager
def as_lm_eval_has_it(task: str, path: str) -> Iterator[None]:
    """Turn errors about invalid files or documents of a task into one sentence."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise SpecError(f"the task {task} is not a valid task of lm-eval: {in_words(error)}", path) from error


class TaskFile(NamedTuple):
    """Content of a task's file, merged with the included files."""

    path: Path
    config: JsonObject
    """Merged keys; each `!function` is a `Function`."""
    read: tuple[Path, ...]
    """The task's file and the included files."""


def read_task(task: str, include_path: str | None) -> TaskFile:
    """Find and read the file of a task.

    Args:
        task: A name; or the path of a YAML file, or of a folder with one task.
        include_path: A folder that is searched for names before the installed lm-eval.

    Raises:
        SpecError: If the task does not exist, or lm-eval would not accept its file.
    """
    path = _path(task) if _is_path(task) else _named(task, include_path)
    read: list[Path] = []
    config = _read(path.resolve(), (), read)
    if not isinstance(config.get("task"), str):
        inner = config.get("task")
        names = [each for each in inner if isinstance(each, str)] if isinstance(inner, list) else []
        raise SpecError(f"{path} is not a single task; name one{_of(names)}", KEY)
    return TaskFile(path, config, tuple(read))


def _is_path(task: str) -> bool:
    return "/" in task or task.endswith(SUFFIXES)


def _path(task: str) -> Path:
    path = Path(task)
    if path.is_file():
        return path
    if not path.is_dir():
        raise SpecError(f"there is no file or folder {task} (working directory {Path.cwd()})", KEY)
    found = {name: file for name, file in _tasks(path)}
    if len(found) != 1:
        raise SpecError(f"the folder {task} has {len(found)} tasks; name the file of one{_of(found)}", KEY)
    return next(iter(found.values()))


def _named(task: str, include_path: str | None) -> Path:
    if include_path is not None and not Path(include_path).is_dir():
        raise SpecError(f"there is no folder {include_path}; correct it", "task.include_path")
    installed = _installed()
    folders = [*([] if include_path is None else [Path(include_path)]), *([installed] if installed else [])]
    for folder in folders:
        if (path := _found(str(folder.resolve()), task)) is not None:
            return path
        _refuse_group(folder, task)
    if installed is None:
        raise SpecError(
            f"lm-eval is not installed here to look for {task}; run: pip install lm-eval, or name the task's "
            "YAML file or folder",
            KEY,
        )
    known = {name for folder in folders for name, _ in _tasks(folder)}
    question = did_you_mean(task, known)
    raise SpecError(f"lm-eval has no task {task!r}; {question or 'name a YAML file'}", KEY)


def is_of_lm_eval(path: Path) -> bool:
    """Whether a file belongs to the installed lm-eval."""
    return (installed := _installed()) is not None and path.is_relative_to(installed.resolve())


def _installed() -> Path | None:
    """Folder of the installed lm-eval's tasks; None if missing. The package is not imported."""
    found = find_spec("lm_eval")
    places = [] if found is None else list(found.submodule_search_locations or ())
    return next((Path(place) / "tasks" for place in places if (Path(place) / "tasks").is_dir()), None)


@lru_cache(maxsize=64)  # lm-eval has 14,000 files, and a task is searched for more than once
def _found(folder: str, task: str) -> Path | None:
    """File of a task in a folder; None if the folder has no such task.

    Files with the task's name are searched first.
    """
    for stem in (task, "*"):
        for name, path in _tasks(Path(folder), stem):
            if name == task:
                return path
    return None


def _tasks(folder: Path, stem: str = "*") -> Iterator[tuple[str, Path]]:
    for path in sorted(folder.rglob(f"{stem}.y*ml")):
        if found := _NAMED.search(_text(path)):
            yield found[1], path


def _refuse_group(folder: Path, task: str) -> None:
    for path in folder.rglob("*.yaml"):
        text = _text(path)
        if (found := _GROUP.search(text)) and found[1] == task:
            members = re.findall(r"^ *- (?:task: )?([\w.-]+)$", text, re.MULTILINE)
            raise SpecError(f"{task} is a group of tasks; name one of them{_of(members)}", KEY)


def _of(names: Iterable[str]) -> str:
    listed = list(names)
    more = f" and {len(listed) - 10} more" if len(listed) > 10 else ""
    return f": {', '.join(listed[:10])}{more}" if listed else ""


def _text(path: Path) -> str:
    try:
        return read_text(path)
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} cannot be read as text: {error}", KEY) from error


def _read(path: Path, within: tuple[Path, ...], read: list[Path]) -> JsonObject:
    """Keys of a file, merged over those of included files; each file is added to `read`."""
    if path in within:
        raise SpecError(f"{path} includes itself", KEY)
    read.append(path)
    try:
        config = yaml.load(_text(path), Loader=_loader(path.parent))
    except (yaml.YAMLError, RecursionError) as error:
        raise SpecError(f"{path} cannot be read as a task's YAML: {error}", KEY) from error
    if not isinstance(config, dict):
        raise SpecError(f"{path} is not a mapping of keys to values", KEY)
    included = config.pop("include", None) or []
    merged: JsonObject = {}
    for name in included if isinstance(included, list) else [included]:
        merged |= _read((path.parent / str(name)).resolve(), (*within, path), read)
    return merged | config


def _loader(folder: Path) -> type[yaml.SafeLoader]:
    class Loader(yaml.SafeLoader):
        """YAML loader that reads `!function` as a `Function`."""

    def function(loader: yaml.SafeLoader, node: yaml.Node) -> Function:
        module, _, name = str(node.value).rpartition(".")
        file = folder / f"{module.replace('.', '/')}.py"
        return Function(str(file) if file.is_file() else module, name)

    Loader.add_constructor("!function", function)
    return Loader

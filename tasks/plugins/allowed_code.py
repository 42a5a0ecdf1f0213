"""Code that a campaign brings along asks here, at the place where it is about to run, whether it may.

A command that runs a campaign asks its user beforehand, for all that the campaign needs at once. One that
reads asks nothing, and may yet make a judge again, of a database that is a stranger's. So the judge that is
about to run code asks as well, whichever command made it, and so do engines that are about to load a model
with code, and tasks whose examples code makes. Programs that use Winnow as a library, without the command,
have chosen what they run, and nothing is asked of them.
"""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from fnmatch import fnmatchcase
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import NamedTuple

from winnow.storage.text import in_home
from winnow.tasks.errors import SpecError
from winnow.tasks.plugins.source_code import file_digests

PROGRAMS_OF_MODELS = "run programs that models write, in a sandbox"
"""What a judge of type code does, as it follows "it would"."""


class NotAllowed(SpecError):
    """Code is about to run, and nobody has allowed it."""


class Act(NamedTuple):
    """An act that runs code."""

    text: str
    """What the code does, as it follows "it would"."""
    digests: Mapping[str, str] | None
    """SHA-256 of each file of the code; None if it has no files here."""


Allows = Callable[[str, Mapping[str, str] | None], bool]
"""A function that tells whether the user has allowed an act, of code with these digests where it has some."""

_allows: Allows | None = None
_known: list[tuple[str, Mapping[str, str] | None]] = []


def function_of(file: str, function: str) -> str:
    """What running a function of a Python file is called, as it follows "it would".

    Args:
        file: The whole path of the file.
        function: The function's name.
    """
    return f"run {function!a} of the Python file {file!a}"


def act_of_function(file: Path, function: str) -> Act:
    """The act of running a function of a Python file, which is read and not run."""
    found = file.resolve()
    return Act(function_of(str(found), function), digests_of(found))


def digests_of(file: Path) -> Mapping[str, str]:
    """Digests of a Python file and of its own modules that it imports; empty if there is no such file."""
    try:
        return file_digests(file, with_calls=True) if file.is_file() else {}
    except (OSError, ValueError):
        return {file.stem: _of_nothing()}


def file_digest(file: Path) -> str:
    """SHA-256 of a file of code, hexadecimal."""
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:
        return _of_nothing()


def _of_nothing() -> str:
    """The digest of what cannot be read, which is never what was allowed before."""
    return f"cannot be read ({token_hex(8)})"


def ask_of(allows: Allows | None) -> None:
    """Have this process ask before code runs.

    Args:
        allows: Called with each act, once; None asks nothing any more.
    """
    global _allows
    _allows = allows
    _known.clear()


def require_allowed(
    act: str, digests: Mapping[str, str] | None = None, *, instead: str | None = None
) -> None:
    """Refuse to go on to code that nobody has allowed; each act is asked about once.

    Args:
        act: What the code does, as it follows "it would".
        digests: SHA-256 of each file of the code; None if it is of no file.
        instead: A wider act that allows this one as well.

    Raises:
        NotAllowed: In a sentence that holds the command by which it is allowed.
    """
    if _allows is None or (act, digests) in _known:
        return
    if not any(_allows(each, digests) for each in dict.fromkeys((act, instead or act))):
        raise NotAllowed(
            f"it would {act}, which nobody has allowed here as it stands; winnow validate FILE --trust, of "
            "the campaign's file, allows it if you know where it comes from"
        )
    _known.append((act, digests))


_HARMLESS = """
    attention_backend convert device dtype kv_cache_dtype load_format max_model_len quantization
    runner task tokenizer_mode tokenizer_revision
"""
HARMLESS_TEXTS = frozenset(_HARMLESS.split())
"""Arguments of an engine whose text chooses among what is built in. Any other may name code or a file, and so
may any list or mapping."""

CODE_OF_MODELS = ("*.py", "*config*.json")
"""Files beside weights that are code, or name some."""


def code_of_model(model: Mapping[str, object], folder: Path) -> Iterator[tuple[str, Act]]:
    """The acts of code that loading a model asks for, each with the name in `model_args` that asks for it.

    Args:
        model: The keys `model`, `revision` and `model_args` of one that runs here, as in a campaign's file.
        folder: Folder in which relative paths begin.
    """
    args = model.get("model_args")
    for name, value in args.items() if isinstance(args, Mapping) else ():
        if name == "trust_remote_code" and value:
            named = in_home(str(model.get("model")))
            which = str((folder / named).resolve()) if (folder / named).is_dir() else named
            revision = "" if model.get("revision") is None else f" at revision {model['revision']!a}"
            text = f"run the code that comes with the model {which!a}{revision}"
            yield name, Act(text, _digests(folder / named))
        elif isinstance(value, Mapping | list) or (isinstance(value, str) and name not in HARMLESS_TEXTS):
            text = f"set the engine's {name!a} to {value!a}, which may run code or write files"
            yield name, Act(text, _digests(folder / value) if isinstance(value, str) else None)


def require_code_allowed(model: str, revision: str | None, args: Mapping[str, object]) -> None:
    """Refuse to load a model with code that nobody has allowed.

    What was allowed of a model without a revision holds for the revision that Winnow finds for it.

    Args:
        model: Folder of a checkpoint, or its id on a hub.
        revision: Its revision on the hub.
        args: Its `model_args`.

    Raises:
        NotAllowed: In a sentence that holds the command by which it is allowed.
    """
    keys = {"model": model, "model_args": args}
    acts = code_of_model({**keys, "revision": revision}, Path.cwd())
    for (_, act), (_, of_any) in zip(acts, code_of_model(keys, Path.cwd()), strict=True):
        require_allowed(*act, instead=of_any.text)


MOST_FOLDERS = 1_000
"""Folders within a checkpoint's that are looked into for code."""


def _digests(folder: Path) -> Mapping[str, str] | None:
    """Those of the code that comes with a checkpoint in a folder; None for one that lies elsewhere.

    Raises:
        SpecError: If it holds too many folders to look into.
    """
    if not folder.is_dir():
        return None
    found = {}
    for path in _files_of_code(folder):
        found[os.path.relpath(path, folder)] = file_digest(path)
        if path.suffix == ".json":
            for other in _named_folders(path):
                beside = (each for each in sorted(other.glob("*.py")) if each.is_file())
                found |= {os.path.relpath(each, folder): file_digest(each) for each in beside}
    return found


def _files_of_code(folder: Path) -> Iterator[Path]:
    """The files of code in a folder, links followed."""
    seen: set[str] = set()
    for place, folders, files in os.walk(folder, followlinks=True):
        if (found := os.path.realpath(place)) in seen:
            folders.clear()
            continue
        seen.add(found)
        if len(seen) > MOST_FOLDERS:
            raise SpecError(
                f"{folder} holds more than {MOST_FOLDERS} folders, too many to search for code; put the "
                "checkpoint into a separate folder, without links to others"
            )
        code = (name for name in sorted(files) if any(fnmatchcase(name, kind) for kind in CODE_OF_MODELS))
        yield from (path for name in code if (path := Path(place, name)).is_file())


def _named_folders(config: Path) -> Iterator[Path]:
    """The folders here that a configuration takes code from, as Transformers has it: FOLDER--MODULE.CLASS."""
    try:
        waiting = [json.loads(config.read_bytes())]
    except (OSError, RecursionError, ValueError):
        return
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping | list):
            waiting += value.values() if isinstance(value, Mapping) else value
        elif isinstance(value, str) and "--" in value and "\0" not in value:
            folder, _, module = value.partition("--")
            yield Path(folder, module).parent

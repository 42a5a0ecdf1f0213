"""Permission checks immediately before a campaign's code runs.

A command that runs a campaign requests all permissions from its user in advance. A command that only reads
requests none, but may create a judge again from an untrusted database. So a judge checks the permission again
before it runs code, in every command. So do engines that load a model with code, and tasks whose examples are
created by code. Nothing is checked for programs that use Winnow as a library, because they choose their code.
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
from winnow.tasks.plugins.source_code import file_digests, module_digests

PROGRAMS_OF_MODELS = "run programs that models write, in a sandbox"
"""Act of a judge of type code, as words that continue "it would"."""


class NotAllowed(SpecError):
    """Code is about to run without permission."""


class Act(NamedTuple):
    """An act that runs code, for which a user can give permission."""

    text: str
    """Description of the act, as words that continue "it would"."""
    digests: Mapping[str, str] | None
    """SHA-256 of each file of the code; None if the code has no files on this machine."""


Allows = Callable[[str, Mapping[str, str] | None], bool]
"""Function that returns whether the user has allowed an act, for code with these digests."""

_allows: Allows | None = None
_known: list[tuple[str, Mapping[str, str] | None]] = []


def function_of(file: str, function: str) -> str:
    """Act of running a function of a Python file, as words that continue "it would"."""
    return f"run {function!a} of the Python file {file!a}"


def act_of_function(file: Path, function: str) -> Act:
    """Act of running a function of a Python file; the file is read, not run."""
    found = file.resolve()
    return Act(function_of(str(found), function), digests_of(found))


def digests_of(file: Path) -> Mapping[str, str]:
    """Digests of a Python file and of its own imported modules; empty if the file is missing."""
    try:
        return file_digests(file, with_calls=True) if file.is_file() else {}
    except (OSError, ValueError):
        return {file.stem: _of_nothing()}


def digests_of_module(name: str, folder: Path) -> Mapping[str, str]:
    """Digests of the code that `python -m` runs from a folder; empty if it lacks the module."""
    try:
        return module_digests(name, folder)
    except (OSError, ValueError):
        return {name: _of_nothing()}


def file_digest(file: Path) -> str:
    """SHA-256 of a file of code, hexadecimal; a value that is never allowed if it is unreadable."""
    try:
        return sha256(file.read_bytes()).hexdigest()
    except OSError:
        return _of_nothing()


def _of_nothing() -> str:
    """Digest for unreadable code, which differs from every digest allowed before."""
    return f"cannot be read ({token_hex(8)})"


def ask_of(allows: Allows | None) -> None:
    """Set the permission check of this process, which runs before any code of a campaign.

    Args:
        allows: Called with each act, once; None disables the checks.
    """
    global _allows
    _allows = allows
    _known.clear()


def require_allowed(
    act: str, digests: Mapping[str, str] | None = None, *, instead: str | None = None
) -> None:
    """Refuse to run code without permission; each act is checked once.

    Args:
        act: Description of the act, as words that continue "it would".
        digests: SHA-256 of each file of the code; None if the code has no files.
        instead: A wider act whose permission includes this one.

    Raises:
        NotAllowed: If the act is not allowed; the message has the command that allows it.
    """
    if _allows is None or (act, digests) in _known:
        return
    if not any(_allows(each, digests) for each in dict.fromkeys((act, instead or act))):
        raise NotAllowed(
            f"it would {act}, which is not permitted here (a changed file needs permission again); "
            "if you trust its source, run: winnow validate FILE --trust (FILE: the campaign's file)"
        )
    _known.append((act, digests))


_HARMLESS = """
    attention_backend convert device dtype kv_cache_dtype load_format max_model_len quantization
    runner task tokenizer_mode tokenizer_revision
"""
HARMLESS_TEXTS = frozenset(_HARMLESS.split())
"""Engine arguments whose text only selects a built-in option. Any other text may name code or a file, as may
any list or mapping."""

CODE_OF_MODELS = ("*.py", "*config*.json")
"""Name patterns of files next to weights that contain or name code."""


def code_of_model(model: Mapping[str, object], folder: Path) -> Iterator[tuple[str, Act]]:
    """Acts that loading a model requires, each with its key in `model_args`."""
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
    """Refuse to load a model with code that was not allowed.

    A permission for a model without a revision applies to the revision that Winnow finds for it.

    Raises:
        NotAllowed: If an act is not allowed; the message has the command that allows it.
    """
    keys = {"model": model, "model_args": args}
    acts = code_of_model({**keys, "revision": revision}, Path.cwd())
    for (_, act), (_, of_any) in zip(acts, code_of_model(keys, Path.cwd()), strict=True):
        require_allowed(*act, instead=of_any.text)


MOST_FOLDERS = 1_000
"""Maximum number of folders inside a checkpoint that are searched for code."""


def _digests(folder: Path) -> Mapping[str, str] | None:
    """Digests of the code in a checkpoint's folder; None if the checkpoint is not a folder here.

    Raises:
        SpecError: If the folder has too many subfolders to search.
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
    """Files of code in a folder, following links."""
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
    """Local folders from which a configuration loads code, as FOLDER--MODULE.CLASS."""
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

"""Code that comes with a model, or that arguments of its engine may name: what a user has to allow.

The command asks about all of a campaign's models beforehand, and an engine asks again when it starts.
"""

import json
import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path

from winnow.storage.text import in_home
from winnow.tasks.errors import SpecError
from winnow.tasks.plugins.allowed_code import Act, file_digest, require_allowed

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
                f"{folder} holds more than {MOST_FOLDERS} folders, which are too many to look into for code; "
                "put the checkpoint into a folder of its own, without links to others"
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

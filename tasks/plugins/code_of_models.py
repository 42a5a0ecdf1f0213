"""Code that comes with a model, or that arguments of its engine may name: what a user has to allow.

The command asks about all of a campaign's models beforehand, and an engine asks again when it starts.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path

from winnow.storage.text import in_home
from winnow.tasks.plugins.allowed_code import Act, require_allowed

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
            yield (
                name,
                Act(f"set the engine's {name!a} to {value!a}, which may run code or write files", None),
            )


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


def _digests(folder: Path) -> Mapping[str, str] | None:
    """Those of the code that comes with a checkpoint in a folder; None for one that lies elsewhere."""
    if not folder.is_dir():
        return None
    files = sorted({path for kind in CODE_OF_MODELS for path in folder.rglob(kind) if path.is_file()})
    try:
        return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in files}
    except OSError:
        return {}

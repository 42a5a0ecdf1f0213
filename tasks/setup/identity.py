"""Checks that a campaign is the same one when its file is read again; the error says where two differ."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from winnow.storage.json_types import JsonView
from winnow.tasks.engines.known_providers import FUNCTION, REMOTE
from winnow.tasks.errors import SpecError
from winnow.tasks.setup.definition_changes import Change, changes
from winnow.tasks.spec.judge_tree import judge_trees, model_name
from winnow.tasks.spec.stored_spec import CUT_AT_STOP, ONLY, fork_command

GROWING = (
    "models",
    "prompts",
    "guardrails",
    "generate_configs",
    "exclude",
    "model_fingerprints",
    "served_at",
    "few_shot_examples",
    "left_out",
    CUT_AT_STOP,
)
"""Keys of an identity that say which candidates there are."""

FILES = re.compile(r"(?:model_fingerprints|judge_identity\.fingerprints|metric_fingerprints)\.(.+)")
"""Keys that say what the files of a model are."""


class IdentityChanged(SpecError):
    """The spec differs from the stored campaign in what may not change.

    Attributes:
        what: The message without its remedy.
        found: Changes that were found, where they can be told key by key.
    """

    has_lines = True

    def __init__(self, what: str, remedy: str, found: Sequence[Change] = ()) -> None:
        lines = "".join(f"\n  {each.line}" for each in found)
        super().__init__(f"{what}:{lines}\n{remedy}" if found else f"{what}: {remedy}")
        self.what = what
        self.found = tuple(found)


def refuse_other_identity(name: str, stored: JsonView, given: JsonView) -> None:
    """Compare identities; the error shows each difference and how to fork.

    Raises:
        IdentityChanged: If they differ.
    """
    _refuse(name, given, [_without_folder(each, given) for each in changes(stored, given)])


def refuse_other_texts(name: str, stored: object, given: object, identity: JsonView) -> None:
    """Refuse to make texts from now on where none were made, or none where they were.

    Where stored ones alone are taken, examples are drawn otherwise, and who has none is told of it: what an
    answer says would be of one part of the comparisons alone.

    Args:
        name: The campaign's.
        stored: The campaign's value of `reuse`.
        given: The value of `reuse` that it is to have.
        identity: The identity that it is to have.

    Raises:
        IdentityChanged: If it is to make texts and made none, or the other way round.
    """
    if (stored == ONLY) != (given == ONLY):
        _refuse(name, identity, changes({"reuse": stored}, {"reuse": given}))


def _without_folder(change: Change, given: JsonView) -> Change:
    """The same change, in other words where the files of a model did not change but are not there.

    What was a folder then reads as a name on a hub.
    """
    match = FILES.fullmatch(change.key)
    for model in _models(given):
        is_it = match is not None and model_name(model) == match.group(1)
        if is_it and _is_weights_alone(model) and not (folder := Path(model["model"])).is_dir():
            looked = f"is not here (looked for {folder.absolute()})"
            return Change(change.key, f"the folder of model {model_name(model)}, {folder}, {looked}")
    return change


def _models(identity: JsonView) -> Iterator[JsonView]:
    """The models of candidates, of the judge and of metrics."""
    yield from identity.get("models") or ()
    for judge in judge_trees(identity):
        yield from judge.models


def _is_weights_alone(model: JsonView) -> bool:
    """Whether what its files are is what its folder is, if it has one."""
    parts = (model.get("lora"), model.get("chat_template"))
    return model.get("provider") not in (*REMOTE, FUNCTION) and parts == (None, None)


def _refuse(name: str, given: JsonView, found: Sequence[Change]) -> None:
    if found:
        raise IdentityChanged(
            f"campaign '{name}' was begun with another definition, which may not change",
            "undo the change, or begin a new campaign that reuses the generations of this one: "
            f"{fork_command(given)}",
            found,
        )


def without_growing(identity: Mapping[str, object]) -> dict[str, object]:
    """An identity without what grows when candidates join."""
    return {key: value for key, value in identity.items() if key not in GROWING}

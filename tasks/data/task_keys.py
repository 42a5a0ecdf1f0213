"""Which keys of a campaign's file a benchmark stands for, and which may stand beside it."""

import re

from winnow.storage.json_types import JsonView
from winnow.tasks.errors import SpecError

SELECTING = ("filter", "limit", "sample", "shuffle")
"""What may be said of the dataset beside a task."""

BECOMES = ("dataset", "output_type", "choices", "target_delimiter", "prompts", "judge")
"""Keys of the file that a task stands for; `generate_config` of its models is filled in as well."""


def refuse_twice(values: JsonView, given: list[str]) -> None:
    """Refuse a file that says what its task says.

    Args:
        values: Of the file.
        given: Keys of `task` that are for its own judge, where they are given.

    Raises:
        SpecError: Naming the key.
    """
    dataset = values.get("dataset", {})
    if not isinstance(dataset, dict):
        raise SpecError("must be a mapping of keys to values", "dataset")
    twice = [f"dataset.{key}" for key in dataset if key not in SELECTING]
    for key in ("output_type", "choices", "target_delimiter"):
        twice += [key] * (key in values)
    if twice:
        raise SpecError("is said by the task already; leave it out", twice[0])
    if "judge" in values and given:
        raise SpecError("is for the task's own judge; leave it out, or leave judge out", f"task.{given[0]}")


def filled_in(model: object, settings: JsonView) -> object:
    """A model of the file with settings of a task, before which its own go."""
    if not isinstance(model, dict):
        return model
    own = model.get("generate_config") or {}
    return {**model, "generate_config": {**settings, **own} if isinstance(own, dict) else own}


def prompt_name(task: str) -> str:
    """The name of the task, as names of prompts may be."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", task).lstrip("._-")[:100] or "task"

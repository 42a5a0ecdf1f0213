"""Which keys of a campaign's file a benchmark stands for, and which may stand beside it."""

import re

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.inspect.campaign_keys import with_inspect
from winnow.tasks.data.inspect.definition import InspectTask
from winnow.tasks.data.lm_eval.campaign_keys import with_lm_eval
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.sections.dataset import TaskSpec

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


OF_THE_JUDGE = ("metric", "filter", "scorer", "grader")
"""Keys of `task` that say how its own judge judges."""


def with_task(values: JsonView, task: TaskSpec, read: InspectTask | None = None) -> JsonObject:
    """The values of a campaign's file with what its task stands for in the place of the task.

    Args:
        values: As in the file.
        task: Its key `task`.
        read: What a task of Inspect holds, where somebody has allowed to run it; see `with_inspect`.

    Raises:
        SpecError: If the task does what Winnow does not, or the file says what the task says already.
    """
    refuse_twice(values, [key for key in OF_THE_JUDGE if getattr(task, key) is not None])
    return with_lm_eval(values, task) if task.lm_eval is not None else with_inspect(values, task, read)

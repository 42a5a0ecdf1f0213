"""Replace the key `task` of a campaign's file by the keys that it stands for.

These are a dataset, prompts, settings and a judge.
"""

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.harnesses import harness_of
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.sections.dataset import TaskSpec

OF_THE_JUDGE = ("metric", "filter", "scorer", "grader")
"""Keys of `task` that configure the benchmark's own judge."""


def with_task(values: JsonView, task: TaskSpec, read: object = None) -> JsonObject:
    """Replace the task in a campaign's file by the values that it stands for.

    Args:
        values: The values of the file.
        task: Its key `task`.
        read: Result of running the task; None if it was not run. See `Harness.read`.

    Raises:
        SpecError: The task needs a feature that Winnow does not support, or the file repeats a key of the
            task.
    """
    refuse_twice(values, [key for key in OF_THE_JUDGE if getattr(task, key) is not None])
    harness = harness_of(task)
    assert harness is not None  # `TaskSpec` has one of their keys
    return harness.filled_in(values, task, read)


SELECTING = ("filter", "limit", "sample", "shuffle", "cluster")
"""Keys of the dataset that are allowed together with a task."""

BECOMES = ("dataset", "output_type", "choices", "target_delimiter", "prompts", "judge")
"""Keys of the file that a task sets; it also sets `generate_config` of the models."""


def refuse_twice(values: JsonView, given: list[str]) -> None:
    """Refuse a file that repeats a key of its task.

    Args:
        values: The values of the file.
        given: Keys of `task` for its own judge that the file sets.

    Raises:
        SpecError: A key is repeated; gives the key.
    """
    dataset = values.get("dataset", {})
    if not isinstance(dataset, dict):
        raise SpecError("must be a mapping of keys to values", "dataset")
    twice = [f"dataset.{key}" for key in dataset if key not in SELECTING]
    for key in ("output_type", "choices", "target_delimiter"):
        twice += [key] * (key in values)
    if twice:
        raise SpecError(f"is already set by the task; remove {twice[0]}", twice[0])
    if "judge" in values and given:
        raise SpecError(
            f"is only for the task's own judge; remove {given[0]}, or remove judge", f"task.{given[0]}"
        )

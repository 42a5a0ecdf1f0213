"""Replace the key `task` of a campaign's file: by a dataset, prompts, settings and a judge."""

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.harnesses import harness_of
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.sections.dataset import TaskSpec

OF_THE_JUDGE = ("metric", "filter", "scorer", "grader")
"""Keys of `task` that configure the benchmark's own judge."""


def with_task(values: JsonView, task: TaskSpec, read: object = None) -> JsonObject:
    """Replace the task in a campaign's file by the values that it means.

    Args:
        values: As in the file.
        task: Its key `task`.
        read: The result of running the task, if it was run; see `Harness.read`.

    Raises:
        SpecError: If the task needs a feature that Winnow does not support, or the file repeats a key of the
            task.
    """
    refuse_twice(values, [key for key in OF_THE_JUDGE if getattr(task, key) is not None])
    harness = harness_of(task)
    assert harness is not None  # `TaskSpec` has one of their keys
    return harness.filled_in(values, task, read)


SELECTING = ("filter", "limit", "sample", "shuffle", "cluster")
"""Keys of the dataset allowed together with a task."""

BECOMES = ("dataset", "output_type", "choices", "target_delimiter", "prompts", "judge")
"""Keys of the file that a task sets; `generate_config` of its models is filled in as well."""


def refuse_twice(values: JsonView, given: list[str]) -> None:
    """Refuse a file that repeats a key of its task.

    Args:
        values: The values of the file.
        given: Given keys of `task` for its own judge.

    Raises:
        SpecError: If a key is repeated; names the key.
    """
    dataset = values.get("dataset", {})
    if not isinstance(dataset, dict):
        raise SpecError("must be a mapping of keys to values", "dataset")
    twice = [f"dataset.{key}" for key in dataset if key not in SELECTING]
    for key in ("output_type", "choices", "target_delimiter"):
        twice += [key] * (key in values)
    if twice:
        raise SpecError("is already set by the task; remove it", twice[0])
    if "judge" in values and given:
        raise SpecError("is for the task's own judge; remove it, or remove judge", f"task.{given[0]}")

"""Fills in what the key `task` of a campaign's file stands for: a dataset, prompts, settings and a judge."""

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.harnesses import harness_of
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.sections.dataset import TaskSpec

OF_THE_JUDGE = ("metric", "filter", "scorer", "grader")
"""Keys of `task` that say how its own judge judges."""


def with_task(values: JsonView, task: TaskSpec, read: object = None) -> JsonObject:
    """The values of a campaign's file with what its task stands for instead of the task.

    Args:
        values: As in the file.
        task: Its key `task`.
        read: What running the task says, where it was run; see `Harness.read`.

    Raises:
        SpecError: If the task does what Winnow does not, or the file says what the task says already.
    """
    refuse_twice(values, [key for key in OF_THE_JUDGE if getattr(task, key) is not None])
    harness = harness_of(task)
    assert harness is not None  # `TaskSpec` has one of their keys
    return harness.filled_in(values, task, read)


SELECTING = ("filter", "limit", "sample", "shuffle", "cluster")
"""Keys of the dataset that may be given beside a task."""

BECOMES = ("dataset", "output_type", "choices", "target_delimiter", "prompts", "judge")
"""Keys of the file that a task stands for; `generate_config` of its models is filled in as well."""


def refuse_twice(values: JsonView, given: list[str]) -> None:
    """Refuse a file that says what its task says.

    Args:
        values: The values of the file.
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

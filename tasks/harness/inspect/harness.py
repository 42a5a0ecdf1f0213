"""Inspect as a harness: the parts of a campaign that come from one of its tasks."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.dataset_files import PlacedRow
from winnow.tasks.data.harnesses import compares_pairs, prompt_name, with_settings
from winnow.tasks.harness.inspect.reading import (
    InspectTask,
    act_of_task,
    generation_of,
    judge_of,
    read_task,
    rows_of,
)
from winnow.tasks.plugins.allowed_code import Act
from winnow.tasks.spec.sections.dataset import DatasetSpec, InspectSpec, TaskSpec


class Inspect:
    """Harness for tasks of Inspect; see `tasks.data.harnesses.Harness`."""

    def read(self, dataset: DatasetSpec, *, is_allowed: bool) -> InspectTask:
        """See `Harness`."""
        return read_task(_named(dataset), is_allowed=is_allowed)

    def rows(self, dataset: DatasetSpec, read: object, *, is_allowed: bool) -> Iterable[PlacedRow]:
        """See `Harness`."""
        return rows_of(read if isinstance(read, InspectTask) else self.read(dataset, is_allowed=is_allowed))

    def filled_in(self, values: JsonView, task: TaskSpec, read: object) -> JsonObject:
        """See `Harness`."""
        return with_inspect(values, task, read if isinstance(read, InspectTask) else None)

    def left_out(self, dataset: DatasetSpec, judge: JsonView) -> Iterable[str]:
        """See `Harness`; empty, because a task's scorer gives one number."""
        return ()

    def acts(self, dataset: DatasetSpec, folder: Path) -> Iterator[tuple[Act, tuple[str, ...]]]:
        """See `Harness`."""
        task = _named(dataset)
        keys = ("inspect", *(key for key in ("args", "python") if getattr(task, key)))
        yield act_of_task(task, folder), tuple(f"task.{key}" for key in keys)

    def files(self, dataset: DatasetSpec) -> Iterable[tuple[str, str]]:
        """See `Harness`; empty, because the task's permitted code can read any file of the user."""
        return ()


def _named(dataset: DatasetSpec) -> InspectSpec:
    assert dataset.inspect is not None  # `harness_of` has checked it
    return dataset.inspect


FIELDS = {"id": "id", "input": "input", "target": "target"}


def with_inspect(values: JsonView, task: TaskSpec, read: InspectTask | None) -> JsonObject:
    """Replace the task in a campaign's file by the values that it stands for.

    Args:
        values: The file's values.
        task: The value of the file's key `task`.
        read: The task's content; None if running it is not approved yet. Values that depend on its code are
            then placeholders, because the other values show what needs approval.

    Raises:
        SpecError: If the task needs a feature that Winnow does not support.
    """
    own = {key: value for key, value in values.items() if key != "task"}
    described = {"task": task.inspect, "args": task.args, "python": task.python}
    own["dataset"] = {**values.get("dataset", {}), "inspect": described, "fields": FIELDS}
    if "judge" not in values and not compares_pairs(values):
        own["judge"] = _judge(task, read)
    if "prompts" not in values:
        name = prompt_name(str(task.inspect).rpartition("@")[2])
        own["prompts"] = [{"name": name, **_prompt(values, read)}]
    models = values.get("models")
    if read is not None and isinstance(models, list):
        own["models"] = [with_settings(each, generation_of(read)) for each in models]
    return own


def _judge(task: TaskSpec, read: InspectTask | None) -> JsonObject:
    if read is not None:
        return judge_of(read, task.scorer, task.grader)
    return {"type": "inspect-graded", "model": task.grader} if task.grader else {"type": "inspect"}


def _prompt(values: JsonView, read: InspectTask | None) -> JsonObject:
    if read is None:
        return {"template": "{{ input }}"}
    if read.is_one_question:
        return {"template": "{{ context }}"}
    models = values.get("models")
    for each in models if isinstance(models, list) else []:
        if isinstance(each, dict) and not each.get("chat"):
            name = each.get("name")
            read.refuse("shows models more than one message", f"set chat: true for the model {name!r}")
    return {"messages": [{"turns": "messages"}]}

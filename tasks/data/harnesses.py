"""Registry of evaluation harnesses, and the interface of the readers that turn their tasks into campaigns."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.json_types import JsonObject, JsonView
from winnow.storage.objectives import OBJECTIVES, traits_of
from winnow.tasks.data.dataset_files import PlacedRow
from winnow.tasks.plugins.allowed_code import Act
from winnow.tasks.spec.sections.dataset import DatasetSpec, TaskSpec


class Harness(Protocol):
    """The reader of a harness's tasks."""

    def read(self, dataset: DatasetSpec, *, is_allowed: bool) -> object:
        """Run the task to get information that its files lack; None if running is not needed.

        Args:
            dataset: The key `dataset`, which names the task.
            is_allowed: Whether a user has approved running the task.

        Raises:
            DatasetError: If running the task was not approved, or the task does not exist, fails, or needs a
                feature that Winnow does not support.
            NotAllowed: If the user has not permitted the task's code.
        """
        ...

    def rows(self, dataset: DatasetSpec, read: object, *, is_allowed: bool) -> Iterable[PlacedRow]:
        """The task's examples, each with its place.

        Args:
            dataset: The key `dataset`, which names the task.
            read: What `read` returned; None if it was not called.
            is_allowed: See `read`; it also allows requests to the hub.

        Raises:
            SpecError: If the task does not exist or cannot be read.
        """
        ...

    def filled_in(self, values: JsonView, task: TaskSpec, read: object) -> JsonObject:
        """Replace the task in a campaign's file by the values that it means.

        Args:
            values: As in the file.
            task: Its key `task`.
            read: What `read` returned; None if running the task is not approved yet. Values that depend on
                its code are then placeholders: the rest shows what needs approval.

        Raises:
            SpecError: If the task needs what Winnow does not support.
        """
        ...

    def left_out(self, dataset: DatasetSpec, judge: JsonView) -> Iterable[str]:
        """The task's other metrics, which a judge in a campaign's file does not give."""
        ...

    def acts(self, dataset: DatasetSpec, folder: Path) -> Iterable[tuple[Act, tuple[str, ...]]]:
        """Third-party code that the task runs, each item with the keys that cause it."""
        ...

    def files(self, dataset: DatasetSpec) -> Iterable[tuple[str, str]]:
        """The user's files that the task reads: the key that names each, and its path."""
        ...


HARNESSES = {
    "lm_eval": "winnow.tasks.harness.lm_eval.harness:LmEval",
    "inspect": "winnow.tasks.harness.inspect.harness:Inspect",
}
"""Import paths of readers, by the key of `task` and of `dataset` that names a task."""


def harness_of(spec: TaskSpec | DatasetSpec) -> Harness | None:
    """The reader for the task of a spec; None if the spec names no task."""
    addresses = (address for key, address in HARNESSES.items() if getattr(spec, key) is not None)
    found: Harness | None = next((object_at(each)() for each in addresses), None)
    return found


def with_settings(model: object, settings: JsonView) -> object:
    """A model of the file with a task's settings; the model's own take precedence."""
    if not isinstance(model, dict):
        return model
    own = model.get("generate_config") or {}
    return {**model, "generate_config": {**settings, **own} if isinstance(own, dict) else own}


def prompt_name(task: str) -> str:
    """The task's name in the form of a prompt name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", task).lstrip("._-")[:100] or "task"


def compares_pairs(values: JsonView) -> bool:
    """Whether a campaign's objective compares pairs of outputs, which no task's judge does."""
    objective = values.get("objective")
    return objective in OBJECTIVES and traits_of(objective).compares_pairs

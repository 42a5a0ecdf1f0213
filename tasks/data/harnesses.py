"""Registry of evaluation harnesses, and the interface of their readers.

A reader turns a harness's tasks into campaigns.
"""

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
    """Reader of a harness's tasks."""

    def read(self, dataset: DatasetSpec, *, is_allowed: bool) -> object:
        """Run the task to get information that its files lack; None if not necessary.

        Args:
            dataset: The key `dataset`, which names the task.
            is_allowed: Whether a user has permitted running the task.

        Raises:
            DatasetError: Running the task was not permitted, the task does not exist or fails, or it needs a
                feature that Winnow does not support.
            NotAllowed: The user has not permitted the task's code.
        """
        ...

    def rows(self, dataset: DatasetSpec, read: object, *, is_allowed: bool) -> Iterable[PlacedRow]:
        """Yield the task's examples, each with its place.

        Args:
            dataset: The key `dataset`, which names the task.
            read: The result of `read`; None if it was not called.
            is_allowed: See `read`; requests to the hub are also allowed.

        Raises:
            SpecError: The task does not exist or cannot be read.
        """
        ...

    def filled_in(self, values: JsonView, task: TaskSpec, read: object) -> JsonObject:
        """Replace the task in a campaign's file by the keys that it stands for.

        Args:
            values: The keys of the file.
            task: The key `task` of the file.
            read: The result of `read`; None if running the task is not permitted yet. Values that depend on
                the task's code are then placeholders, and the other values show what needs permission.

        Raises:
            SpecError: The task needs a feature that Winnow does not support.
        """
        ...

    def left_out(self, dataset: DatasetSpec, judge: JsonView) -> Iterable[str]:
        """Yield the task's other metrics, which no judge in a campaign's file computes."""
        ...

    def acts(self, dataset: DatasetSpec, folder: Path) -> Iterable[tuple[Act, tuple[str, ...]]]:
        """Yield third-party code that the task runs, each with the keys that cause it."""
        ...

    def files(self, dataset: DatasetSpec) -> Iterable[tuple[str, str]]:
        """Yield the user's files that the task reads, as (key that names it, path)."""
        ...


HARNESSES = {
    "lm_eval": "winnow.tasks.harness.lm_eval.harness:LmEval",
    "inspect": "winnow.tasks.harness.inspect.harness:Inspect",
}
"""Import paths of readers, by the key in `task` and `dataset` that names a task."""


def harness_of(spec: TaskSpec | DatasetSpec) -> Harness | None:
    """The reader for the task of a spec; None if the spec names no task."""
    addresses = (address for key, address in HARNESSES.items() if getattr(spec, key) is not None)
    found: Harness | None = next((object_at(each)() for each in addresses), None)
    return found


def with_settings(model: object, settings: JsonView) -> object:
    """A model of the file with a task's generation settings.

    The model's own settings take precedence.
    """
    if not isinstance(model, dict):
        return model
    own = model.get("generate_config") or {}
    return {**model, "generate_config": {**settings, **own} if isinstance(own, dict) else own}


def prompt_name(task: str) -> str:
    """The task's name, converted to a valid prompt name."""
    return re.sub(r"[^A-Za-z0-9._-]", "-", task).lstrip("._-")[:100] or "task"


def compares_pairs(values: JsonView) -> bool:
    """Whether a campaign's objective compares pairs of outputs.

    No task's judge supports this.
    """
    objective = values.get("objective")
    return objective in OBJECTIVES and traits_of(objective).compares_pairs

"""Evaluation harnesses whose tasks describe campaigns: what is taken from a task, and where its reader is."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from winnow.algorithms.state.plugin_registry import object_at
from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.data.dataset_files import PlacedRow
from winnow.tasks.plugins.allowed_code import Act
from winnow.tasks.spec.sections.dataset import DatasetSpec, TaskSpec


class Harness(Protocol):
    """The reader of a harness's tasks."""

    def read(self, dataset: DatasetSpec, *, is_allowed: bool) -> object:
        """What only running the task says; None if its files and rows say all.

        Args:
            dataset: The key `dataset`, which names the task.
            is_allowed: Whether a user has approved of running it.

        Raises:
            DatasetError: If nobody has, there is no such task, it fails, or it does what Winnow does not.
            NotAllowed: If a command runs it that has not asked for it.
        """
        ...

    def rows(self, dataset: DatasetSpec, read: object, *, is_allowed: bool) -> Iterable[PlacedRow]:
        """The task's examples, each with its place.

        Args:
            dataset: The key `dataset`, which names the task.
            read: What `read` returned; None if it was not called.
            is_allowed: See `read`; the hub may then be asked, too.

        Raises:
            SpecError: If there is no such task, or it cannot be read.
        """
        ...

    def filled_in(self, values: JsonView, task: TaskSpec, read: object) -> JsonObject:
        """The values of a campaign's file with what its task stands for instead of the task.

        Args:
            values: As in the file.
            task: Its key `task`.
            read: What `read` returned; None if nobody has allowed yet to run the task. What follows from its
                code has then a placeholder: the rest says what would have to be allowed.

        Raises:
            SpecError: If the task does what Winnow does not.
        """
        ...

    def acts(self, dataset: DatasetSpec, folder: Path) -> Iterable[tuple[Act, tuple[str, ...]]]:
        """What the task runs of others' code, each with the keys that ask for it.

        Args:
            dataset: The key `dataset`, which names the task.
            folder: Folder in which relative paths begin.
        """
        ...

    def files(self, dataset: DatasetSpec) -> Iterable[tuple[str, str]]:
        """The user's files that the task reads: the key of the file that names each, and its path."""
        ...


HARNESSES = {
    "lm_eval": "winnow.tasks.harness.lm_eval.harness:LmEval",
    "inspect": "winnow.tasks.harness.inspect.harness:Inspect",
}
"""Addresses of readers, by the key of `task`, and of `dataset`, that names a task."""


def harness_of(spec: TaskSpec | DatasetSpec) -> Harness | None:
    """The reader of the task that a spec names; None if it names none."""
    addresses = (address for key, address in HARNESSES.items() if getattr(spec, key) is not None)
    found: Harness | None = next((object_at(each)() for each in addresses), None)
    return found

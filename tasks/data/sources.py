"""Reads the examples of the dataset that a spec names, wherever they come from."""

from collections.abc import Iterable

from winnow.tasks.data.dataset_files import PlacedRow, read_files
from winnow.tasks.data.datasets import Dataset, Selection, dataset_of
from winnow.tasks.data.hub import HubSource, hub_rows
from winnow.tasks.data.inspect.definition import InspectTask
from winnow.tasks.data.inspect.reading import read_task, rows_of
from winnow.tasks.spec.sections.dataset import DatasetSpec, FieldNames, SolvedSpec, SourceSpec


def read_dataset(spec: DatasetSpec, *, is_allowed: bool = True, task: InspectTask | None = None) -> Dataset:
    """The examples a spec points to.

    Args:
        spec: As in the file, with the commit of a hub's dataset.
        is_allowed: Whether the hub may be asked, and functions of a task be run: a user has approved of it.
        task: The content of its task of Inspect, where that was read already.

    Raises:
        DatasetError: If they cannot be read or are not what the spec says.
    """
    selection = Selection(
        filter=spec.filter,
        limit=spec.limit,
        sample=None if spec.sample is None else (spec.sample.n, spec.sample.seed),
        shuffle=spec.shuffle,
    )
    return dataset_of(
        _rows(spec, is_allowed, task), spec.fields.model_dump(), selection, name=spec.title, path=spec.source
    )


def read_solved(spec: SolvedSpec, fields: FieldNames, *, is_allowed: bool) -> Dataset:
    """The solved examples that a prompt is to draw from.

    Args:
        spec: As in the file, with the commit of a hub's dataset.
        fields: The columns that play each role where `spec` does not say so itself.
        is_allowed: See `read_dataset`.

    Raises:
        DatasetError: If they cannot be read or are not what the spec says.
    """
    selection = Selection(filter=spec.filter, limit=spec.limit)
    columns = (spec.fields or fields).model_dump()
    return dataset_of(_source_rows(spec, is_allowed), columns, selection, name=spec.source, path=spec.source)


def _rows(spec: DatasetSpec, is_allowed: bool, task: InspectTask | None) -> Iterable[PlacedRow]:
    if spec.inspect is not None:
        return rows_of(task or read_task(spec.inspect, is_allowed=is_allowed))
    if spec.lm_eval is not None:
        from winnow.tasks.data.lm_eval.reading import task_rows

        return task_rows(spec.lm_eval, is_allowed=is_allowed)
    return _source_rows(spec, is_allowed)


def _source_rows(spec: SourceSpec, is_allowed: bool) -> Iterable[PlacedRow]:
    if spec.hub is not None:
        source = HubSource(path=spec.hub, name=spec.name, commit=spec.commit)
        return hub_rows(source, spec.split, asks_hub=is_allowed)
    return read_files([spec.path] if isinstance(spec.path, str) else spec.path or [])

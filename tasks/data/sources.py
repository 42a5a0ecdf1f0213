"""Read the examples of a spec's dataset from any kind of source."""

from collections.abc import Iterable

from winnow.tasks.data.dataset_files import PlacedRow, read_files
from winnow.tasks.data.datasets import Dataset, Selection, dataset_of
from winnow.tasks.data.harnesses import harness_of
from winnow.tasks.data.images import ImageReader
from winnow.tasks.spec.sections.dataset import DatasetSpec, FieldNames, SolvedSpec, SourceSpec


def read_dataset(spec: DatasetSpec, *, is_allowed: bool = True, task: object = None) -> Dataset:
    """Read the examples of a spec's dataset.

    Args:
        spec: The dataset as in the file, with the commit if it is on a hub.
        is_allowed: Whether a user has permitted requests to the hub and running functions of a task.
        task: The result of `Harness.read`, if the task was read already.

    Raises:
        DatasetError: The examples cannot be read or do not match the spec.
    """
    selection = Selection(
        filter=spec.filter,
        limit=spec.limit,
        sample=None if spec.sample is None else (spec.sample.n, spec.sample.seed),
        shuffle=spec.shuffle,
    )
    return dataset_of(
        _rows(spec, is_allowed, task),
        spec.fields.model_dump(),
        selection,
        name=spec.title,
        path=spec.source,
        images=ImageReader(spec.images, has_files=spec.path is not None) if spec.images else None,
    )


def read_solved(spec: SolvedSpec, fields: FieldNames, *, is_allowed: bool) -> Dataset:
    """Read the solved examples from which a prompt draws.

    Args:
        spec: The dataset as in the file, with the commit if it is on a hub.
        fields: Column names of the roles, unless `spec` sets them.
        is_allowed: See `read_dataset`.

    Raises:
        DatasetError: The examples cannot be read or do not match the spec.
    """
    selection = Selection(filter=spec.filter, limit=spec.limit)
    columns = (spec.fields or fields).model_dump()
    return dataset_of(_source_rows(spec, is_allowed), columns, selection, name=spec.source, path=spec.source)


def _rows(spec: DatasetSpec, is_allowed: bool, task: object) -> Iterable[PlacedRow]:
    if (harness := harness_of(spec)) is not None:
        return harness.rows(spec, task, is_allowed=is_allowed)
    return _source_rows(spec, is_allowed)


def _source_rows(spec: SourceSpec, is_allowed: bool) -> Iterable[PlacedRow]:
    if spec.hub is not None:
        from winnow.tasks.data.hub import HubSource, hub_rows  # an extra, which few campaigns need

        source = HubSource(path=spec.hub, name=spec.name, commit=spec.commit)
        return hub_rows(source, spec.split, asks_hub=is_allowed)
    return read_files([spec.path] if isinstance(spec.path, str) else spec.path or [])

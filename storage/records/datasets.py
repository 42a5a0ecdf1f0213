"""Datasets and their examples: what is stored of them, by position."""

import datetime as dt
from collections.abc import Sequence

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from winnow.storage.models import (
    Dataset,
    Example,
)
from winnow.storage.records.values import (
    NewExample,
)


def ensure_dataset(
    session: Session,
    *,
    fingerprint: str,
    name: str,
    path: str,
    examples: Sequence[NewExample],
    now: dt.datetime,
) -> int:
    """The id of the dataset with this content, stored now unless it already was."""
    found = session.scalar(select(Dataset.id).where(Dataset.fingerprint == fingerprint))
    if found is not None:
        return found
    dataset = Dataset(fingerprint=fingerprint, name=name, path=path, n_examples=len(examples), created_at=now)
    session.add(dataset)
    session.flush()
    rows = [
        {
            "dataset_id": dataset.id,
            "position": position,
            "key": example.key,
            "fields": dict(example.fields),
            "targets": list(example.targets),
        }
        for position, example in enumerate(examples)
    ]
    session.execute(insert(Example), rows)
    return dataset.id


def example_ids(session: Session, dataset_id: int) -> list[int]:
    """Ids of a dataset's examples, by position."""
    return list(
        session.scalars(select(Example.id).where(Example.dataset_id == dataset_id).order_by(Example.position))
    )


def example_keys(session: Session, dataset_id: int) -> list[str]:
    """Keys of a dataset's examples, by position."""
    found = select(Example.key).where(Example.dataset_id == dataset_id).order_by(Example.position)
    return list(session.scalars(found))


def examples(session: Session, dataset_id: int) -> list[NewExample]:
    """The content of a dataset, by position."""
    rows = session.execute(
        select(Example.key, Example.fields, Example.targets)
        .where(Example.dataset_id == dataset_id)
        .order_by(Example.position)
    )
    return [NewExample(key=key, fields=fields, targets=targets) for key, fields, targets in rows]

"""Stored datasets and their examples, by position."""

import datetime as dt
import json
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from winnow.storage.engine.raw_sql import ROWS_AT_ONCE, insert_rows, run
from winnow.storage.json_types import JsonView
from winnow.storage.models import Dataset, Example, table_of
from winnow.storage.records.record_types import ExampleContent, NewExample


def ensure_dataset(
    session: Session,
    *,
    fingerprint: str,
    name: str,
    path: str,
    examples: Sequence[ExampleContent],
    now: dt.datetime,
) -> int:
    """Id of the dataset with this content, stored now if it is new."""
    found = session.scalar(select(Dataset.id).where(Dataset.fingerprint == fingerprint))
    if found is not None:
        return found
    dataset = Dataset(fingerprint=fingerprint, name=name, path=path, n_examples=len(examples), created_at=now)
    session.add(dataset)
    session.flush()
    rows = (
        (dataset.id, position, each.key, dict(each.fields), _digest(each.fields), list(each.targets))
        for position, each in enumerate(examples)
    )
    columns = ("dataset_id", "position", "key", "fields", "input_digest", "targets")
    insert_rows(session.connection(), table_of(Example), columns, rows)
    return dataset.id


def _digest(shown: JsonView) -> str:
    """Compute `Example.input_digest`."""
    value = json.dumps(shown.get("input"), sort_keys=True)
    return sha256(value.encode()).hexdigest()[:32]


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
    return list(each_example(session, dataset_id))


def each_example(session: Session, dataset_id: int) -> Iterator[NewExample]:
    """Yield the examples of a dataset, in bounded memory."""
    connection, position = session.connection(), 0
    while rows := run(connection, _PORTION, (dataset_id, position, position + ROWS_AT_ONCE)):
        keys, fields, targets = zip(*rows, strict=True)
        for key, shown, accepted in zip(keys, _values(fields), _values(targets), strict=True):
            yield NewExample(key=key, fields=shown, targets=accepted)
        position += ROWS_AT_ONCE


def fields_by_id(session: Session, dataset_id: int) -> dict[int, JsonView]:
    """Fields of examples for prompts, by example id, in the order of positions."""
    statement = "SELECT id, CAST(fields AS TEXT) FROM examples WHERE dataset_id = ? ORDER BY position"
    rows = run(session.connection(), statement, (dataset_id,))
    if not rows:
        return {}
    ids, fields = zip(*rows, strict=True)
    return dict(zip(ids, _values(fields), strict=True))


_PORTION = """
    SELECT key, CAST(fields AS TEXT), CAST(targets AS TEXT) FROM examples
    WHERE dataset_id = ? AND position >= ? AND position < ? ORDER BY position
"""


def _values(documents: Sequence[str]) -> Sequence[Any]:
    """Parse JSON documents together.

    Unlike separate parsing, as in PostgreSQL's driver, the objects then share the strings of their keys, and
    the parser is called once.
    """
    values: list[Any] = json.loads(f"[{','.join(documents)}]")
    return values

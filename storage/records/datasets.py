"""Stored datasets with their examples, by position.

The module also stores digests of large files as last read.
"""

import datetime as dt
import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from winnow.storage.engine.raw_sql import ROWS_AT_ONCE, insert_rows, run
from winnow.storage.engine.row_digests import COLUMN, row_digest
from winnow.storage.json_types import JsonView
from winnow.storage.models import Dataset, Example, FileDigest, table_of
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
    """Id of the dataset with this content; stores the dataset if it is new."""
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
    """`Example.input_digest` of the fields of an example."""
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
    """Yield the examples of a dataset by position, in bounded memory."""
    connection, position = session.connection(), 0
    while rows := run(connection, _PORTION, (dataset_id, position, position + ROWS_AT_ONCE)):
        keys, fields, targets = zip(*rows, strict=True)
        for key, shown, accepted in zip(keys, _values(fields), _values(targets), strict=True):
            yield NewExample(key=key, fields=shown, targets=accepted)
        position += ROWS_AT_ONCE


def fields_by_id(session: Session, dataset_id: int) -> dict[int, JsonView]:
    """Fields that prompts can use, by example id, in the order of positions."""
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

    The objects then share the strings of their keys, and the parser is called once. PostgreSQL's driver would
    parse them separately.
    """
    values: list[Any] = json.loads(f"[{','.join(documents)}]")
    return values


class FileState(NamedTuple):
    """State of a file in its file system; every write to the file changes it."""

    path: str
    """Absolute, without symbolic links."""
    size: int
    """Size in bytes."""
    modified_ns: int
    """Time of the last change of its content, in nanoseconds since 1970.
    Programs can set it."""
    changed_ns: int
    """Time of the last change of its content or its directory entry.
    Programs cannot set it."""
    inode: int


def stored_digests(session: Session) -> dict[FileState, str]:
    """SHA-256 of each file in the state when it was last read, hexadecimal."""
    rows = session.scalars(select(FileDigest))
    return {
        FileState(
            path=row.path,
            size=row.size,
            modified_ns=row.modified_ns,
            changed_ns=row.changed_ns,
            inode=int(row.inode),
        ): row.sha256
        for row in rows
    }


def store_digests(session: Session, digests: Mapping[FileState, str]) -> None:
    """Store the current digests of files; they replace earlier ones."""
    rows = (
        {
            "place": sha256(state.path.encode("utf-8", "surrogateescape")).hexdigest(),
            "path": state.path.encode("utf-8", "replace").decode(),
            "size": state.size,
            "modified_ns": state.modified_ns,
            "changed_ns": state.changed_ns,
            "inode": str(state.inode),
            "sha256": digest,
        }
        for state, digest in digests.items()
    )
    table = table_of(FileDigest)
    with_digests = [{**row, COLUMN: row_digest(table, tuple(row), tuple(row.values()))} for row in rows]
    if with_digests:
        session.execute(text(_STORE), with_digests)


_STORE = """
    INSERT INTO file_digests (place, path, size, modified_ns, changed_ns, inode, sha256, row_digest)
    VALUES (:place, :path, :size, :modified_ns, :changed_ns, :inode, :sha256, :row_digest)
    ON CONFLICT (place) DO UPDATE SET path = excluded.path, size = excluded.size,
        modified_ns = excluded.modified_ns, changed_ns = excluded.changed_ns,
        inode = excluded.inode, sha256 = excluded.sha256, row_digest = excluded.row_digest
"""

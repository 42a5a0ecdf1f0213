"""Counts of the rows that are stored outside rounds.

`winnow db check` detects lost rows by them. Labels, annotations, loading times and similar rows are stored
one by one, and no round's digest covers them. Each belongs to an owner, a row that was stored before: a
dataset, a campaign or a round. The count of an owner's rows is stored with the owner's digest, and changes in
the transaction that stores a row. Only one transaction writes at a time, so no change is lost. An owner that
was stored before counts were introduced gets a count of all its rows when its next row is stored; until then
its rows are not covered.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from sqlalchemy import Connection
from sqlalchemy.orm import Session

from winnow.storage.engine.raw_sql import run
from winnow.storage.engine.row_digests import COLUMN, RowCount, count_in, count_of, counted, with_count

_ROWS: dict[str, dict[str, tuple[str, str, str]]] = {
    "datasets": {
        "labels": ("e.dataset_id", "t.id", "labels t JOIN examples e ON e.id = t.example_id"),
        "campaigns": ("t.dataset_id", "t.id", "campaigns t"),
        "pruned_campaigns": ("t.dataset_id", "t.campaign_id", "pruned_campaigns t"),
    },
    "campaigns": {
        "candidates": ("t.campaign_id", "t.id", "candidates t"),
        "stream_batches": ("t.campaign_id", "t.id", "stream_batches t"),
        "model_loads": ("t.campaign_id", "t.id", "model_loads t"),
        "canaries": ("t.campaign_id", "t.id", "canaries t"),
    },
    "rounds": {
        "annotation_tasks": ("t.round_id", "t.id", "annotation_tasks t"),
        "annotations": (
            "k.round_id",
            "t.task_id",
            "annotations t JOIN annotation_tasks k ON k.id = t.task_id",
        ),
        "generations": ("t.round_id", "t.id", "generations t"),
    },
}
"""Tables of owners, and for each the tables of its rows.
Each of these has the columns of owner and key, and the rows."""


def add_to_count(
    connection: Connection, owners: str, owner_id: int, table: str, ids: Sequence[int], *, gone: bool = False
) -> None:
    """Update an owner's count for rows that this transaction stored or deleted.

    Args:
        connection: Writes; the rows were stored or deleted already.
        owners: Table of the owner.
        owner_id: Id of the owner.
        table: Table of the rows.
        ids: Primary keys of the rows.
        gone: Whether the rows were deleted.
    """
    if not ids:
        return
    ((stored,),) = run(connection, f"SELECT {COLUMN} FROM {owners} WHERE id = ?", (owner_id,))
    if (before := count_in(stored)) is None:
        count = _all_of(connection, owners, owner_id)
    else:
        change = count_of(table, ids)
        count = counted(before) + (-change if gone else change)
    values = (with_count(stored, count), owner_id)
    run(connection, f"UPDATE {owners} SET {COLUMN} = ? WHERE id = ?", values)


def _all_of(connection: Connection, owners: str, owner_id: int) -> RowCount:
    """Count of all stored rows of an owner."""
    found = RowCount()
    for table, (owner, key, rows) in _ROWS[owners].items():
        ids = run(connection, f"SELECT {key} FROM {rows} WHERE {owner} = ?", (owner_id,))
        found += count_of(table, (id_ for (id_,) in ids))
    return found


def wrong_counts(session: Session) -> list[str]:
    """A sentence for each owner whose rows differ from its stored count."""
    return [each for owners in _ROWS for each in _wrong(session.connection(), owners)]


def _wrong(connection: Connection, owners: str) -> Iterator[str]:
    stored = {id_: count for id_, count in _stored(connection, owners) if count is not None}
    there = dict.fromkeys(stored, RowCount())
    for table, (owner, key, of_owners) in _ROWS[owners].items():
        ids = defaultdict[int, list[int]](list)
        for owner_id, id_ in run(connection, f"SELECT {owner}, {key} FROM {of_owners}"):
            ids[owner_id].append(id_)
        for owner_id in ids.keys() & there.keys():
            there[owner_id] += count_of(table, ids[owner_id])
    *tables, last = _ROWS[owners]
    for owner_id, count in stored.items():
        if str(there[owner_id]) != count:
            yield (
                f"rows of {', '.join(tables)} or {last} were lost, or added, for row {owner_id} of {owners}: "
                f"{_rows_in(count)} were stored, and {there[owner_id].rows:,} exist"
            )


def uncounted(session: Session) -> int:
    """Number of owners that have rows but no stored count.

    Their rows were all stored before counts were introduced.
    """
    connection, found = session.connection(), 0
    for owners, tables in _ROWS.items():
        with_rows = {
            id_
            for owner, _, rows in tables.values()
            for (id_,) in run(connection, f"SELECT DISTINCT {owner} FROM {rows}")
        }
        found += sum(count is None and id_ in with_rows for id_, count in _stored(connection, owners))
    return found


def _stored(connection: Connection, owners: str) -> list[tuple[int, str | None]]:
    rows = run(connection, f"SELECT id, {COLUMN} FROM {owners} ORDER BY id")
    return [(id_, count_in(digest)) for id_, digest in rows]


def _rows_in(count: str) -> str:
    try:
        return f"{counted(count).rows:,}"
    except ValueError:
        return "an unreadable number"

"""Digests of stored rows, by which `winnow db check` detects accidental changes.

An immutable row has its own digest. A round has one over all its rows, see `storage.records.rounds`.

Values are digested as they are stored: changes that a database would make (a zero's sign, NUL in a text) are
made first, so that copies in another kind of database have the same digests.

They detect flipped bits, lost rows and manual changes. They do not detect forgery, because anyone who changes
a row can recompute its digest.
"""

import datetime as dt
import json
from collections.abc import Callable, Iterable, Sequence
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any

from sqlalchemy import JSON, Boolean, DateTime, Float, Integer, LargeBinary, Table
from sqlalchemy.types import TypeEngine

from winnow.storage.text import storable

COLUMN = "row_digest"
"""Column of the tables whose rows have digests; NULL in rows stored before digests were introduced."""

LENGTH = 32
"""Hexadecimal digits: 128 bits, because accidental changes do not search for collisions."""

MUTABLE = {
    "generations": {"round_id"},
    "canaries": {"campaign_id"},
    "annotation_tasks": {"held_by", "held_at"},
}
"""Columns of stored rows that can change: the payer of an output, or the campaign of a canary, can be
deleted, and a task can be shown to somebody else. SQLite compares the first two with their indexes."""

Plain = Callable[[Any], object]


_as_json = json.JSONEncoder(sort_keys=True).encode


def digest(content: object) -> str:
    """Compute the digest of JSON values."""
    return sha256(_as_json(content).encode()).hexdigest()[:LENGTH]


def row_digest(table: Table, columns: Sequence[str], row: Sequence[object]) -> str:
    """Compute the digest of a row; see `digests_of_rows`."""
    return digests_of_rows(table, columns, [row])[0]


def digests_of_rows(table: Table, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Compute the digests of rows of a table with a digest column.

    Args:
        table: The table.
        columns: Names of the given columns; all others are None.
        rows: Their values, in the types of the model's attributes or of a driver.
    """
    by_column = list(zip(*rows, strict=True))
    lacking = (None,) * len(rows)
    given = (
        lacking if place is None else _plains(plain, by_column[place])
        for place, plain in _given(table, tuple(columns))
    )
    return [digest(row) for row in zip(*given, strict=True)]


def values_of(table: Table, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[object]:
    """Convert rows to JSON values that are equal for all databases, and before and after storing."""
    by_row = list(rows)
    if not by_row:
        return []
    plain = _plain_of(table, tuple(columns))
    by_column = map(_plains, plain, zip(*by_row, strict=True))
    return [list(row) for row in zip(*by_column, strict=True)]


def _plains(plain: Plain, values: Sequence[object]) -> Sequence[object]:
    """The values of a column in JSON; in many columns all are the same, which are made only once."""
    first = values[0]
    # Of equal objects one may say 1 and another 1.0.
    if (first is None or plain is not _json) and values.count(first) == len(values):
        return [plain(first)] * len(values)
    return list(map(plain, values))


@cache
def _plain_of(table: Table, columns: tuple[str, ...]) -> list[Plain]:
    return [_plain(table.c[name].type) for name in columns]


@cache
def _given(table: Table, columns: tuple[str, ...]) -> list[tuple[int | None, Plain]]:
    """Position of each digested column among the given columns; None if it is not given."""
    places = {name: place for place, name in enumerate(columns)}
    return [(places.get(name), plain) for name, plain in _digested(table)]


@cache
def _digested(table: Table) -> list[tuple[str, Plain]]:
    left_out = {"id", COLUMN, *MUTABLE.get(table.name, ())}
    return [(each.name, _plain(each.type)) for each in table.columns if each.name not in left_out]


def digested_columns(table: Table) -> list[str]:
    """Names of the columns of a table that its row digests cover."""
    return [name for name, _ in _digested(table)]


def _plain(type_: TypeEngine[Any]) -> Plain:
    """Function that converts a column's value to JSON, before storing or as a driver returns it."""
    kind = getattr(type_, "impl", type_)  # unwraps Winnow's own types
    for each, plain in _KINDS:
        if isinstance(kind, each):
            return plain
    return _text


def _json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value  # all JSON columns hold objects and arrays


def _number(value: float | None) -> object:
    if value is None or value != value:  # NaN
        return None
    return float(value) + 0.0


def _whole(value: int | None) -> object:
    return None if value is None else int(value)


def _truth(value: object) -> object:
    return None if value is None else bool(value)


@lru_cache(maxsize=256)  # all rows of a group have the same time
def _moment(value: dt.datetime | str | None) -> object:
    if value is None:
        return None
    moment = dt.datetime.fromisoformat(value) if isinstance(value, str) else value
    in_utc = moment.replace(tzinfo=dt.UTC) if moment.tzinfo is None else moment.astimezone(dt.UTC)
    return in_utc.isoformat()


def _bytes(value: bytes | None) -> object:
    return None if value is None else bytes(value).hex()


def _text(value: str | None) -> object:
    return None if value is None else storable(value)


_KINDS: tuple[tuple[type[TypeEngine[Any]], Plain], ...] = (
    (JSON, _json),
    (Boolean, _truth),
    (Float, _number),
    (Integer, _whole),
    (DateTime, _moment),
    (LargeBinary, _bytes),
)

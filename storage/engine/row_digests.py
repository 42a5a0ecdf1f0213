"""Digests of stored rows, by which `winnow db check` detects accidental changes.

An immutable row has its own digest. A round has a digest over all its rows, see `storage.records.rounds`.

Values are digested in stored form: changes that a database makes (a zero's sign, NUL in a text) are applied
first, so that copies in another kind of database have the same digests.

If rows are added to an owner later, outside rounds, their count is stored with the owner's digest; see
`RowCount` and `storage.records.row_counts`.

Digests detect flipped bits, lost rows and manual changes. They do not detect forgery, because anyone who
changes a row can recompute its digest.
"""

import datetime as dt
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    ColumnElement,
    DateTime,
    Float,
    Integer,
    LargeBinary,
    Table,
    case,
    func,
    literal,
)
from sqlalchemy.types import TypeEngine

from winnow.storage.text import storable

COLUMN = "row_digest"
"""Column of the tables whose rows have digests.
NULL in rows stored before digests were introduced."""

LENGTH = 32
"""Number of hexadecimal digits of a digest.
128 bits suffice, because accidental changes do not search for collisions."""

MUTABLE = {
    "generations": {"round_id"},
    "canaries": {"campaign_id"},
    "annotation_tasks": {"held_by", "held_at"},
}
"""Columns of stored rows that can change, by table.
The payer of an output, or the campaign of a canary, can be deleted, and a task can be shown to another
annotator. SQLite compares the first two with their indexes."""

Plain = Callable[[Any], object]


_as_json = json.JSONEncoder(sort_keys=True).encode


def digest(content: object) -> str:
    """Digest of JSON values."""
    return sha256(_as_json(content).encode()).hexdigest()[:LENGTH]


def row_digest(table: Table, columns: Sequence[str], row: Sequence[object]) -> str:
    """Digest of a row; see `digests_of_rows`."""
    return digests_of_rows(table, columns, [row])[0]


def digests_of_rows(table: Table, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Digests of rows of a table with a digest column.

    Columns that are not in `columns` are None. Values have the types of the model's attributes or of a
    driver.
    """
    by_column = list(zip(*rows, strict=True))
    lacking = (None,) * len(rows)
    given = (
        lacking if place is None else _plains(plain, by_column[place])
        for place, plain in _places_of(table, tuple(columns))
    )
    return [digest(row) for row in zip(*given, strict=True)]


def values_of(table: Table, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[object]:
    """Rows as JSON values that are equal for all databases.

    They are also equal before and after storing.
    """
    by_row = list(rows)
    if not by_row:
        return []
    plain = _plain_of(table, tuple(columns))
    by_column = map(_plains, plain, zip(*by_row, strict=True))
    return [list(row) for row in zip(*by_column, strict=True)]


def _plains(plain: Plain, values: Sequence[object]) -> Sequence[object]:
    """JSON values of a column.

    If all values are equal, one value is converted only once.
    """
    first = values[0]
    # Equal JSON objects can differ in form, such as 1 and 1.0, so they are converted one by one.
    if (first is None or plain is not _json) and values.count(first) == len(values):
        return [plain(first)] * len(values)
    return list(map(plain, values))


@cache
def _plain_of(table: Table, columns: tuple[str, ...]) -> list[Plain]:
    return [_plain(table.c[name].type) for name in columns]


@cache
def _places_of(table: Table, columns: tuple[str, ...]) -> list[tuple[int | None, Plain]]:
    """Position of each digested column among `columns`, with its conversion.

    The position is None if the column is not among them.
    """
    places = {name: place for place, name in enumerate(columns)}
    return [(places.get(name), plain) for name, plain in _digested(table)]


@cache
def _digested(table: Table) -> list[tuple[str, Plain]]:
    left_out = {"id", COLUMN, *MUTABLE.get(table.name, ())}
    return [(each.name, _plain(each.type)) for each in table.columns if each.name not in left_out]


OWN = 12
"""Number of digits of a row's own digest if a count is stored with it."""

COUNT = "+"
"""Separates digest and count; not a digit."""

NOT_DIGESTED = "-" * OWN
"""Replaces the own digest of a row stored before digests were introduced."""


@dataclass(frozen=True, slots=True)
class RowCount:
    """Number of rows, and the sum of the digests of their keys.

    The sum does not depend on the order of the rows.
    """

    rows: int = 0
    keys: int = 0

    def __add__(self, other: "RowCount") -> "RowCount":
        """Count of the rows of both."""
        return RowCount(self.rows + other.rows, (self.keys + other.keys) % 16**12)

    def __neg__(self) -> "RowCount":
        """The negated count; added to the original, it gives 0."""
        return RowCount(-self.rows, -self.keys)

    def __str__(self) -> str:
        """19 digits, which with the own digest and the separator fill the column."""
        return f"{self.rows:07x}{self.keys:012x}"


def count_of(table: str, ids: Iterable[int]) -> RowCount:
    """Count of rows of a table, given by their ids."""
    keys = [int(sha256(f"{table} {id_}".encode()).hexdigest()[:12], 16) for id_ in ids]
    return RowCount(len(keys), sum(keys) % 16**12)


def with_count(stored: str | None, count: RowCount) -> str:
    """A row's own digest with a count, which replaces an earlier count."""
    return f"{NOT_DIGESTED if stored is None else stored[:OWN]}{COUNT}{count}"


def count_in(stored: str | None) -> str | None:
    """Count stored with a row's own digest, in stored form; None without a count."""
    return stored[OWN + 1 :] if stored is not None and stored[OWN : OWN + 1] == COUNT else None


def counted(count: str) -> RowCount:
    """Parse a stored count.

    Raises:
        ValueError: If the text is not a count.
    """
    return RowCount(int(count[:7], 16), int(count[7:], 16))


def is_own(stored: str, computed: str) -> bool:
    """Whether a stored digest matches the computed digest of a row.

    The stored digest may have a count.
    """
    if count_in(stored) is None:
        return stored == computed
    return stored[:OWN] in (computed[:OWN], NOT_DIGESTED)


def with_stored_count(column: Column[str], own: str) -> ColumnElement[str]:
    """A row's new own digest, with the count of the stored digest.

    The result is an SQL expression for UPDATE.
    """
    has_count = func.substr(column, OWN + 1, 1) == COUNT
    return case((has_count, literal(own[:OWN]).concat(func.substr(column, OWN + 1))), else_=own)


def digested_columns(table: Table) -> list[str]:
    """Names of the columns of a table that its row digests cover."""
    return [name for name, _ in _digested(table)]


def _plain(type_: TypeEngine[Any]) -> Plain:
    """Function that converts a column's value to JSON.

    The value is one before storing, or as a driver returns it.
    """
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

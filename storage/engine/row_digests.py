"""Digests of what is stored, by which `winnow db check` notices accidents.

A row that stays as it was written has a digest of its own. A round has one over all its rows, see
`storage.records.round_digests`.
Values are digested as they are stored: what a database would change (a zero's sign, NUL in a text) is changed
first, so that the rows of a copy in another kind of database have the same digests.

They find bits that flip, rows that are lost and changes by hand. They do not find forgery: whoever changes a
row can compute its digest again.
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
"""Column of the tables whose rows have digests of their own; NULL in rows that are older than that."""

LENGTH = 32
"""Hexadecimal digits: 128 bits, as accidents do not look for collisions."""

MUTABLE = {"generations": {"round_id"}, "canaries": {"campaign_id"}}
"""Columns that may change once a row is stored: who paid for a text, or asked, may be deleted."""

Plain = Callable[[Any], object]


_as_json = json.JSONEncoder(sort_keys=True).encode


def digest(content: object) -> str:
    """The digest of JSON values."""
    return sha256(_as_json(content).encode()).hexdigest()[:LENGTH]


def row_digest(table: Table, columns: Sequence[str], row: Sequence[object]) -> str:
    """The digest of a row of a table that has the column for it.

    Args:
        table: The table.
        columns: Names of the columns that are given; all others are None.
        row: Their values, as the model's attributes take them or as a driver gives them.
    """
    given = _given(table, tuple(columns))
    return digest([None if place is None else plain(row[place]) for place, plain in given])


def values_of(table: Table, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> list[object]:
    """Rows as JSON values, the same whatever database they come from, and before they are stored."""
    by_row = list(rows)
    if not by_row:
        return []
    plain = _plain_of(table, tuple(columns))
    by_column = [
        list(map(each, column)) for each, column in zip(plain, zip(*by_row, strict=True), strict=True)
    ]
    return [list(row) for row in zip(*by_column, strict=True)]


@cache
def _plain_of(table: Table, columns: tuple[str, ...]) -> list[Plain]:
    return [_plain(table.c[name].type) for name in columns]


@cache
def _given(table: Table, columns: tuple[str, ...]) -> list[tuple[int | None, Plain]]:
    """For each digested column its position among these, None where it is none of them."""
    places = {name: place for place, name in enumerate(columns)}
    return [(places.get(name), plain) for name, plain in _digested(table)]


@cache
def _digested(table: Table) -> list[tuple[str, Plain]]:
    left_out = {"id", COLUMN, *MUTABLE.get(table.name, ())}
    return [(each.name, _plain(each.type)) for each in table.columns if each.name not in left_out]


def digested_columns(table: Table) -> list[str]:
    """Names of the columns of a table that the digests of its rows are over."""
    return [name for name, _ in _digested(table)]


def _plain(type_: TypeEngine[Any]) -> Plain:
    """The function that makes JSON of a value of a column, before it is stored or as a driver gives it."""
    kind = getattr(type_, "impl", type_)  # of a type of Winnow's own
    for each, plain in _KINDS:
        if isinstance(kind, each):
            return plain
    return _text


def _json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value  # all are objects and arrays


def _number(value: float | None) -> object:
    if value is None or value != value:  # NaN
        return None
    return float(value) + 0.0


def _whole(value: int | None) -> object:
    return None if value is None else int(value)


def _truth(value: object) -> object:
    return None if value is None else bool(value)


@lru_cache(maxsize=256)  # one moment is in all rows of a group
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

"""Dotted names of fields inside objects: `turns.0.content`.

`answers.text` is the key `text` of the column `answers`. A column whose own name contains a dot takes
precedence. In a list of objects, a name selects the values of all entries, and a number selects one entry.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import Final

from winnow.storage.json_types import JsonObject, JsonView
from winnow.tasks.errors import unknown_name


class Missing(Enum):
    """The type of `MISSING`."""

    MISSING = "missing"


MISSING: Final = Missing.MISSING
"""Result for a missing field, because null is a possible value."""


def value_of(row: JsonView, name: str) -> object:
    """The value of a field; `MISSING` if the field is missing.

    The parts of null and of `{}` are null.
    """
    if name in row:
        return row[name]
    for column, rest in _splits(name):
        if column in row and (found := _inside(row[column], rest)) is not MISSING:
            return found
    return MISSING


def without(row: JsonView, name: str) -> JsonObject:
    """A copy of the row without a field; the field is removed from its object."""
    if name in row:
        return {key: value for key, value in row.items() if key != name}
    for column, rest in _splits(name):
        if column in row and _inside(row[column], rest) is not MISSING:
            return {**row, column: _cut(row[column], rest)}
    return dict(row)


def column_of(name: str, columns: Collection[str]) -> str | None:
    """The column that contains a field; None if no column does."""
    return next((each for each in (name, *(column for column, _ in _splits(name))) if each in columns), None)


def unknown_field(kind: str, name: str, rows: Iterable[JsonView]) -> str:
    """The error message for a field that no row has.

    If the keys of the field's object are known, the message lists them.

    Args:
        kind: The word for such a name, such as "field".
        name: The name.
        rows: Rows without the field.
    """
    columns: dict[str, None] = {}
    inner: dict[str, None] = {}
    for row in rows:
        columns |= dict.fromkeys(row)
        for column, _ in _splits(name):
            if isinstance(held := value_of(row, column), Mapping):
                inner |= dict.fromkeys(f"{column}.{key}" for key in held)
                break
    return unknown_name(kind, name, inner or columns)


def _splits(name: str) -> Iterator[tuple[str, str]]:
    """Yield ways to split a name into a column and a path in it, longest column first."""
    at = name.rfind(".")
    while at > 0:
        yield name[:at], name[at + 1 :]
        at = name.rfind(".", 0, at)


def _inside(value: object, name: str) -> object:
    if value is None or value == {}:
        return None
    if isinstance(value, Mapping):
        return value_of(value, name)
    if not isinstance(value, list):
        return MISSING
    first, _, rest = name.partition(".")
    if first.isascii() and first.isdigit():
        if int(first) >= len(value):
            return MISSING
        return _inside(value[int(first)], rest) if rest else value[int(first)]
    found = [_inside(each, name) for each in value]
    return MISSING if MISSING in found else found


def _cut(value: object, name: str) -> object:
    if isinstance(value, Mapping):
        return without(value, name)
    if not isinstance(value, list):
        return value
    first, _, rest = name.partition(".")
    if not (first.isascii() and first.isdigit()):
        return [_cut(each, name) for each in value]
    place = int(first)
    cut = [_cut(value[place], rest)] if rest else []
    return [*value[:place], *cut, *value[place + 1 :]]

"""Datasets: the examples that every candidate is tried on."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from heapq import nsmallest
from itertools import islice
from pathlib import Path
from typing import Self

import orjson

from winnow.storage.json_types import JsonView, Row
from winnow.tasks.candidates.sandboxed_templates import compile_condition, holds
from winnow.tasks.data.dataset_files import PATH_KEY, PlacedRow, is_plain, other_separator, read_files
from winnow.tasks.data.garbage_collection import not_collecting
from winnow.tasks.errors import DatasetError, unknown_name

ROLES = ("id", "input", "target")
KEY_DIGITS = 16  # hexadecimal: two different rows of a million share a key with probability below 1e-7

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
"""One encoder for all rows: `json.dumps` makes one for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One row: what a prompt may show, and what the answer should be."""

    key: str
    """Unique in its dataset: the row's id, or a hash of its content."""
    fields: Mapping[str, object]
    """The values that templates see: every column but the target's, as JSON values, and `input`."""
    targets: tuple[str, ...]
    """The accepted answers; empty where there is none."""

    @property
    def question(self) -> str:
        """The input as a judge reads it; JSON where it is not text."""
        asked = self.fields["input"]
        return asked if isinstance(asked, str) else json.dumps(asked, ensure_ascii=False)


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Examples in the order of their source, or of a shuffle."""

    name: str
    """The first file's name without its suffix, or what the source is called elsewhere."""
    path: str
    """The source as the spec names it."""
    examples: tuple[Example, ...]
    """At least one, with different keys."""
    fingerprint: str
    """SHA-256 in hexadecimal of all keys, fields and targets in order; the file's format does not matter."""

    @cached_property
    def field_names(self) -> tuple[str, ...]:
        """The fields that every example has, so that a template with these alone can always be rendered."""
        common = set(self.examples[0].fields)
        for example in self.examples:
            if not common <= example.fields.keys():  # most have the same
                common &= example.fields.keys()
        return tuple(sorted(common))

    @cached_property
    def without_targets(self) -> tuple[Example, ...]:
        """The examples that have no target."""
        return tuple(each for each in self.examples if not each.targets)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The choice and the order of the rows of a source that become examples; applied from top to bottom."""

    filter: str | None = None
    """A jinja2 expression over the columns of a row, which is left out where it does not hold."""
    limit: int | None = None
    """Only the first so many rows are read and checked; all where there are fewer."""
    sample: tuple[int, int] | None = None
    """Number of rows that are drawn, none of them twice, and the seed; all rows where there are fewer. Those
    whose keys, hashed with the seed, come first: neither their order nor the version of a library decides."""
    shuffle: int | None = None
    """Seed: the order is that of the keys hashed with it."""


def load_dataset(path: str | Path, fields: Mapping[str, str | None], limit: int | None = None) -> Dataset:
    """The dataset in one or more .jsonl, .json, .csv or .parquet files.

    Args:
        path: The file, or a pattern of several; a relative path starts at the current directory.
        fields: See `dataset_of`.
        limit: Only the first so many rows are read and checked; all where there are fewer.

    Raises:
        DatasetError: One sentence that names the file, the line and the remedy.
    """
    selection = Selection(limit=limit)
    return dataset_of(read_files([str(path)]), fields, selection, name=Path(path).stem, path=str(path))


def read_examples(path: str, fields: Mapping[str, str | None]) -> list[Example]:
    """The rows of one or more files as examples; as people ask the same again, two may be the same.

    Args:
        path: See `load_dataset`.
        fields: See `dataset_of`.

    Raises:
        DatasetError: One sentence that names the file, the line and the remedy.
    """
    reader = _RowReader.of(_columns(fields))
    if not (examples := [reader.example(place, row) for place, row in read_files([path])]):
        raise _without_rows(path)
    return examples


def dataset_of(
    rows: Iterable[PlacedRow],
    fields: Mapping[str, str | None],
    selection: Selection,
    *,
    name: str,
    path: str,
) -> Dataset:
    """The dataset that rows come to; no more of them are held than are taken.

    Args:
        rows: Each with its place, for errors.
        fields: Column names of the roles `id`, `input` and `target`. Without `id` the key of an example is a
            hash of its row, without `input` its column is "input", without `target` there are no targets.
            A target may be text, a number or a list of these; null and empty text are no target.
        selection: The part of them that is taken.
        name: See `Dataset`.
        path: See `Dataset`.

    Raises:
        DatasetError: One sentence that names the place and the remedy.
    """
    columns = _columns(fields)
    if selection.limit is not None and selection.limit < 1:
        raise DatasetError(f"limit must be at least 1, got {selection.limit}", "dataset.limit")
    reader = _RowReader.of(columns)
    found = ((place, reader.example(place, row)) for place, row in _first(rows, selection))
    with not_collecting():
        examples, fingerprint = _gathered(columns, _selected(found, selection))
    if not examples and selection.filter is not None:
        raise DatasetError(
            f"{path} has no rows for which {selection.filter} holds; change it", "dataset.filter"
        )
    if not examples:
        raise _without_rows(path)
    return Dataset(name=name, path=path, examples=tuple(examples), fingerprint=fingerprint)


def _without_rows(path: str) -> DatasetError:
    return DatasetError(f"{path} has no rows; add some", PATH_KEY)


def _gathered(columns: Mapping[str, str], placed: Iterable[tuple[str, Example]]) -> tuple[list[Example], str]:
    """The examples and their fingerprint, in one pass: of a row that is not kept, nothing is."""
    examples: list[Example] = []
    first: dict[str, str] = {}
    digest = hashlib.sha256()
    for place, example in placed:
        if example.key in first:
            raise _repeated(columns, example.key, first[example.key], place)
        first[example.key] = place
        content = [example.key, example.fields, example.targets]
        digest.update(_storable(place, content, example.fields) + b"\n")
        examples.append(example)
    return examples, digest.hexdigest()


def _repeated(columns: Mapping[str, str], key: str, first: str, place: str) -> DatasetError:
    sentence = (
        f"the id {key!r} stands twice; ids must be different"
        if "id" in columns
        else "the rows are the same; remove one, or map id to a column that tells them apart"
    )
    return DatasetError(f"{first} and {place}: {sentence}", "dataset.fields.id")


def _first(rows: Iterable[PlacedRow], selection: Selection) -> Iterator[PlacedRow]:
    """The first rows that the filter leaves."""
    if selection.filter is not None:
        condition = compile_condition(selection.filter, "dataset.filter")
        rows = ((place, row) for place, row in rows if holds(condition, row, place))
    return islice(rows, selection.limit)


def _selected(found: Iterable[tuple[str, Example]], selection: Selection) -> Iterable[tuple[str, Example]]:
    """The sample, in the order of the rows or shuffled; all of them are passed on as they come."""
    placed = found if selection.sample is None else _sampled(found, *selection.sample)
    if selection.shuffle is None:
        return placed
    return sorted(placed, key=lambda each: _draw(selection.shuffle, each[1]))


def _sampled(found: Iterable[tuple[str, Example]], n: int, seed: int) -> list[tuple[str, Example]]:
    drawn = nsmallest(n, ((_draw(seed, each[1]), at, each) for at, each in enumerate(found)))
    return [each for _, each in sorted((at, each) for _, at, each in drawn)]


def _draw(seed: int | None, example: Example) -> str:
    return hashlib.sha256(_canonical([seed, example.key])).hexdigest()


def _columns(fields: Mapping[str, str | None]) -> dict[str, str]:
    for role in fields:
        if role not in ROLES:
            raise DatasetError(unknown_name("role", role, ROLES), f"dataset.fields.{role}")
    columns = {"input": "input"} | {role: column for role, column in fields.items() if column is not None}
    if "target" in columns and columns["target"] in (columns["input"], columns.get("id")):
        raise DatasetError(
            f"column {columns['target']!r} has another role too, and so the target would be shown to the "
            "models; give the target a column of its own",
            "dataset.fields.target",
        )
    return columns


@dataclass(frozen=True, slots=True)
class _RowReader:
    """Turns rows into examples; its complaints name the place."""

    columns: Mapping[str, str]
    needed: frozenset[str]
    """The columns by themselves."""

    @classmethod
    def of(cls, columns: Mapping[str, str]) -> Self:
        return cls(columns, frozenset(columns.values()))

    def example(self, place: str, row: Row) -> Example:
        if not row.keys() >= self.needed:
            raise self._lacking(place, row)
        if "id" in self.columns:
            key = self._key(place, row[self.columns["id"]])
        else:
            key = hashlib.sha256(_storable(place, row, row)).hexdigest()[:KEY_DIGITS]
        targets = self._targets(place, row[self.columns["target"]]) if "target" in self.columns else ()
        return Example(key=key, fields=self._fields(place, row), targets=targets)

    def _lacking(self, place: str, row: Row) -> DatasetError:
        role, column = next(each for each in self.columns.items() if each[1] not in row)
        remedy = other_separator(row)
        problem = f"no column {column!r}; {remedy}" if remedy else unknown_name("column", column, row)
        return DatasetError(f"{place}: {problem}", f"dataset.fields.{role}")

    def _key(self, place: str, value: object) -> str:
        if isinstance(value, str) and value and value.isprintable():  # as nearly all are
            return value
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise self._wrong(place, "id", value, "write text or a whole number")
        if "\0" in str(value):
            raise self._wrong(place, "id", value, "remove the character NUL, which databases do not keep")
        _storable(place, value, {"id": value})  # before anything is drawn by it
        return str(value)

    def _fields(self, place: str, row: Row) -> dict[str, object]:
        column = self.columns["input"]
        if row[column] is None:
            raise self._wrong(place, "input", None, "fill it in or remove the row")
        if column != "input" and "input" in row and self.columns.get("target") != "input":
            raise DatasetError(
                f"{place}: the file has a column 'input' as well as {column!r} in that role; "
                "rename one or map input to 'input'",
                "dataset.fields.input",
            )
        visible = dict(row)
        visible.pop(self.columns.get("target", ""), None)
        visible["input"] = row[column]
        return visible

    def _targets(self, place: str, value: object) -> tuple[str, ...]:
        if isinstance(value, str):
            return (value,) if value else ()
        values = value if isinstance(value, list) else [] if value is None else [value]
        for item in values:
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                raise self._wrong(place, "target", item, "write text, a number or a list of these")
        return tuple(str(item) for item in values if item != "")

    def _wrong(self, place: str, role: str, value: object, remedy: str) -> DatasetError:
        column, shown = self.columns[role], json.dumps(value)[:60]
        return DatasetError(
            f"{place}: the {role} in column {column!r} is {shown}; {remedy}",
            f"dataset.fields.{role}",
        )


def _storable(place: str, value: object, row: JsonView) -> bytes:
    """The value in its one spelling, which every database can hold; all of it but the row is text."""
    try:
        return _canonical_row(value) if is_plain(row) else _canonical(value)
    except UnicodeEncodeError as error:
        sentence = f"{error.object[error.start]!r} is half a character and cannot be stored; remove it"
    except RecursionError:
        sentence = "the row is nested too deeply; flatten it"
    raise DatasetError(f"{place}: {sentence}", PATH_KEY)


def _canonical_row(value: object) -> bytes:
    """The same as `_canonical`, in a tenth of its time; only for texts, whole numbers, booleans and null."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:  # more than 64 bits, or half a character
        return _canonical(value)


def _canonical(value: object) -> bytes:
    return _CANONICAL.encode(value).encode()

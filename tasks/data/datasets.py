"""Datasets: the examples that every candidate is tried on."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from winnow.storage.json_types import Row
from winnow.tasks.data.dataset_files import PATH_KEY, PlacedRow, read_rows
from winnow.tasks.errors import DatasetError
from winnow.tasks.spec.suggestions import unknown_name

ROLES = ("id", "input", "target")
KEY_DIGITS = 16  # hexadecimal: two different rows of a million share a key with probability below 1e-7


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """One row: what a prompt may show, and what the answer should be."""

    key: str
    """Unique in its dataset: the row's id, or a hash of its content."""
    fields: Mapping[str, object]
    """What templates see: every column but the target's, as JSON values, and `input`."""
    targets: tuple[str, ...]
    """The accepted answers; empty where there is none."""

    @property
    def question(self) -> str:
        """The input as a judge reads it; JSON where it is not text."""
        asked = self.fields["input"]
        return asked if isinstance(asked, str) else json.dumps(asked, ensure_ascii=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """Examples in the order of their file."""

    name: str
    """The file's name without its suffix."""
    path: str
    """The file as the spec names it."""
    examples: tuple[Example, ...]
    """At least one, with different keys."""
    fingerprint: str
    """SHA-256 in hexadecimal of all keys, fields and targets in order; the file's format does not matter."""

    @property
    def field_names(self) -> tuple[str, ...]:
        """The fields that every example has, so that a template with these alone can always be rendered."""
        common = set.intersection(*(set(example.fields) for example in self.examples))
        return tuple(sorted(common))


def load_dataset(path: str | Path, fields: Mapping[str, str | None], limit: int | None = None) -> Dataset:
    """The dataset in a .jsonl, .json, .csv or .parquet file.

    Args:
        path: The file; a relative path starts at the current directory.
        fields: Column names of the roles `id`, `input` and `target`. Without `id` the key of an example is a
            hash of its row, without `input` its column is "input", without `target` there are no targets.
            A target may be text, a number or a list of these; null and empty text are no target.
        limit: Only the first so many rows are read and checked; all where it is None or larger than the file.

    Raises:
        DatasetError: One sentence that names the file, the line and the remedy.
    """
    columns = _columns(fields)
    if limit is not None and limit < 1:
        raise DatasetError(f"limit must be at least 1, got {limit}", "dataset.limit")
    rows = list(islice(read_rows(Path(path)), limit))
    if not rows:
        raise DatasetError(f"{path} has no rows; add some", PATH_KEY)
    reader = _RowReader(str(path), columns)
    examples = tuple(reader.example(place, row) for place, row in rows)
    _refuse_repeated_keys(str(path), columns, rows, examples)
    return Dataset(
        name=Path(path).stem, path=str(path), examples=examples, fingerprint=_fingerprint(examples)
    )


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
    """Turns rows into examples; its complaints name the file and the place."""

    path: str
    columns: Mapping[str, str]

    def example(self, place: str, row: Row) -> Example:
        for role, column in self.columns.items():
            if column not in row:
                sentence = unknown_name("column", column, row)
                raise DatasetError(f"{self.path}, {place}: {sentence}", f"dataset.fields.{role}")
        digest = self._digest(place, row)
        key = self._key(place, row[self.columns["id"]]) if "id" in self.columns else digest[:KEY_DIGITS]
        targets = self._targets(place, row[self.columns["target"]]) if "target" in self.columns else ()
        return Example(key=key, fields=self._fields(place, row), targets=targets)

    def _digest(self, place: str, row: Row) -> str:
        try:
            return hashlib.sha256(_canonical(row)).hexdigest()
        except UnicodeEncodeError as error:
            sentence = f"{error.object[error.start]!r} is half a character and cannot be stored; remove it"
        except RecursionError:
            sentence = "the row is nested too deeply; flatten it"
        raise DatasetError(f"{self.path}, {place}: {sentence}", PATH_KEY)

    def _key(self, place: str, value: object) -> str:
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise self._wrong(place, "id", value, "write text or a whole number")
        if "\0" in str(value):
            raise self._wrong(place, "id", value, "remove the character NUL, which databases do not keep")
        return str(value)

    def _fields(self, place: str, row: Row) -> dict[str, object]:
        column = self.columns["input"]
        if row[column] is None:
            raise self._wrong(place, "input", None, "fill it in or remove the row")
        if column != "input" and "input" in row and self.columns.get("target") != "input":
            raise DatasetError(
                f"{self.path}, {place}: the file has a column 'input' as well as {column!r} in that role; "
                "rename one or map input to 'input'",
                "dataset.fields.input",
            )
        visible = {name: value for name, value in row.items() if name != self.columns.get("target")}
        return visible | {"input": row[column]}

    def _targets(self, place: str, value: object) -> tuple[str, ...]:
        values = value if isinstance(value, list) else [] if value is None else [value]
        for item in values:
            if isinstance(item, bool) or not isinstance(item, str | int | float):
                raise self._wrong(place, "target", item, "write text, a number or a list of these")
        return tuple(str(item) for item in values if item != "")

    def _wrong(self, place: str, role: str, value: object, remedy: str) -> DatasetError:
        column, shown = self.columns[role], json.dumps(value)[:60]
        return DatasetError(
            f"{self.path}, {place}: the {role} in column {column!r} is {shown}; {remedy}",
            f"dataset.fields.{role}",
        )


def _refuse_repeated_keys(
    path: str, columns: Mapping[str, str], rows: Iterable[PlacedRow], examples: Iterable[Example]
) -> None:
    first: dict[str, str] = {}
    for (place, _), example in zip(rows, examples, strict=True):
        if example.key in first:
            both = f"{path}, {first[example.key]} and {place}"
            sentence = (
                f"the id {example.key!r} stands twice; ids must be different"
                if "id" in columns
                else "the rows are the same; remove one, or map id to a column that tells them apart"
            )
            raise DatasetError(f"{both}: {sentence}", "dataset.fields.id")
        first[example.key] = place


def _fingerprint(examples: Iterable[Example]) -> str:
    digest = hashlib.sha256()
    for example in examples:
        digest.update(_canonical([example.key, example.fields, example.targets]) + b"\n")
    return digest.hexdigest()


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()

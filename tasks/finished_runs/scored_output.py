"""The outputs that every reader yields, the choice of what it reads, and files with one JSON object."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from winnow.storage.plain_files import read_text
from winnow.tasks.dotted_names import Missing, value_of
from winnow.tasks.errors import SpecError


class UnreadableRun(SpecError):
    """A file of results that cannot be read; the message names the file and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredOutput:
    """One output of a candidate with its score."""

    candidate: str
    example: str
    """Name of the example within its source, the same for all candidates."""
    score: float | None
    """The source's score, before `Choice.scale`; None if the output has no score."""
    output: str = ""
    input: str = ""
    targets: Sequence[str] = ()
    group: str = ""
    """The task that the example belongs to; empty if the source has one only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Selection of the numbers that are read from a file with several."""

    metric: str | None = None
    """Name of the score."""
    filter: str | None = None
    """lm-eval's filter of outputs."""
    candidate: str | None = None
    """Column, or dotted name, that identifies candidates."""
    example: str | None = None
    """Column, or dotted name, that identifies examples."""


class Reader(Protocol):
    """Reads one format."""

    name: str
    """Name of the format, as in `--format`."""

    def recognises(self, path: Path, row: Mapping[str, object]) -> bool:
        """Whether a file is of this format, by its name and its first object."""

    def read(self, path: Path, choice: Choice) -> Iterator[ScoredOutput]:
        """Yield all outputs of a file.

        Raises:
            UnreadableRun: If the file does not have the expected format, or lacks a requested name.
        """


def chosen(kind: str, names: Sequence[str], wanted: str | None, *, path: Path) -> str:
    """The requested name, or the only one.

    Args:
        kind: Name of the option: `metric` or `filter`.
        names: Names in the file, in its order.
        wanted: The requested name; None if the option was not given.
        path: The file, for the message.

    Raises:
        UnreadableRun: If no name was requested and the file does not have exactly one, or if the requested
            name is missing.
    """
    listed = ", ".join(names) or "none"
    if wanted is not None:
        if wanted not in names:
            raise UnreadableRun(f"{path} has no {kind} {wanted!r}; it has {listed}")
        return wanted
    if len(names) != 1:
        if not names:
            raise UnreadableRun(f"{path} has no {kind}")
        raise UnreadableRun(
            f"{path} has several of the kind {kind}: {listed}; choose one: --{kind} {names[0]}"
        )
    return names[0]


def as_score(value: object) -> float | None:
    """A finite number or a truth value as a number; None for all else."""
    if isinstance(value, bool | int | float):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    return None


def as_text(value: object) -> str:
    """A value of JSON as text: texts unchanged, messages by their content, all other values as JSON."""
    import json

    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, list) and value and all(isinstance(each, Mapping) for each in value):
        parts = [as_text(each.get("content", each.get("text", ""))) for each in value]
        return "\n\n".join(part for part in parts if part)
    return json.dumps(value, ensure_ascii=False)


def as_texts(value: object) -> tuple[str, ...]:
    """Targets as a tuple of texts; the value is a list, a single target, or None."""
    if value is None or value == "":
        return ()
    values = value if isinstance(value, list) else [value]
    return tuple(as_text(each) for each in values)


def field_of(row: Mapping[str, object], *names: str) -> object:
    """The value of the first of several dotted names that a row has; None if it has none of them."""
    for name in names:
        found = value_of(row, name)
        if not isinstance(found, Missing) and found is not None:
            return found
    return None


MOST_BYTES = 1 << 30
"""Largest file that is read whole."""


def json_object(path: Path) -> Mapping[str, object]:
    """The object of a file; a list is the value of its key `data`.

    Raises:
        UnreadableRun: If the file is too large or holds no object.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableRun(f"{path} has more than {MOST_BYTES >> 20:,} MiB; split it")
        return as_object(json.loads(read_text(path)), path)
    except OSError as error:
        raise UnreadableRun(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableRun(f"{path} is not valid JSON: {error or 'it is nested too deeply'}") from None


def as_object(value: object, path: Path) -> Mapping[str, object]:
    """A value that has to be an object, or a list of objects.

    Raises:
        UnreadableRun: If the value is neither.
    """
    if isinstance(value, list):
        return {"data": value}
    if not isinstance(value, dict):
        raise UnreadableRun(f"{path} holds neither an object nor a list; is it a file of results?")
    return value

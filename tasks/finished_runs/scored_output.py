"""The interface of readers of finished runs, and functions that they share."""

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
    """A file of results cannot be read; the message names the file and the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredOutput:
    """One output of a candidate, with its score."""

    candidate: str
    example: str
    """Name of the example in its source; the same for all candidates."""
    score: float | None
    """The source's score, before it is scaled to 0 to 1; None if the output has no score."""
    output: str = ""
    input: str = ""
    targets: Sequence[str] = ()
    group: str = ""
    """The task to which the example belongs; empty if the source has only one task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Selection of what to read from files with several metrics, filters or columns."""

    metric: str | None = None
    """Name of the score to read."""
    filter: str | None = None
    """Name of lm-eval's filter of outputs."""
    candidate: str | None = None
    """Column or dotted name of the field that identifies candidates."""
    example: str | None = None
    """Column or dotted name of the field that identifies examples."""


class Reader(Protocol):
    """Reader of one format of results."""

    name: str
    """Name of the format in `--format`."""

    def recognises(self, path: Path, row: Mapping[str, object]) -> bool:
        """Whether a file is in this format, judging by its name and its first object."""

    def read(self, path: Path, choice: Choice) -> Iterator[ScoredOutput]:
        """Yield all outputs of a file.

        Raises:
            UnreadableRun: The file does not have the expected format, or lacks a requested name.
        """


def chosen(kind: str, names: Sequence[str], wanted: str | None, *, path: Path) -> str:
    """The requested name, or the only one.

    Args:
        kind: Name of the option: `metric` or `filter`.
        names: Names in the file, in order.
        wanted: The requested name; None if the option was not given.
        path: The file, for error messages.

    Raises:
        UnreadableRun: The requested name is missing, or no name was requested and the file does not have
            exactly one.
    """
    listed = ", ".join(names) or "none"
    if wanted is not None:
        if wanted not in names:
            raise UnreadableRun(f"{path} has no {kind} {wanted!r}; choose one of: {listed}")
        return wanted
    if len(names) != 1:
        if not names:
            raise UnreadableRun(f"{path} has no {kind}")
        raise UnreadableRun(
            f"{path} has more than one {kind}: {listed}; choose one, such as --{kind} {names[0]}"
        )
    return names[0]


def as_score(value: object) -> float | None:
    """A finite number or a boolean as a number; None for all other values."""
    if isinstance(value, bool | int | float):
        try:
            number = float(value)
        except OverflowError:
            return None
        return number if math.isfinite(number) else None
    return None


def as_text(value: object) -> str:
    """A JSON value as text.

    Texts are unchanged, messages become their content, and all other values become JSON.
    """
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
    """Targets as a tuple of texts; the value can be a list, a single target, or None."""
    if value is None or value == "":
        return ()
    values = value if isinstance(value, list) else [value]
    return tuple(as_text(each) for each in values)


def field_of(row: Mapping[str, object], *names: str) -> object:
    """The value of the first of several dotted names that a row has; None if none."""
    for name in names:
        found = value_of(row, name)
        if not isinstance(found, Missing) and found is not None:
            return found
    return None


MOST_BYTES = 1 << 30
"""Maximum size of a file that is read as a whole."""


def json_object(path: Path) -> Mapping[str, object]:
    """The JSON object of a file; a list becomes the value of the key `data`.

    Raises:
        UnreadableRun: The file is too large, or contains neither an object nor a list.
    """
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UnreadableRun(f"{path} is larger than {MOST_BYTES >> 20:,} MiB; split it")
        return as_object(json.loads(read_text(path)), path)
    except OSError as error:
        raise UnreadableRun(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableRun(f"{path} is not valid JSON: {error or 'it is nested too deeply'}") from None


def as_object(value: object, path: Path) -> Mapping[str, object]:
    """Check that a value is an object or a list.

    A list becomes the value of the key `data` of an object.

    Raises:
        UnreadableRun: The value is neither.
    """
    if isinstance(value, list):
        return {"data": value}
    if not isinstance(value, dict):
        raise UnreadableRun(f"{path} contains neither an object nor a list; name a file of results")
    return value

"""A JSON object in a file of bounded size."""

import json
from collections.abc import Mapping
from pathlib import Path

from winnow.storage.plain_files import read_text
from winnow.tasks.finished_runs.scored_output import UnreadableRun

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
        UnreadableRun: If it is neither.
    """
    if isinstance(value, list):
        return {"data": value}
    if not isinstance(value, dict):
        raise UnreadableRun(f"{path} holds neither an object nor a list; is it a file of results?")
    return value

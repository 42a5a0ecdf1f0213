"""Values for the examples of a score table, from files and campaigns.

All values are in the order of the table's columns.
"""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from winnow.storage.plain_files import open_plain
from winnow.tasks.data.array_files import DAMAGED
from winnow.tasks.data.score_tables import CAMPAIGN, ScoreTable
from winnow.tasks.errors import SpecError, did_you_mean

ARRAYS = (".npy", ".npz")


def is_array(source: str) -> bool:
    """Whether a source is `FILE.npy`, `FILE.npz` or `FILE.npz:KEY`."""
    return ".npz:" in source.lower() or Path(source).suffix.lower() in ARRAYS


def array_of(place: str, source: str, table: ScoreTable, n_axes: int) -> np.ndarray:
    """An array with a row for each example.

    Args:
        place: The source's name in error messages.
        source: The array; KEY is optional if an .npz file has only one.
        table: The table of n examples.
        n_axes: 2 for numbers of shape (n, d), 1 for any values of shape (n,).

    Raises:
        SpecError: The array cannot be read, or has another shape.
    """
    path, _, key = source.rpartition(":") if ".npz:" in source.lower() else (source, "", "")
    try:
        with open_plain(path) as file:
            loaded = np.load(file, allow_pickle=False)
            values: np.ndarray = _member(place, loaded, key) if isinstance(loaded, Mapping) else loaded
    except OSError as error:
        raise SpecError(f"{place} cannot be read: {error.strerror or error}; correct the path") from error
    except DAMAGED as error:
        raise SpecError(f"{place} is not a file of plain arrays ({error}); save it again") from error
    n_examples = table.scores.shape[1]
    if values.ndim != n_axes or len(values) != n_examples or (n_axes == 2 and values.dtype.kind not in "iuf"):
        wanted = f"({n_examples}, d) of numbers" if n_axes == 2 else f"({n_examples},)"
        found = f"has shape {values.shape} and type {values.dtype}"
        raise SpecError(f"{place} {found}; {table.source} needs shape {wanted}, a row for each example")
    return values


def in_order(found: Mapping[str, object], table: ScoreTable, place: str, what: str) -> list[object]:
    """The value found by name for each example of the table.

    Raises:
        SpecError: The table does not name its examples, or a value is missing.
    """
    if table.examples is None:
        raise SpecError(
            f"{place}: the examples of {table.source} have no names, so values cannot be assigned to them; "
            "give an array in their order (.npy), or name the examples in a .csv or .parquet table"
        )
    for name in table.examples:
        if name not in found:
            raise SpecError(f"{place} has no {what} for example {name!r}; add it")
    return [found[name] for name in table.examples]


def require_campaign(table: ScoreTable, place: str, remedy: str) -> None:
    """Refuse a table from a file.

    Raises:
        SpecError: The table is from a file; the message ends with `remedy`.
    """
    if not table.source.startswith(CAMPAIGN):
        raise SpecError(f"{place}: {table.source} has only scores and no texts of examples; {remedy}")


def _member(place: str, arrays: Mapping[str, np.ndarray], key: str) -> np.ndarray:
    names = list(arrays)
    if not key and len(names) == 1:
        return arrays[names[0]]
    if key not in names:
        there = did_you_mean(key, names) or f"its arrays: {', '.join(names) or 'none'}"
        raise SpecError(f"{place}: name the array as FILE.npz:KEY; {there}")
    return arrays[key]

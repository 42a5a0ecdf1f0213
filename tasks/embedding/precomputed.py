"""Vectors computed elsewhere, from a file with an id and a vector for each example."""

from pathlib import Path

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.tasks.data.dataset_files import no_column, read_rows
from winnow.tasks.errors import DatasetError, SpecError

PLACE = "embedder.path"


def read_vectors(path: str) -> dict[str, FloatArray]:
    """Vectors in a .jsonl, .json or .parquet file with the columns id and vector, by id.

    Returns:
        Vectors of shape (d,), with the same d for all.

    Raises:
        SpecError: If the file cannot be read, or a row lacks a valid id or vector.
    """
    try:
        rows = list(read_rows(Path(path)))
    except DatasetError as error:
        raise SpecError(error.message, path=PLACE) from error
    found: dict[str, FloatArray] = {}
    for place, row in rows:
        for column in ("id", "vector"):
            if column not in row:
                raise SpecError(f"{path}, {place}: {no_column(column, row)}", path=PLACE)
        key, vector = str(row["id"]), _numbers(path, place, row["vector"])
        if key in found:
            raise SpecError(f"{path}, {place}: the id {key!r} occurs twice; keep one vector", path=PLACE)
        first = next(iter(found.values()), vector)
        if vector.shape != first.shape:
            raise SpecError(
                f"{path}, {place}: the vector has {len(vector)} numbers, the first one has {len(first)}; "
                "use vectors of one length",
                path=PLACE,
            )
        found[key] = vector
    if not found:
        raise SpecError(f"{path} has no rows; add a row for each example", path=PLACE)
    return found


def _numbers(path: str, place: str, value: object) -> FloatArray:
    try:
        vector = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        vector = np.empty(0)
    if vector.ndim != 1 or vector.size == 0:
        raise SpecError(f"{path}, {place}: the vector is not a list of numbers; write [0.1, ...]", path=PLACE)
    return vector

"""Contexts: the representation of each prompt that a route selector receives."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.errors import UnusableContexts
from winnow.algorithms.state.arrays import FloatArray

SAME_LENGTH = 1e-13  # rows within this distance of length 1 stay as they are: rescaling is idempotent
LENGTH_TOLERANCE = 1e-3  # deviation of half-precision embeddings from length 1


def unit_rows(contexts: ArrayLike, dim: int | None = None) -> FloatArray:
    """Validate contexts; return a read-only copy with rows of length 1.

    The copy has double precision. Rows whose length is within 1e-3 of 1 are rescaled, because embeddings in
    lower precision need it. Rows within 1e-13 of 1 are kept bit for bit. Any other length is refused, because
    the row is probably not an embedding.

    Args:
        contexts: Shape (B, d).
        dim: The required d; None for any.

    Raises:
        UnusableContexts: If the shape is wrong, or a row is not finite or not of length 1.
    """
    given = np.asarray(contexts)
    if given.ndim != 2 or given.shape[1] != (given.shape[1] if dim is None else dim) or given.shape[1] == 0:
        raise UnusableContexts(None, f"of shape (B, {'d' if dim is None else dim})", f"shape {given.shape}")
    if given.dtype.kind not in "fiu":
        raise UnusableContexts(None, "numbers", f"dtype {given.dtype}")
    rows = np.array(given, dtype=np.float64, order="C")  # (B, d)
    lengths = np.array([np.sqrt(row.dot(row)) for row in rows])  # (B,)
    for row in np.flatnonzero(~(np.abs(lengths - 1.0) <= LENGTH_TOLERANCE))[:1].tolist():
        if not np.isfinite(rows[row]).all():
            unusable = rows[row][~np.isfinite(rows[row])][0]
            raise UnusableContexts(row, "finite", str(float(unusable)))
        raise UnusableContexts(row, "of length 1: divide each by its length", f"length {lengths[row]:.6g}")
    for row in np.flatnonzero(np.abs(lengths - 1.0) > SAME_LENGTH).tolist():
        rows[row] /= lengths[row]
    rows.setflags(write=False)
    return rows

"""Protocol of embedders, which compute vectors of texts, and checks of a vector."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.tasks.errors import WinnowError

MOST_TEXTS = 64
"""Maximum number of texts that are embedded together."""


class EmbeddingFailed(WinnowError):
    """A text has no usable vector."""


class Embedder(Protocol):
    """Interface of an embedder; expensive parts are loaded with the first text."""

    @property
    def identity(self) -> dict[str, object]:
        """Everything that determines the vectors, as JSON values."""
        ...

    @property
    def dim(self) -> int:
        """Length d of a vector."""
        ...

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Vectors of texts, shape (B, d); a row does not depend on the other texts.

        Raises:
            WinnowError: If a text cannot be embedded, or the model cannot be loaded.
        """
        ...

    def close(self) -> None:
        """Release loaded resources; the embedder can be used again."""
        ...


def of_unit_length(vectors: FloatArray, texts: Sequence[str]) -> np.ndarray:
    """Rows divided by their lengths, shape (B, d), in single precision.

    Raises:
        EmbeddingFailed: If a row is zero or not finite; the message shows its text.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1)
    bad = np.flatnonzero(~np.isfinite(lengths) | (lengths == 0.0))
    if bad.size:
        what = "zero" if lengths[bad[0]] == 0.0 else "not finite"
        raise EmbeddingFailed(
            f"the vector of {texts[bad[0]][:60]!r} is {what}, so it has no direction; remove the example "
            "or choose another embedder"
        )
    unit: np.ndarray = (rows / lengths[:, np.newaxis]).astype("<f4")
    return unit

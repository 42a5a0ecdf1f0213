"""The vectors of a campaign's prompts: embedded once, kept in the database, read back from there."""

import hashlib
from collections.abc import Sequence
from contextlib import closing

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.engine.database import Database
from winnow.storage.records import embeddings
from winnow.tasks.candidates.cache_keys import sha256
from winnow.tasks.embedding.protocol import MOST_TEXTS, Embedder, EmbeddingFailed, of_unit_length


def stored_vectors(database: Database, embedder: Embedder, texts: Sequence[str]) -> FloatArray:
    """One row per text, shape (n, d), of length 1 up to single precision; what is missing is embedded now.

    Vectors are committed in small groups, and every row is read from the database, so that a campaign that is
    resumed sees the same bits.

    Raises:
        WinnowError: If a text cannot be embedded; the groups before it stay.
    """
    name = sha256(embedder.identity)
    digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest() for text in texts]
    with database.reading() as session:
        known = embeddings.vectors(session, name, digests)
    missing = {digest: text for digest, text in zip(digests, texts, strict=True) if digest not in known}
    with closing(embedder):
        for group in _groups(list(missing.items())):
            rows = _embedded(embedder, [text for _, text in group])
            new = {digest: row.tobytes() for (digest, _), row in zip(group, rows, strict=True)}
            with database.writing() as session:
                embeddings.add_vectors(session, name, new)
                known |= embeddings.vectors(session, name, list(new))
    return np.array([np.frombuffer(known[digest], dtype="<f4") for digest in digests]).astype(np.float64)


def _embedded(embedder: Embedder, texts: list[str]) -> np.ndarray:
    """One row per text, shape (B, d), of length 1."""
    vectors = embedder.embed(texts)
    if vectors.shape != (len(texts), embedder.dim):
        raise EmbeddingFailed(
            f"the embedder made vectors of shape {vectors.shape}, not {(len(texts), embedder.dim)}; the "
            "checkpoint does not make the vectors that its config.json says"
        )
    return of_unit_length(vectors, texts)


def _groups(items: list[tuple[str, str]]) -> list[list[tuple[str, str]]]:
    return [items[start : start + MOST_TEXTS] for start in range(0, len(items), MOST_TEXTS)]

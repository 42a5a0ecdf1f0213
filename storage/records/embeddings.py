"""Texts as vectors, stored once for all campaigns that embed them alike."""

from collections.abc import Mapping, Sequence

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from winnow.storage.models import Embedding

DIGESTS_PER_QUERY = 500


def vectors(session: Session, embedder: str, digests: Sequence[str]) -> dict[str, bytes]:
    """The stored vectors among these texts, by digest."""
    found: dict[str, bytes] = {}
    for start in range(0, len(digests), DIGESTS_PER_QUERY):
        some = digests[start : start + DIGESTS_PER_QUERY]
        rows = session.execute(
            select(Embedding.digest, Embedding.vector).where(
                Embedding.embedder == embedder, Embedding.digest.in_(some)
            )
        )
        found.update(dict(rows.tuples().all()))
    return found


def add_vectors(session: Session, embedder: str, new: Mapping[str, bytes]) -> None:
    """Store vectors by digest. One that another process stored meanwhile stays as it is."""
    known = vectors(session, embedder, list(new))
    rows = [
        {"embedder": embedder, "digest": digest, "vector": vector}
        for digest, vector in new.items()
        if digest not in known
    ]
    if rows:
        session.execute(insert(Embedding), rows)

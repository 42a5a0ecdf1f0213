"""Prompts are stored once, however many candidates, campaigns and games show the same text."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from sqlalchemy import Table, select
from sqlalchemy.orm import Session

from storage.bulk import insert_rows
from storage.models import Prompt, storable

DIGESTS_PER_QUERY = 500
"""Below the number of bound parameters every supported database accepts."""


def digest_of(text: str) -> str:
    """SHA-256 of a text as it is stored, hexadecimal."""
    return sha256(storable(text).encode()).hexdigest()


def ensure_prompts(session: Session, digests: Iterable[str], texts: Iterable[str]) -> dict[str, int]:
    """Ids of texts by their digests; those that are not stored yet are stored now.

    The session writes, so nobody else stores one of them in between.
    """
    wanted = dict(zip(digests, texts, strict=True))
    found = _stored(session, list(wanted))
    new = [digest for digest in wanted if digest not in found]
    if new:
        table = Prompt.__table__
        assert isinstance(table, Table)
        insert_rows(session, table, ("digest", "text"), ((digest, wanted[digest]) for digest in new))
        found |= _stored(session, new)
    return found


def _stored(session: Session, digests: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for start in range(0, len(digests), DIGESTS_PER_QUERY):
        some = digests[start : start + DIGESTS_PER_QUERY]
        rows = session.execute(select(Prompt.digest, Prompt.id).where(Prompt.digest.in_(some)))
        found.update(dict(rows.tuples().all()))
    return found

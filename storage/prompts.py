"""Prompts are stored once, however many candidates, campaigns and games show the same text."""

from collections.abc import Iterable, Sequence
from hashlib import sha256

from sqlalchemy.orm import Session

from storage.bulk import insert_rows
from storage.columns import storable
from storage.lookups import rows_with
from storage.models import Prompt, table_of


def digest_of(text: str) -> str:
    """SHA-256 of a text as it is stored, hexadecimal."""
    return sha256(storable(text).encode()).hexdigest()


def ensure_prompts(session: Session, digests: Iterable[str], texts: Iterable[str]) -> dict[str, int]:
    """Ids of texts by their digests; those that are not stored yet are stored now.

    The session writes, so nobody else stores one of them in between.
    """
    wanted = dict(zip(digests, texts, strict=True))
    found = _stored(session, list(wanted))
    if new := [digest for digest in wanted if digest not in found]:
        insert_rows(
            session, table_of(Prompt), ("digest", "text"), ((digest, wanted[digest]) for digest in new)
        )
        found |= _stored(session, new)
    return found


def _stored(session: Session, digests: Sequence[str]) -> dict[str, int]:
    return {digest: id_ for digest, id_ in rows_with(session, "digest, id", "prompts", "digest", digests)}

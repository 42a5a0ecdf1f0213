"""Prompts are stored once, however many candidates, campaigns and judgments show the same text."""

from collections.abc import Iterable
from hashlib import sha256

from sqlalchemy import Connection

from winnow.storage.engine.bulk import insert_rows
from winnow.storage.engine.id_lookup import ids_with
from winnow.storage.models import Prompt, table_of
from winnow.storage.text import storable


def digest_of(text: str) -> str:
    """SHA-256 of a text as it is stored, hexadecimal."""
    return sha256(storable(text).encode()).hexdigest()


def ensure_prompts(connection: Connection, digests: Iterable[str], texts: Iterable[str]) -> dict[str, int]:
    """Ids of texts by their digests; those that are not stored yet are stored now.

    The connection writes, so nobody else stores one of them in between.
    """
    wanted = dict(zip(digests, texts, strict=True))
    found, new = ids_with(connection, "prompts", "digest", wanted)
    if new:
        rows = ((id_, digest, wanted[digest]) for digest, id_ in new.items())
        insert_rows(connection, table_of(Prompt), ("id", "digest", "text"), rows)
    return found | new

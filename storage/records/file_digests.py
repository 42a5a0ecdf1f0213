"""Digests of large files as last read: an unchanged file is not read again."""

from collections.abc import Mapping
from hashlib import sha256
from typing import NamedTuple

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from winnow.storage.engine.row_digests import COLUMN, row_digest
from winnow.storage.models import FileDigest, table_of


class FileState(NamedTuple):
    """State of a file in its file system; every write to the file changes it."""

    path: str
    """Absolute, without symbolic links."""
    size: int
    """Size in bytes."""
    modified_ns: int
    """Time of the last change of its content, in nanoseconds since 1970; programs can set it."""
    changed_ns: int
    """Time of the last change of its content or its entry; programs cannot set it."""
    inode: int


def stored_digests(session: Session) -> dict[FileState, str]:
    """SHA-256 of each file in the state when it was last read, hexadecimal."""
    rows = session.scalars(select(FileDigest))
    return {
        FileState(
            path=row.path,
            size=row.size,
            modified_ns=row.modified_ns,
            changed_ns=row.changed_ns,
            inode=int(row.inode),
        ): row.sha256
        for row in rows
    }


def store_digests(session: Session, digests: Mapping[FileState, str]) -> None:
    """Store the current digests of files, replacing earlier ones."""
    rows = (
        {
            "place": sha256(state.path.encode("utf-8", "surrogateescape")).hexdigest(),
            "path": state.path.encode("utf-8", "replace").decode(),
            "size": state.size,
            "modified_ns": state.modified_ns,
            "changed_ns": state.changed_ns,
            "inode": str(state.inode),
            "sha256": digest,
        }
        for state, digest in digests.items()
    )
    table = table_of(FileDigest)
    with_digests = [{**row, COLUMN: row_digest(table, tuple(row), tuple(row.values()))} for row in rows]
    if with_digests:
        session.execute(text(_STORE), with_digests)


_STORE = """
    INSERT INTO file_digests (place, path, size, modified_ns, changed_ns, inode, sha256, row_digest)
    VALUES (:place, :path, :size, :modified_ns, :changed_ns, :inode, :sha256, :row_digest)
    ON CONFLICT (place) DO UPDATE SET path = excluded.path, size = excluded.size,
        modified_ns = excluded.modified_ns, changed_ns = excluded.changed_ns,
        inode = excluded.inode, sha256 = excluded.sha256, row_digest = excluded.row_digest
"""

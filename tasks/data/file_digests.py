"""SHA-256 of whole files, cached while a file is unchanged.

A file counts as unchanged while its path, size, inode, modification time and change time are the same. A
recently written file could be written again within the same tick of the clock, so its digest is not cached
yet. Small files are not cached, because they are read quickly.
"""

import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from winnow.storage.plain_files import open_plain

if TYPE_CHECKING:  # a policy is served where there is no database
    from sqlalchemy.orm import Session

    from winnow.storage.engine.database import Database

LARGE = 2**20
"""Minimum size in bytes of files with cached digests."""

SETTLED_NS = 2_000_000_000
"""Nanoseconds after a change from which a further change gives the file another time.

The times of file systems advance at least this often.
"""


Seen = tuple[str, int, int, int, int]
"""The fields of a `storage.records.datasets.FileState`.

That class is imported only if there is a database.
"""

_remembered: dict[Seen, str] = {}
"""Digests cached in this process; they are valid for all campaigns."""

_new: dict[Seen, str] = {}
"""Cached digests that are not stored in a database yet."""


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal.

    Raises:
        OSError: The file cannot be read.
    """
    with open_plain(path) as file:
        before = _state(path, os.fstat(file.fileno()))
        if before in _remembered:
            return _remembered[before]
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        after = _state(path, os.fstat(file.fileno()))
    _, size, *changed_at, _ = after
    settled = time.time_ns() - max(changed_at) > SETTLED_NS
    if settled and before == after and size >= LARGE:
        _remembered[after] = _new[after] = digest
    return digest


def recall_digests(session: "Session") -> None:
    """Load the digests that are stored in a database."""
    from winnow.storage.records.datasets import stored_digests

    _remembered.update(stored_digests(session).items())


def keep_digests(database: "Database") -> None:
    """Store the digests computed since the last call in a database."""
    from winnow.storage.records.datasets import FileState, store_digests

    if _new:
        with database.writing() as session:
            store_digests(session, {FileState(*seen): digest for seen, digest in _new.items()})
        _new.clear()


def _state(path: Path, found: os.stat_result) -> Seen:
    return str(path.resolve()), found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino

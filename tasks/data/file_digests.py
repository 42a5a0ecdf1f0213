"""SHA-256 of whole files, read once: what was read is remembered for as long as a file stays as it was.

A file is taken to be as it was while its path, size, inode and both of its times are the same. One that was
written to a moment ago may be written to again within the same tick of the clock, so that what it holds is
not remembered yet; nor is what small files hold, which are read at once.
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
"""Bytes from which a file's digest is remembered."""

SETTLED_NS = 2_000_000_000
"""Age of the last change from which a further one would be seen: file systems tick at least that often."""


Seen = tuple[str, int, int, int, int]
"""The fields of a `storage.records.file_digests.FileState`, which is needed only with a database."""

_remembered: dict[Seen, str] = {}
"""Digests that this process knows: the content of files is the same for all campaigns."""

_new: dict[Seen, str] = {}
"""Digests of these that no database was told yet."""


def file_digest(path: Path) -> str:
    """SHA-256 of what a file holds, hexadecimal.

    Raises:
        OSError: If it cannot be read.
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
    """Take over what a database remembers."""
    from winnow.storage.records.file_digests import stored_digests

    _remembered.update(stored_digests(session).items())


def keep_digests(database: "Database") -> None:
    """Have a database remember what was read since the last time."""
    from winnow.storage.records.file_digests import FileState, store_digests

    if _new:
        with database.writing() as session:
            store_digests(session, {FileState(*seen): digest for seen, digest in _new.items()})
        _new.clear()


def _state(path: Path, found: os.stat_result) -> Seen:
    return str(path.resolve()), found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino

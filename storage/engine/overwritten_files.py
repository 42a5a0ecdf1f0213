"""Detects that another program wrote into the files of an open SQLite database, in place of replacing them.

`cp` and `rsync --inplace` write an older copy into the file that is there, whose inode stays the same. SQLite
goes on with the pages that it has read, and rows are lost. Three facts are checked whenever this process
writes, all of which stay true whatever SQLite itself does:

- A commit frame of the write-ahead log stays where it is until the log is restarted, which raises the log's
  first salt by one each time (https://sqlite.org/fileformat2.html#walformat).
- The ids given so far, in `sqlite_sequence`, never become fewer.
- Before the log is restarted, all that it holds is copied into the database. So from then on the file itself,
  read without the log, has all ids that were given before.

What another program writes between two transactions that store nothing new is not detected.
"""

import os
import sqlite3
import struct
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from urllib.parse import quote

HEADER, FRAME_HEADER = 32, 24
"""Bytes of the header of a log, and of that of a frame, which a page follows."""

MOST_FRAMES = 100_000
"""Frames of a log that are looked through at once."""

MOST_RESTARTS = 10_000
"""Restarts of a log between two looks at it; a log of another database seldom has a salt so near."""

Ids = Mapping[str, int]
"""The last id given in each table."""


@dataclass(frozen=True, slots=True)
class _LogHeader:
    page_size: int
    salts: tuple[int, int]

    def is_after(self, other: "_LogHeader") -> bool:
        """Whether SQLite makes this header of the other one by restarting the log."""
        return 0 < (self.salts[0] - other.salts[0]) % 2**32 <= MOST_RESTARTS


@dataclass(slots=True)
class WatchedFiles:
    """The files of a database while connections that write are open to it."""

    path: str
    _path_of_log: str = ""
    _log: int | None = None
    """Descriptor of the log. SQLite locks nothing of it, so that closing it gives up no lock."""
    _header: _LogHeader | None = None
    _commit: tuple[int, bytes] | None = None
    """Offset and header of the last commit frame."""
    _committed: Ids = field(default_factory=dict)
    """Ids as of the last transaction that began."""
    _copied: Ids = field(default_factory=dict)
    """Ids that the file itself has to hold, as they were given before the log was restarted."""
    _looked_at: tuple[int, int] | None = None
    """Size and time of change of the file when it was last read without its log."""

    def begin(self, log: str) -> None:
        """Start to watch; the log's path is where SQLite keeps it."""
        self.end()
        self._path_of_log = log
        self._read_file()

    def _open_log(self) -> bool:
        """Open the log, which the first transaction of a new file makes."""
        if self._log is None:
            with suppress(OSError):
                self._log = os.open(self._path_of_log, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        return self._log is not None

    def end(self) -> None:
        """Stop to watch, when the last connection is closed."""
        if self._log is not None:
            os.close(self._log)
        self._log = self._header = self._commit = self._looked_at = None
        self._committed, self._copied = {}, {}

    def are_overwritten(self, given: Ids | None = None) -> bool:
        """Whether another program wrote into the files.

        Args:
            given: The last ids as the connection reads them in a transaction that has just begun; None after
                one has ended.
        """
        if not self._open_log():
            return False
        return not (self._log_is_kept() and self._file_is_kept() and self._are_given(given))

    def _are_given(self, ids: Ids | None) -> bool:
        if ids is None:
            return True
        if _are_fewer(ids, self._committed):
            return False
        self._committed = ids
        return True

    def _log_is_kept(self) -> bool:
        header, before = self._read_header(), self._header
        if header is None:  # truncated; the next frame that SQLite itself writes comes after a header
            return before is None or self._size() == 0
        if before is not None and header != before:
            if not header.is_after(before):
                return False
            self._copied, self._looked_at, self._commit = self._committed, None, None
        if self._commit is not None and self._frame(self._commit[0]) != self._commit[1]:
            return False
        self._header = header
        self._advance(header)
        return True

    def _advance(self, header: _LogHeader) -> None:
        """Go on to the last commit frame."""
        step = FRAME_HEADER + header.page_size
        at = HEADER if self._commit is None else self._commit[0] + step
        for _ in range(MOST_FRAMES):
            frame = self._frame(at)
            if len(frame) < FRAME_HEADER or struct.unpack(">2I", frame[8:16]) != header.salts:
                return
            if frame[4:8] != bytes(4):
                self._commit = at, frame
            at += step

    def _file_is_kept(self) -> bool:
        try:
            found = os.stat(self.path)
        except OSError:  # that it was removed is said elsewhere
            return True
        if (found.st_size, found.st_mtime_ns) == self._looked_at:
            return True
        wanted = self._copied
        held = self._read_file()
        return held is None or not _are_fewer(held, wanted)

    def _read_file(self) -> Ids | None:
        """Ids that the file holds without its log; None where that is not known while a program writes it."""
        quoted = quote(os.path.abspath(self.path))
        try:
            found = os.stat(self.path)
            # By SQLite: to open and close a file otherwise would give up the locks that this process has.
            with closing(sqlite3.connect(f"file:{quoted}?mode=ro&immutable=1", uri=True)) as file:
                held = given_ids(file)
        except (OSError, sqlite3.Error, UnicodeDecodeError):
            return None
        self._looked_at = found.st_size, found.st_mtime_ns
        self._copied = {**held, **{name: max(last, held.get(name, 0)) for name, last in self._copied.items()}}
        return held

    def _read_header(self) -> _LogHeader | None:
        read = self._pread(HEADER, 0)
        if len(read) < HEADER or read == bytes(HEADER):
            return None
        _, _, page_size, _, *salts = struct.unpack(">6I", read[:24])
        return _LogHeader(page_size, (salts[0], salts[1]))

    def _frame(self, at: int) -> bytes:
        return self._pread(FRAME_HEADER, at)

    def _pread(self, length: int, at: int) -> bytes:
        assert self._log is not None, "it is watched"
        return os.pread(self._log, length, at)

    def _size(self) -> int:
        assert self._log is not None, "it is watched"
        return os.fstat(self._log).st_size


def given_ids(connection: sqlite3.Connection) -> Ids:
    """The last id given in each table; none where there are no tables yet."""
    try:
        return dict(connection.execute("SELECT name, seq FROM sqlite_sequence"))
    except sqlite3.OperationalError:
        return {}


def _are_fewer(ids: Ids, than: Ids) -> bool:
    return any(ids.get(name, 0) < last for name, last in than.items())

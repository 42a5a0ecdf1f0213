"""Files of SQLite databases that others can write to.

The module stores permissions for them and detects lost rows. SQLite is not reliable on a file that another
machine serves. In WAL mode all processes that use a file share memory, which processes of two machines
cannot, and the locks of network file systems are known to admit two writers: https://sqlite.org/wal.html,
section 1, and https://sqlite.org/howtocorrupt.html, section 2.1. A file with two names has a separate
write-ahead log for each, so rows written under one name are lost under the other (section 2.4 there).
Reading, copying and exporting are not affected. Writing is refused unless the user has allowed it for that
file. The permission is stored in the user's configuration folder, because a folder from a stranger could
grant itself anything.

`cp` and `rsync --inplace` write an older copy into the existing file, whose inode stays the same. SQLite
continues with the pages that it has read, and rows are lost. Whenever this process writes, it checks three
facts, all of which SQLite itself always keeps true:

- A commit frame of the write-ahead log stays at its place until the log is restarted, which raises the log's
  first salt by one each time (https://sqlite.org/fileformat2.html#walformat).
- The last ids assigned, in `sqlite_sequence`, never decrease.
- Before the log is restarted, its whole content is copied into the database. From then on the file itself,
  read without the log, has all ids assigned before.

Writes of another program between two transactions that store nothing new are not detected.
"""

import json
import os
import re
import shlex
import sqlite3
import stat
import struct
import tempfile
from collections.abc import Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from winnow.storage.errors import StorageError, StorageUnavailable

_LOCAL = """
    apfs aufs bcachefs btrfs ecryptfs erofs exfat ext2 ext3 ext4 f2fs fuseblk hfs hfsplus iso9660 jffs2 jfs
    msdos nilfs2 ntfs ntfs3 overlay overlayfs ramfs reiser4 reiserfs rootfs squashfs tmpfs ubifs udf ufs
    unionfs vfat xfs zfs
"""
LOCAL_KINDS = frozenset(_LOCAL.split())
"""Kinds of file systems known to be local, by their Linux names."""

MOUNTS = Path("/proc/self/mountinfo")

ALLOWED = "writing_allowed"


def require_one_writer(path: str, shown: str) -> None:
    """Raise if another name or machine can write to a file.

    Files to which the user has allowed writing are accepted. The file at `path` need not exist yet; `shown`
    names the database in errors.

    Raises:
        StorageUnavailable: With the risk and the command that allows writing.
    """
    if (risk := _risk(path, read_mounts())) is None or os.path.realpath(path) in _allowed():
        return
    raise StorageUnavailable(
        shown,
        risk,
        f"or, if no other program writes to it: winnow db allow {shlex.quote(shown)}",
    )


def allow(path: str) -> Path:
    """Allow writing to a file from now on; return the file that stores the permission.

    Raises:
        StorageError: If the permission cannot be stored.
    """
    kept = _allowed() | {os.path.realpath(path)}
    try:
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as beside:
            beside.write(json.dumps({ALLOWED: sorted(kept)}, indent=2) + "\n")
        os.replace(beside.name, file)
    except (OSError, RuntimeError) as error:
        raise StorageError(
            f"the permission cannot be stored in your configuration folder: {error}"
        ) from error
    return file


def read_mounts() -> str:
    """Linux's table of mounts; empty if the system has none."""
    try:
        return MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return ""


def mount_of(path: str, mounts: str) -> tuple[str, str] | None:
    """Mount point and kind of a file's file system.

    None if the table does not contain it. The file need not exist; `mounts` is as `read_mounts` returns it.
    """
    place, found = Path(os.path.realpath(path)), ("", "")
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        mounted_at = _unescaped(fields[4])
        # If two file systems have the same mount point, the later one is visible.
        if len(mounted_at) >= len(found[0]) and place.is_relative_to(mounted_at):
            found = mounted_at, after.split(" ")[0]
    return found if found[1] else None


def _risk(path: str, mounts: str) -> str | None:
    """Why writing to a file can lose rows, with an alternative, as part of a sentence.

    None without a risk.
    """
    mounted_at, kind = mount_of(path, mounts) or ("", "")
    if kind and kind not in LOCAL_KINDS:
        return (
            f"it is on a file system that other machines may use too ({kind}, mounted at {mounted_at}), "
            "where SQLite's locks are not reliable and rows could be lost: name a file on a disk of "
            "this machine, use PostgreSQL"
        )
    if mounted_at == os.path.realpath(path):
        return (
            "the file itself is a mount point, so it has another name elsewhere, and rows "
            "written under one name are lost under the other: mount its folder instead"
        )
    try:
        found = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_nlink < 2:
        return None
    return (
        f"its file has {found.st_nlink} names (hard links), and rows written under one name are "
        "lost under another: copy it with winnow db copy and write to the copy"
    )


def _allowed() -> frozenset[str]:
    """Real paths of the files to which this user has allowed writing."""
    try:
        file = _file()
        held = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, RuntimeError):
        return frozenset()
    except (OSError, ValueError) as error:
        raise StorageError(f"{file} cannot be read ({error}); correct or delete it") from error
    paths = held.get(ALLOWED) if isinstance(held, dict) else None
    if not isinstance(paths, list) or not all(isinstance(each, str) for each in paths):
        raise StorageError(f"{file} was not written by winnow db allow; delete it")
    return frozenset(paths)


def _file() -> Path:
    """File that stores this user's permissions.

    Raises:
        RuntimeError: If the user has no home folder.
    """
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "winnow" / "databases.json"


def _unescaped(field: str) -> str:
    """Decode a path of the mount table.

    Spaces and the like are octal escapes there.
    """
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)


HEADER, FRAME_HEADER = 32, 24
"""Sizes in bytes of a log's header, and of a frame's header.
A frame's header precedes a page."""

MOST_FRAMES = 100_000
"""Maximum number of log frames inspected in one pass."""

MOST_RESTARTS = 10_000
"""Maximum number of restarts of a log between two checks.
Another database's salt is seldom so near."""

Ids = Mapping[str, int]
"""The last id assigned in each table."""


@dataclass(frozen=True, slots=True)
class _LogHeader:
    page_size: int
    salts: tuple[int, int]

    def is_after(self, other: "_LogHeader") -> bool:
        """Whether SQLite could have made this header by restarting the other log."""
        return 0 < (self.salts[0] - other.salts[0]) % 2**32 <= MOST_RESTARTS


@dataclass(slots=True)
class WatchedFiles:
    """The files of a database, watched while writing connections are open."""

    path: str
    _path_of_log: str = ""
    _log: int | None = None
    """Descriptor of the log.
    SQLite locks no part of the log, so closing it releases no lock."""
    _header: _LogHeader | None = None
    _commit: tuple[int, bytes] | None = None
    """Offset and header of the last commit frame."""
    _committed: Ids = field(default_factory=dict)
    """Ids as of the last transaction that began."""
    _copied: Ids = field(default_factory=dict)
    """Ids that the file must contain without its log.
    These ids were assigned before the log was restarted."""
    _looked_at: tuple[int, int] | None = None
    """Size and modification time of the file when it was last read without its log."""

    def begin(self, log: str) -> None:
        """Start watching the files; `log` is the path at which SQLite keeps the log."""
        self.end()
        self._path_of_log = log
        self._read_file()

    def _open_log(self) -> bool:
        """Open the log if it exists; the first transaction of a new file creates it."""
        if self._log is None:
            with suppress(OSError):
                self._log = os.open(self._path_of_log, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        return self._log is not None

    def end(self) -> None:
        """Stop watching the files; called when the last connection is closed."""
        if self._log is not None:
            os.close(self._log)
        self._log = self._header = self._commit = self._looked_at = None
        self._committed, self._copied = {}, {}

    def are_overwritten(self, given: Ids | None = None) -> bool:
        """Whether another program wrote into the files.

        `given` are the last ids that the connection reads in a transaction that has just begun; None after a
        transaction has ended.
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
        if header is None:  # the log is truncated; SQLite writes a header before its next frame
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
        """Advance to the log's last commit frame."""
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
        except OSError:  # a removed file is reported elsewhere
            return True
        if (found.st_size, found.st_mtime_ns) == self._looked_at:
            return True
        wanted = self._copied
        held = self._read_file()
        return held is None or not _are_fewer(held, wanted)

    def _read_file(self) -> Ids | None:
        """Last ids in the file without its log.

        None if it cannot be read, for example while it is written.
        """
        quoted = quote(os.path.abspath(self.path))
        try:
            found = os.stat(self.path)
            # Read by SQLite, because closing the file in any other way would release this process's locks.
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
    """The last id assigned in each table; empty if the file has no tables yet."""
    try:
        return dict(connection.execute("SELECT name, seq FROM sqlite_sequence"))
    except sqlite3.OperationalError:
        return {}


def _are_fewer(ids: Ids, than: Ids) -> bool:
    return any(ids.get(name, 0) < last for name, last in than.items())

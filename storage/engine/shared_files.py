"""SQLite files that others may write to under another name or from another machine, and permissions for them.

Where another machine keeps a file, SQLite cannot be relied on. In WAL mode all processes that use a file
share memory, which those of two machines cannot, and the locks of network file systems are known to let two
writers in: https://sqlite.org/wal.html, section 1, and https://sqlite.org/howtocorrupt.html, section 2.1.
A file with two names has a write-ahead log for each of them, so that what is written under one name is lost
under the other (section 2.4 there).

Reading, copying and exporting are not affected. Writing is refused unless the user has allowed it for that
file, which is kept in the user's configuration folder: a stranger's folder could allow itself anything.
"""

import json
import os
import re
import shlex
import stat
import tempfile
from pathlib import Path

from winnow.storage.errors import StorageError, StorageUnavailable

_LOCAL = """
    apfs aufs bcachefs btrfs ecryptfs erofs exfat ext2 ext3 ext4 f2fs fuseblk hfs hfsplus iso9660 jffs2 jfs
    msdos nilfs2 ntfs ntfs3 overlay overlayfs ramfs reiser4 reiserfs rootfs squashfs tmpfs ubifs udf ufs
    unionfs vfat xfs zfs
"""
LOCAL_KINDS = frozenset(_LOCAL.split())
"""Kinds of file systems that are known to be of this machine alone, as Linux calls them."""

MOUNTS = Path("/proc/self/mountinfo")

ALLOWED = "writing_allowed"


def require_one_writer(path: str, shown: str) -> None:
    """Refuse to write to a file that another name or machine may write to, unless the user has allowed it.

    Args:
        path: Path of a SQLite file that need not be there yet.
        shown: The database as errors name it.

    Raises:
        StorageUnavailable: With what is risked and how it is allowed.
    """
    if (risk := _risk(path, read_mounts())) is None or os.path.realpath(path) in _allowed():
        return
    raise StorageUnavailable(
        shown,
        risk,
        f"or, if you make sure that nothing else writes to it: winnow db allow {shlex.quote(shown)}",
    )


def allow(path: str) -> Path:
    """Allow writing to a file from now on; return the file in which that is kept.

    Raises:
        StorageError: If that cannot be kept.
    """
    kept = _allowed() | {os.path.realpath(path)}
    try:
        file = _file()
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False, encoding="utf-8") as beside:
            beside.write(json.dumps({ALLOWED: sorted(kept)}, indent=2) + "\n")
        os.replace(beside.name, file)
    except (OSError, RuntimeError) as error:
        raise StorageError(f"what you allow cannot be kept in your configuration folder: {error}") from error
    return file


def read_mounts() -> str:
    """Linux's table of what is mounted where; empty where there is none."""
    try:
        return MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return ""


def mount_of(path: str, mounts: str) -> tuple[str, str] | None:
    """The mount point and kind of the file system that a file is on; None where the table does not tell.

    Args:
        path: Path of a file that need not be there yet.
        mounts: As `read_mounts` gives it.
    """
    place, found = Path(os.path.realpath(path)), ("", "")
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        mounted_at = _unescaped(fields[4])
        # Of two file systems at one place the later one is seen.
        if len(mounted_at) >= len(found[0]) and place.is_relative_to(mounted_at):
            found = mounted_at, after.split(" ")[0]
    return found if found[1] else None


def _risk(path: str, mounts: str) -> str | None:
    """Why writing to a file may lose rows, with another place for it, as a part of a sentence."""
    mounted_at, kind = mount_of(path, mounts) or ("", "")
    if kind and kind not in LOCAL_KINDS:
        return (
            f"it is on a file system that other machines may use too ({kind}, mounted at {mounted_at}), on "
            "which SQLite's locks cannot be relied on, so that rows could be lost: name a file on a disk of "
            "this machine, use PostgreSQL"
        )
    if mounted_at == os.path.realpath(path):
        return (
            "the file itself is a mount point, so that it has another name elsewhere, and rows that are "
            "written under one name are lost under the other: mount its folder instead"
        )
    try:
        found = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(found.st_mode) or found.st_nlink < 2:
        return None
    return (
        f"its file has {found.st_nlink} names (hard links), and rows that are written under one of them are "
        "lost under another: copy it with winnow db copy and write to the copy"
    )


def _allowed() -> frozenset[str]:
    """The real paths of the files that this user has allowed writing to."""
    try:
        file = _file()
        held = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError, RuntimeError):
        return frozenset()
    except (OSError, ValueError) as error:
        raise StorageError(f"{file} cannot be read ({error}); correct or delete it") from error
    paths = held.get(ALLOWED) if isinstance(held, dict) else None
    if not isinstance(paths, list) or not all(isinstance(each, str) for each in paths):
        raise StorageError(f"{file} is not what winnow db allow wrote; delete it")
    return frozenset(paths)


def _file() -> Path:
    """The file that keeps what this user has allowed.

    Raises:
        RuntimeError: If the user has no home.
    """
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "winnow" / "databases.json"


def _unescaped(field: str) -> str:
    """A path as it is: spaces and the like stand in the table as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)

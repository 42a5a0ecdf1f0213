"""SQLite files that others can write to under another name or from another machine, and permissions for them.

SQLite is not reliable on a file that another machine serves. In WAL mode all processes that use a file share
memory, which processes of two machines cannot, and the locks of network file systems are known to admit two
writers: https://sqlite.org/wal.html, section 1, and https://sqlite.org/howtocorrupt.html, section 2.1. A file
with two names has a separate write-ahead log for each, so rows written under one name are lost under the
other (section 2.4 there).

Reading, copying and exporting are not affected. Writing is refused unless the user has allowed it for that
file. The permission is stored in the user's configuration folder, because a stranger's folder could allow
itself anything.
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
"""Kinds of file systems known to be local, by their Linux names."""

MOUNTS = Path("/proc/self/mountinfo")

ALLOWED = "writing_allowed"


def require_one_writer(path: str, shown: str) -> None:
    """Raise if another name or machine can write to a file, unless the user has allowed writing to it.

    Args:
        path: Path of a SQLite file, existing or not.
        shown: Name of the database in errors.

    Raises:
        StorageUnavailable: With the risk and the command that allows it.
    """
    if (risk := _risk(path, read_mounts())) is None or os.path.realpath(path) in _allowed():
        return
    raise StorageUnavailable(
        shown,
        risk,
        f"or, if you make sure that nothing else writes to it: winnow db allow {shlex.quote(shown)}",
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
        raise StorageError(f"what you allow cannot be kept in your configuration folder: {error}") from error
    return file


def read_mounts() -> str:
    """Linux's table of mounts; empty if there is none."""
    try:
        return MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return ""


def mount_of(path: str, mounts: str) -> tuple[str, str] | None:
    """Mount point and kind of a file's file system; None if the table does not contain it.

    Args:
        path: Path of a file, existing or not.
        mounts: As `read_mounts` returns it.
    """
    place, found = Path(os.path.realpath(path)), ("", "")
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split(" ")
        if len(fields) < 5 or not after:
            continue
        mounted_at = _unescaped(fields[4])
        # Of two file systems at one mount point the later one is visible.
        if len(mounted_at) >= len(found[0]) and place.is_relative_to(mounted_at):
            found = mounted_at, after.split(" ")[0]
    return found if found[1] else None


def _risk(path: str, mounts: str) -> str | None:
    """Reason why writing to a file can lose rows, with an alternative, as part of a sentence."""
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
        raise StorageError(f"{file} is not what winnow db allow wrote; delete it")
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
    """Decode a path of the table, in which spaces and the like are octal escapes."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)

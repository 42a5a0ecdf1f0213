"""Whether a file is kept by another machine, where SQLite cannot be relied on.

In WAL mode all processes that use a file share memory, which those of two machines cannot, and the locks of
network file systems are known to let two writers in: https://sqlite.org/wal.html, section 1, and
https://sqlite.org/howtocorrupt.html, section 2.1.
"""

import os
import re
from pathlib import Path

NETWORK_KINDS = {
    "afs",
    "beegfs",
    "beegfs_nodev",
    "ceph",
    "cifs",
    "coda",
    "fuse.ceph",
    "fuse.cephfs",
    "fuse.davfs",
    "fuse.gcsfuse",
    "fuse.glusterfs",
    "fuse.goofys",
    "fuse.juicefs",
    "fuse.mount-s3",
    "fuse.rclone",
    "fuse.s3fs",
    "fuse.sshfs",
    "gpfs",
    "lustre",
    "ncpfs",
    "nfs",
    "nfs4",
    "pvfs2",
    "smb3",
    "smbfs",
}
"""Kinds of file systems that other machines see too, as Linux calls them."""

MOUNTS = Path("/proc/self/mountinfo")


def read_mounts() -> str:
    """Linux's table of what is mounted where; empty where there is none."""
    try:
        return MOUNTS.read_text(errors="surrogateescape")
    except OSError:
        return ""


def network_mount(path: str, mounts: str) -> tuple[str, str] | None:
    """Where the network file system is mounted that a file is on, and its kind; None for a local one.

    Args:
        path: Of a file that need not be there yet.
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
    return found if found[1] in NETWORK_KINDS else None


def _unescaped(field: str) -> str:
    """A path as it is: spaces and the like stand in the table as octal numbers."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), field)

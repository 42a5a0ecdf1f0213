"""SQLite files on network file systems are known by the table of mounts, and refused."""

import pytest

from winnow.storage.engine import sqlite
from winnow.storage.engine.database import open_database
from winnow.storage.engine.sqlite import network_mount
from winnow.storage.errors import StorageUnavailable

TABLE = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw
40 22 0:35 / /home rw,relatime shared:20 master:1 - nfs4 server:/export/home rw,vers=4.2
41 40 254:1 / /home/local rw,relatime - xfs /dev/vdb rw
42 22 0:36 / /mnt/two\040words rw - cifs //server/share rw
43 22 0:37 / /mnt/both rw - nfs server:/a rw
44 43 254:2 / /mnt/both rw - ext4 /dev/vdc rw
45 22 0:38 / /mnt/ssh rw - fuse.sshfs user@server: rw
a line that is none
""".strip()


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/tmp/winnow.db", None),
        ("/home/me/winnow.db", ("/home", "nfs4")),
        ("/home", ("/home", "nfs4")),
        ("/homes/winnow.db", None),
        ("/home/local/winnow.db", None),
        ("/mnt/two words/winnow.db", ("/mnt/two words", "cifs")),
        ("/mnt/both/winnow.db", None),
        ("/mnt/ssh/a/b/../winnow.db", ("/mnt/ssh", "fuse.sshfs")),
    ],
)
def test_the_file_system_that_a_path_is_on_is_the_innermost_and_latest(path, found):
    assert network_mount(path, TABLE) == found


def test_a_link_is_where_it_leads_to(tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    (tmp_path / "here").symlink_to(away)
    mounts = f"1 0 0:1 / / rw - ext4 /dev/vda rw\n2 1 0:2 / {away} rw - nfs server:/x rw"
    assert network_mount(str(tmp_path / "here" / "winnow.db"), mounts) == (str(away), "nfs")


def test_without_a_table_nothing_is_refused():
    assert network_mount("/home/me/winnow.db", "") is None


def test_this_machine_can_be_read():
    assert " / " in sqlite.read_mounts()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_on_a_network_file_system_is_refused_with_the_remedy(tmp_path, monkeypatch, read_only):
    monkeypatch.setattr(sqlite, "read_mounts", lambda: f"1 0 0:1 / {tmp_path} rw - nfs4 server:/export rw")
    refused = rf"network file system \(nfs4, mounted at {tmp_path}\).* or use PostgreSQL"
    with pytest.raises(StorageUnavailable, match=refused):
        open_database(f"sqlite:///{tmp_path}/winnow.db", read_only=read_only)
    assert not (tmp_path / "winnow.db").exists()

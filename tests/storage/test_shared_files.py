"""SQLite files that other names or machines may write to: refused to writers, open to readers."""

import os
from contextlib import closing

import pytest
from sqlalchemy import text
from stored_campaigns import new_database

from winnow.storage.engine import sqlite_files
from winnow.storage.engine.database import open_database
from winnow.storage.engine.sqlite_files import LOCAL_KINDS, allow, mount_of
from winnow.storage.errors import StorageError, StorageUnavailable

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
        ("/tmp/winnow.db", ("/", "ext4")),
        ("/home/me/winnow.db", ("/home", "nfs4")),
        ("/home", ("/home", "nfs4")),
        ("/homes/winnow.db", ("/", "ext4")),
        ("/home/local/winnow.db", ("/home/local", "xfs")),
        ("/mnt/two words/winnow.db", ("/mnt/two words", "cifs")),
        ("/mnt/both/winnow.db", ("/mnt/both", "ext4")),
        ("/mnt/ssh/a/b/../winnow.db", ("/mnt/ssh", "fuse.sshfs")),
    ],
)
def test_the_file_system_that_a_path_is_on_is_the_innermost_and_latest(path, found):
    assert mount_of(path, TABLE) == found


def test_a_link_is_where_it_leads_to(tmp_path):
    away = tmp_path / "away"
    away.mkdir()
    (tmp_path / "here").symlink_to(away)
    mounts = f"1 0 0:1 / / rw - ext4 /dev/vda rw\n2 1 0:2 / {away} rw - nfs server:/x rw"
    assert mount_of(str(tmp_path / "here" / "winnow.db"), mounts) == (str(away), "nfs")


def test_without_a_table_nothing_is_refused():
    assert mount_of("/home/me/winnow.db", "") is None


def test_this_machine_can_be_read():
    assert " / " in sqlite_files.read_mounts()


SHARED = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "coda", "cvfs", "davfs", "fuse", "fuse.sshfs", "fuse.rclone"),
    *(
        "fuse.osxfs",
        "fuse.grpcfuse",
        "fuse.portal",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "moosefs",
        "ncpfs",
    ),
    *("nfs", "nfs4", "ocfs2", "orangefs", "panfs", "prl_fs", "pvfs2", "smb3", "smbfs", "vboxsf", "virtiofs"),
    *("vmhgfs", "wekafs", "drvfs", "a-kind-of-tomorrow"),
)


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "winnow" / "databases.json"


@pytest.fixture
def path(tmp_path, config):
    (tmp_path / "data").mkdir()
    path = tmp_path / "data" / "winnow.db"
    new_database(path).close()
    return path


def mount(monkeypatch, place, kind):
    table = f"1 0 0:1 / / rw - ext4 /dev/vda rw\n2 1 0:2 / {place} rw - {kind} share rw"
    monkeypatch.setattr(sqlite_files, "read_mounts", lambda: table)


def can_read(path):
    with (
        closing(open_database(f"sqlite:///{path}", read_only=True)) as database,
        database.reading() as session,
    ):
        return session.scalar(text("SELECT count(*) FROM campaigns")) == 0


def can_write(path):
    with closing(open_database(f"sqlite:///{path}")) as database, database.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = version_num"))
    return True


@pytest.mark.parametrize("kind", SHARED)
def test_what_is_not_known_to_be_local_is_refused_to_writers_with_the_remedy(path, monkeypatch, kind):
    mount(monkeypatch, path.parent, kind)
    assert can_read(path)
    with pytest.raises(StorageUnavailable) as refused:
        can_write(path)
    said = str(refused.value)
    assert f"({kind}, mounted at {path.parent})" in said
    assert "use PostgreSQL" in said
    assert said.endswith(f"winnow db allow sqlite:///{path}")


@pytest.mark.parametrize("kind", sorted(LOCAL_KINDS))
def test_what_is_local_is_not(path, monkeypatch, kind):
    mount(monkeypatch, path.parent, kind)
    assert can_write(path)


def test_a_database_is_not_made_on_a_shared_file_system(tmp_path, config, monkeypatch):
    mount(monkeypatch, tmp_path, "nfs4")
    with pytest.raises(StorageUnavailable, match="nfs4"):
        open_database(f"sqlite:///{tmp_path}/winnow.db")
    assert not (tmp_path / "winnow.db").exists()


def test_a_file_with_a_second_name_is_refused_to_writers_under_either(path, tmp_path):
    os.link(path, tmp_path / "other.db")
    for name in (path, tmp_path / "other.db"):
        with pytest.raises(StorageUnavailable, match=r"2 names \(hard links\).*winnow db copy"):
            can_write(name)
        assert can_read(name)
    (tmp_path / "other.db").unlink()
    assert can_write(path)


def test_a_file_that_is_itself_mounted_is_refused_to_writers(path, monkeypatch):
    mount(monkeypatch, path, "ext4")
    with pytest.raises(StorageUnavailable, match="the file itself is a mount point"):
        can_write(path)
    assert can_read(path)


def test_what_a_user_allows_holds_for_that_file_alone(path, tmp_path, config, monkeypatch):
    mount(monkeypatch, tmp_path, "virtiofs")
    assert allow(str(path)) == config
    assert can_write(path)
    with pytest.raises(StorageUnavailable):
        open_database(f"sqlite:///{tmp_path}/data/third.db")
    link = tmp_path / "link.db"
    link.symlink_to(path)
    assert can_write(link)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "of-another-user"))
    with pytest.raises(StorageUnavailable):
        can_write(path)


@pytest.mark.parametrize("held", ["{", "[]", '{"writing_allowed": "all"}', '{"writing_allowed": [1]}'])
def test_a_damaged_list_of_what_is_allowed_ends_in_one_sentence(path, config, monkeypatch, held):
    config.parent.mkdir(parents=True)
    config.write_text(held)
    assert can_write(path)  # where nothing has to be allowed
    mount(monkeypatch, path.parent, "nfs")
    with pytest.raises(StorageError, match="delete it"):
        can_write(path)

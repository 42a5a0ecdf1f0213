"""A large file is read once, and again when anything about it has changed."""

import hashlib
import os
from pathlib import Path

import pytest

from winnow.storage.records.datasets import FileState, store_digests, stored_digests
from winnow.tasks.data import file_digests
from winnow.tasks.data.file_digests import LARGE, file_digest, keep_digests, recall_digests

LATER_NS = 10**18


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """A process that has read nothing, long after all files were written; another one, when called."""

    def begins():
        monkeypatch.setattr(file_digests, "_remembered", {})
        monkeypatch.setattr(file_digests, "_new", {})

    begins()
    monkeypatch.setattr(file_digests.time, "time_ns", lambda: 2 * LATER_NS + 10**19)
    return begins


@pytest.fixture
def reads(monkeypatch):
    """Every file that was read."""
    seen = []
    read = hashlib.file_digest

    def counted(file, name):
        seen.append(Path(os.readlink(f"/proc/self/fd/{file.fileno()}")).name)  # it is opened by a descriptor
        return read(file, name)

    monkeypatch.setattr(file_digests.hashlib, "file_digest", counted)
    return seen


@pytest.fixture
def weights(tmp_path):
    path = tmp_path / "weights.bin"
    path.write_bytes(b"w" * LARGE)
    return path


def test_it_is_sha256_of_all_that_the_file_holds(weights):
    assert file_digest(weights) == hashlib.sha256(b"w" * LARGE).hexdigest()


def test_a_file_is_read_once_in_a_process_and_once_for_a_database(weights, reads, process, database):
    first = file_digest(weights)
    assert file_digest(weights) == first
    keep_digests(database)
    process()
    with database.reading() as session:
        recall_digests(session)
    assert file_digest(weights) == first
    assert reads == ["weights.bin"]


def test_a_link_is_the_file_that_it_leads_to(weights, reads, tmp_path):
    (tmp_path / "link.bin").symlink_to(weights)
    assert file_digest(tmp_path / "link.bin") == file_digest(weights)
    assert len(reads) == 1


def changed_in_place(path):
    found = path.stat()
    with path.open("r+b") as file:
        file.seek(LARGE // 2)
        file.write(b"x")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))  # as a copy that keeps times would


def replaced(path):
    path.with_suffix(".new").write_bytes(b"x" * LARGE)
    path.with_suffix(".new").replace(path)


def grown(path):
    with path.open("ab") as file:
        file.write(b"x")


@pytest.mark.parametrize("change", [changed_in_place, replaced, grown])
def test_a_file_that_changed_is_read_again(weights, reads, database, process, change):
    before = file_digest(weights)
    keep_digests(database)
    change(weights)
    process()
    with database.reading() as session:
        recall_digests(session)
    after = file_digest(weights)
    assert after == hashlib.sha256(weights.read_bytes()).hexdigest() != before
    keep_digests(database)
    process()
    with database.reading() as session:
        recall_digests(session)
    assert file_digest(weights) == after
    assert len(reads) == 2
    with database.reading() as session:
        assert len(stored_digests(session)) == 1


def test_one_that_was_written_to_a_moment_ago_is_not_remembered(weights, reads, monkeypatch):
    written = weights.stat().st_ctime_ns
    monkeypatch.setattr(file_digests.time, "time_ns", lambda: written + file_digests.SETTLED_NS)
    assert file_digest(weights) == file_digest(weights)
    assert len(reads) == 2


def test_small_files_are_read_each_time(tmp_path, reads):
    path = tmp_path / "config.json"
    path.write_bytes(b"{}")
    assert file_digest(path) == file_digest(path)
    assert len(reads) == 2


def test_numbers_of_any_size_and_names_of_any_kind_are_stored(database):
    path = "/" + "long/" * 1000 + "\N{SNOWMAN}"
    state = FileState(path=path, size=2**62, modified_ns=LATER_NS, changed_ns=-1, inode=2**64 - 1)
    for digest in ("a" * 64, "b" * 64):
        with database.writing() as session:
            store_digests(session, {state: digest})
    with database.reading() as session:
        assert stored_digests(session) == {state: "b" * 64}

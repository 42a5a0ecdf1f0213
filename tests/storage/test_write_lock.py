"""Whoever cannot write learns which process keeps it from writing, and what to do about that process."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, contextmanager

import pytest
from sqlalchemy import text
from stored_campaigns import new_database
from waiting import eventually

from winnow.storage.admin.schema import current_revision
from winnow.storage.engine import write_lock
from winnow.storage.engine.database import open_database
from winnow.storage.engine.write_lock import UNSEEN, look_up, writer_of
from winnow.storage.errors import StorageLocked
from winnow.storage.records import campaigns as campaign_records

WRITE_AND_WAIT = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("BEGIN IMMEDIATE")
connection.execute("UPDATE alembic_version SET version_num = 'uncommitted'")
print("writing", flush=True)
input()
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "results.db"
    new_database(path).close()
    return path


@contextmanager
def writer(path):
    """Another process, within a transaction that writes."""
    command = [sys.executable, "-c", WRITE_AND_WAIT, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout.readline() == "writing\n"
            yield process
        finally:
            process.kill()


@pytest.fixture
def impatient(path, monkeypatch):
    monkeypatch.setattr("winnow.storage.engine.database.BUSY_TIMEOUT_MS", 50)
    with closing(open_database(f"sqlite:///{path}")) as database:
        yield database


def write(database):
    with database.writing() as session:
        session.execute(text("UPDATE campaigns SET name = name"))


def refusal(database):
    with pytest.raises(StorageLocked) as refused:
        write(database)
    return str(refused.value)


def test_a_writer_that_is_frozen_is_named_with_what_wakes_and_what_ends_it(path, impatient):
    with writer(path) as process:
        process.send_signal(signal.SIGSTOP)
        assert eventually(lambda: look_up(process.pid).state == "T")
        said = refusal(impatient)
        assert f"process {process.pid} holds its write lock and is frozen within a transaction" in said
        assert f"the results database sqlite:///{path} is locked: " in said
        assert "check that the path" not in said
        assert "\n" not in said
        with impatient.reading() as session:  # readers go on
            assert campaign_records.campaigns(session) == []
        subprocess.run(re.search(r"kill -KILL \d+", said)[0].split(), check=True)
        process.wait()
    write(impatient)
    assert current_revision(impatient) != "uncommitted"


def test_a_writer_that_is_woken_as_told_lets_others_write(path, impatient):
    with writer(path) as process:
        process.send_signal(signal.SIGSTOP)
        assert eventually(lambda: look_up(process.pid).state == "T")
        subprocess.run(re.search(r"kill -CONT \d+", refusal(impatient))[0].split(), check=True)
        process.communicate("\n")
    write(impatient)


def test_a_writer_that_is_busy_is_named(path, impatient):
    with writer(path) as process:
        said = refusal(impatient)
        assert (
            f"in 0.05 s its write lock was not released, and process {process.pid} holds it; wait until"
            in said
        )
        assert "frozen" not in said
    write(impatient)


def test_a_writer_in_this_very_process_is_named_as_such(path, impatient):
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert f"another thread of this process ({os.getpid()}) is writing" in refusal(impatient)


def test_to_ask_who_writes_takes_no_lock_from_this_process(path, impatient):
    """A file that is closed drops all locks of its process, those of its connections included."""
    with impatient.writing() as session:
        session.execute(text("UPDATE campaigns SET name = name"))
        assert writer_of(str(path)) == os.getpid()
        with writer_that_is_refused(path) as other:
            assert "database is locked" in other.communicate()[1]
    assert writer_of(str(path)) is None


@contextmanager
def writer_that_is_refused(path):
    command = [sys.executable, "-c", WRITE_AND_WAIT.replace("level=None", "level=None, timeout=0"), str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        yield process


def test_a_file_in_an_older_mode_is_asked_about_too(path):
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
    with writer(path) as process:
        assert writer_of(str(path)) == process.pid


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (UNSEEN, "is not visible here holds it, such as one in another container: wake or end that process"),
        (None, "no visible process holds it now; run the command again"),
    ],
)
def test_what_cannot_be_seen_is_not_named(path, impatient, monkeypatch, found, said):
    monkeypatch.setattr(write_lock, "writer_of", lambda _: found)
    with writer(path):
        assert said in refusal(impatient)


@pytest.mark.parametrize("statement", ["VACUUM"])
def test_what_no_transaction_may_hold_is_refused_alike(path, impatient, statement):
    with writer(path) as process:
        with pytest.raises(StorageLocked) as refused, impatient.outside_transactions() as run:
            run(statement)
        assert f"process {process.pid} holds it" in str(refused.value)


@pytest.mark.parametrize("backend", ["postgresql"])
def test_the_session_that_writes_to_postgresql_is_named_with_what_ends_it(campaign, monkeypatch):
    monkeypatch.setattr("winnow.storage.engine.database.BUSY_TIMEOUT_MS", 50)
    with closing(open_database(campaign.database.url)) as impatient:
        with campaign.database.writing() as session:
            backend = session.scalar(text("SELECT pg_backend_pid()"))
            said = refusal(impatient)
            assert f"session {backend} (winnow, process {os.getpid()} on " in said
            assert f"SELECT pg_terminate_backend({backend})" in said
            session.rollback()
        write(impatient)

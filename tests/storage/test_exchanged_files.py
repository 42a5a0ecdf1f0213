"""A SQLite file that another one replaces, or writes into, while it is open: nothing is lost in silence."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing, suppress

import pytest
from sqlalchemy import text
from stored_campaigns import new_database

from winnow.storage.engine import sqlite
from winnow.storage.engine.database import open_database
from winnow.storage.errors import StorageUnavailable

OTHER = """
import sqlite3, sys
with sqlite3.connect(sys.argv[1]) as connection:
    connection.execute("INSERT INTO prompts (digest, text) VALUES ('d', 'theirs')")
connection.close()
"""

COUNT = text("SELECT count(*) FROM datasets")


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "results.db"
    new_database(path).close()
    return path


@pytest.fixture
def database(path):
    with closing(open_database(f"sqlite:///{path}")) as database:
        write(database)
        yield database


def write(database, meanwhile=lambda: None):
    with database.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = version_num"))
        meanwhile()


def replace(path):
    shutil.copy(path, f"{path}.copy")
    os.replace(f"{path}.copy", path)


def test_what_replaces_a_file_ends_the_next_transaction_before_it_writes(database, path):
    replace(path)
    with pytest.raises(StorageUnavailable, match=r"replaced by another file.*copy was made are not in it"):
        write(database)


def test_another_connection_does_not_open_the_other_file_either(database, path):
    with database.reading() as session:  # which holds the pool's connection
        session.execute(COUNT)
        replace(path)
        with pytest.raises(StorageUnavailable, match="replaced by another file"), database.reading() as other:
            other.execute(COUNT)


def test_a_transaction_whose_file_is_replaced_while_it_writes_says_that_it_is_lost(database, path):
    with pytest.raises(StorageUnavailable, match="rows that were stored last are not in it"):
        write(database, meanwhile=lambda: replace(path))


def test_a_file_that_is_removed_is_no_place_to_write_to(database, path):
    path.unlink()
    with pytest.raises(StorageUnavailable, match="it was removed while it was open"):
        write(database)


def test_after_a_refusal_the_file_that_is_there_can_be_opened(database, path):
    replace(path)
    with pytest.raises(StorageUnavailable):
        write(database)
    database.close()
    with closing(open_database(f"sqlite:///{path}")) as anew:
        write(anew)


def test_a_change_of_the_working_folder_is_no_other_file(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with closing(open_database(f"sqlite:///{path.name}")) as database:
        write(database)
        (tmp_path / "elsewhere").mkdir()
        monkeypatch.chdir(tmp_path / "elsewhere")
        write(database)


def test_a_log_that_is_removed_ends_the_next_transaction_and_all_that_was_stored_is_kept(database, path):
    store(database, "kept")
    log_of(path).unlink()
    with pytest.raises(StorageUnavailable, match=r"results\.db-wal beside it was removed while it was open"):
        store(database, "refused")
    database.close()
    assert stored_in(path) == ["kept"]


def test_what_others_store_once_the_log_is_removed_is_not_written_over(database, path):
    store(database, "lost")
    for end in ("-wal", "-shm"):
        log_of(path, end).unlink()
    subprocess.run([sys.executable, "-c", OTHER, path], check=True)
    with pytest.raises(StorageUnavailable, match=r"db-wal beside it was replaced.*stored last may be lost"):
        store(database, "refused")
    database.close()
    assert stored_in(path) == ["theirs"]


def test_a_log_that_sqlite_itself_makes_anew_is_no_other_one(path):
    with closing(open_database(f"sqlite:///{path}")) as database:
        for number in range(3):
            store(database, str(number))
            database.close()  # its last connection, which removes the log
    assert stored_in(path) == ["0", "1", "2"]


def test_a_log_that_is_emptied_where_it_stands_is_noticed(database, path):
    store(database, "lost")
    log_of(path).write_bytes(b"")
    with pytest.raises(StorageUnavailable, match=r"another program wrote into its files.*may be lost"):
        store(database, "refused")


def test_an_older_log_written_into_the_open_one_is_noticed(database, path):
    store(database, "kept")
    older = log_of(path).read_bytes()
    store(database, "lost")
    log_of(path).write_bytes(older)
    with pytest.raises(StorageUnavailable, match="another program wrote into its files"):
        store(database, "refused")


def test_an_older_log_written_into_the_open_one_after_a_restart_is_noticed(database, path):
    store(database, "kept")
    older = log_of(path).read_bytes()
    checkpoint(path)
    store(database, "lost")
    log_of(path).write_bytes(older)
    with pytest.raises(StorageUnavailable, match="another program wrote into its files"):
        store(database, "refused")


@pytest.mark.parametrize("looks", [False, True])
def test_an_older_copy_written_into_the_open_file_is_noticed(database, path, looks):
    checkpoint(path)
    older = path.read_bytes()
    store(database, "lost")
    checkpoint(path)
    if looks:
        store(database, "lost too")
        checkpoint(path)
    with path.open("r+b") as file:
        file.write(older)
        file.truncate()
    with pytest.raises(StorageUnavailable, match="another program wrote into its files"):
        store(database, "refused")


def test_what_other_programs_store_and_tidy_up_by_sqlite_itself_is_no_overwriting(path, monkeypatch):
    monkeypatch.setattr(
        sqlite, "WAL_PAGES", 5
    )  # a checkpoint, and a restart of the log, at most transactions
    tidying = ["PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM", "PRAGMA wal_checkpoint(RESTART)", "ANALYZE"]
    with (
        closing(open_database(f"sqlite:///{path}")) as one,
        closing(open_database(f"sqlite:///{path}")) as two,
    ):
        for number in range(40):
            store(one, f"one {number}")
            with suppress(ZeroDivisionError):
                store(two, "rolled back " + "x" * 100_000, then=lambda: 1 // 0)
            store(two, f"two {number}")
            with closing(sqlite3.connect(path)) as other:
                other.execute(tidying[number % 4])
                other.execute("INSERT INTO prompts (digest, text) VALUES (?, 'other')", (str(number),))
                other.commit()
    assert len(stored_in(path)) == 120


def checkpoint(path):
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(RESTART)")


def log_of(path, end="-wal"):
    return path.with_name(path.name + end)


def store(database, name, then=lambda: None):
    with database.writing() as session:
        values = {"name": name, "digest": name.rjust(64, "0")}
        session.execute(text("INSERT INTO prompts (digest, text) VALUES (:digest, :name)"), values)
        then()


def stored_in(path):
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT text FROM prompts ORDER BY id")]

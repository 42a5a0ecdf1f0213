"""A SQLite file that another one replaces while it is open: nothing is lost in silence."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from sqlalchemy import text
from stored_campaigns import new_database

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


def log_of(path, end="-wal"):
    return path.with_name(path.name + end)


def store(database, name):
    with database.writing() as session:
        values = {"name": name, "digest": name.rjust(64, "0")}
        session.execute(text("INSERT INTO prompts (digest, text) VALUES (:digest, :name)"), values)


def stored_in(path):
    with closing(sqlite3.connect(path)) as connection:
        return [name for (name,) in connection.execute("SELECT text FROM prompts ORDER BY id")]

"""The migrations create what the models say, and only a database of this release is used."""

import re
import sqlite3
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from subprocess import PIPE, Popen

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import event, inspect, text, update

from winnow.storage.admin.schema import (
    HEAD,
    REVISIONS,
    current_revision,
    ensure_schema,
    require_schema,
    upgrade,
)
from winnow.storage.engine import statements
from winnow.storage.engine.database import open_database
from winnow.storage.errors import (
    SchemaDiffers,
    SchemaForeign,
    SchemaMissing,
    SchemaOutdated,
    SchemaTooNew,
    StorageUnavailable,
)
from winnow.storage.migrations.settings import alembic_config, rewriting
from winnow.storage.models import Base, Campaign

SQLITE = pytest.mark.parametrize("backend", ["sqlite"], indirect=True)


@pytest.fixture
def url(database_url):
    return database_url


@pytest.fixture
def opened(url):
    """A database without any table."""
    database = open_database(url)
    yield database
    database.close()


def tables(database):
    with database.engine.connect() as connection:
        return set(inspect(connection).get_table_names())


def stamp(database, revision):
    with database.writing() as session:
        session.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})


def test_every_revision_goes_up_and_down_and_up_again(opened):
    config = alembic_config(opened)
    for revision in REVISIONS:
        command.upgrade(config, revision)
        above = tables(opened)
        command.downgrade(config, "-1")
        below = tables(opened)
        command.upgrade(config, revision)
        assert tables(opened) == above
        assert revision != "0001" or below == {"alembic_version"}
    assert current_revision(opened) == HEAD


@pytest.mark.filterwarnings(
    "ignore:Skipped unsupported reflection of expression-based index",
    "ignore:autogenerate skipping metadata-specified expression-based index",
)
def test_the_migrations_lead_to_what_the_models_say(opened):
    config = alembic_config(opened)
    command.upgrade(config, "head")
    command.check(config)
    assert tables(opened) == {*Base.metadata.tables, "alembic_version"}


@SQLITE
def test_the_migrations_create_the_very_constraints_and_indexes_of_the_models(opened, tmp_path):
    command.upgrade(alembic_config(opened), "head")
    from_models = open_database(f"sqlite:///{tmp_path / 'models.db'}")
    with from_models.writing() as session:
        Base.metadata.create_all(session.connection())
    assert definitions(opened) == definitions(from_models)
    from_models.close()


def test_every_id_is_one_that_is_never_given_twice(opened):
    upgrade(opened)
    with opened.reading() as session:
        for table in Base.metadata.sorted_tables:
            if "id" not in table.columns:
                continue
            if opened.is_postgresql:
                assert session.scalar(text(f"SELECT pg_get_serial_sequence('{table.name}', 'id')"))
            else:
                query = text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :name")
                assert "AUTOINCREMENT" in session.scalar(query, {"name": table.name})


def definitions(database):
    """Every table and index with the set of its clauses; Alembic's own check does not see all constraints."""
    with database.reading() as session:
        _, rows = statements.run_sql(
            session, "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND type <> 'view'"
        )
        return {
            name: set(
                re.split(
                    r", (?![^(]*\))",
                    " ".join(sql.replace(f'TABLE "{name}"', f"TABLE {name}").split())
                    .removesuffix(")")
                    .rstrip(),
                )
            )
            for name, sql in rows
            if name != "alembic_version"
        }


def test_the_revisions_read_from_file_names_are_those_of_alembic(opened):
    scripts = ScriptDirectory.from_config(alembic_config(opened))
    assert [script.revision for script in scripts.walk_revisions()][::-1] == REVISIONS
    assert scripts.get_heads() == [HEAD]


def test_an_upgrade_of_a_current_database_changes_nothing(opened):
    assert upgrade(opened) == (None, HEAD)
    assert upgrade(opened) == (HEAD, HEAD)


def test_a_migration_that_fails_leaves_nothing_behind(opened):
    with opened.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE judgments (x INTEGER)")  # the last table of 0001
    with pytest.raises(StorageUnavailable, match=r"\bjudgments\b.* already exists"):
        upgrade(opened)
    assert tables(opened) <= {"judgments", "alembic_version"}
    assert current_revision(opened) is None


def test_another_programs_table_is_in_the_way_and_told_with_the_remedy(opened):
    with opened.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE datasets (x INTEGER)")
    with pytest.raises(
        StorageUnavailable, match=r"exists; name an empty database, or .* CREATE SCHEMA winnow"
    ):
        ensure_schema(opened)


@pytest.mark.parametrize("revision", ["d3e4f5a6b7c8", HEAD])
def test_the_revision_of_another_program_is_not_taken_for_winnows(opened, revision):
    with opened.engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num VARCHAR(32))")
        connection.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{revision}')")
    for asked in (require_schema, ensure_schema, upgrade):
        with pytest.raises(
            SchemaForeign, match=rf"of another program \(revision {revision}\): name an empty"
        ):
            asked(opened)
    assert tables(opened) == {"alembic_version"}


CREATING = """
import os, sys
import alembic.command, psycopg
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import open_database

for _ in range(3):
    if os.fork() == 0:
        try:
            database = open_database(sys.argv[1])
            os.write(1, b"ready\\n")
            os.read(0, 1)
            ensure_schema(database)
            os.write(1, b"done\\n")
        except Exception as error:  # the lines that are waited for come in any case
            os.write(1, f"{error!r}\\n".encode())
        finally:
            os._exit(0)
for _ in range(3):
    os.wait()
"""
"""Three processes, which share the time that imports take, and wait for a byte each."""


def test_processes_that_create_the_tables_at_once_do_not_trip_over_each_other(url):
    with Popen([sys.executable, "-c", CREATING, url], stdin=PIPE, stdout=PIPE, text=True) as running:
        assert [running.stdout.readline() for _ in range(3)] == ["ready\n"] * 3
        assert running.communicate("all")[0] == "done\n" * 3


def test_threads_that_create_tables_at_once_do_not_trip_over_each_other(url, tmp_path):
    """Alembic's surroundings are those of the process, also where each thread has a database of its own."""
    urls = [url, url, url, *(f"sqlite:///{tmp_path}/own-{number}.db" for number in range(3))]

    def create(url):
        with closing(open_database(url)) as database:
            barrier.wait()
            ensure_schema(database)
            return current_revision(database)

    barrier = threading.Barrier(len(urls))
    with ThreadPoolExecutor(len(urls)) as pool:
        assert set(pool.map(create, urls)) == {HEAD}


def held_lock(connection):
    """How a transaction of PostgreSQL's that has just begun, began."""
    held = (
        "SELECT count(*) FROM pg_locks WHERE mode = 'ShareUpdateExclusiveLock' AND pid = pg_backend_pid() "
        "AND relation = to_regclass('alembic_version')"
    )
    ((count,),) = connection.connection.driver_connection.execute(held).fetchall()
    return "BEGIN with the lock" if count else "BEGIN"


def test_a_migration_takes_the_write_lock_before_it_looks_what_is_to_be_done(opened):
    lock = "BEGIN with the lock" if opened.is_postgresql else "BEGIN IMMEDIATE"
    statements = []
    event.listen(opened.engine, "before_cursor_execute", lambda *call: statements.append(call[2]))
    if opened.is_postgresql:
        event.listen(opened.engine, "begin", lambda connection: statements.append(held_lock(connection)))
    upgrade(opened)
    begun = [each for each in statements if each.startswith(("BEGIN", "\nCREATE"))]
    assert begun[: begun.index(next(each for each in begun if "CREATE" in each))][-1].startswith(lock)


@SQLITE
@pytest.mark.parametrize("locks", [["BEGIN EXCLUSIVE"], ["BEGIN IMMEDIATE"]])
def test_a_new_file_that_another_process_has_locked_is_waited_for(opened, url, locks):
    locker = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None, check_same_thread=False)
    for statement in locks:
        locker.execute(statement).fetchall()
    unlock = threading.Timer(0.2, locker.execute, ["ROLLBACK"])
    unlock.start()
    ensure_schema(opened)
    unlock.join()
    locker.close()
    assert current_revision(opened) == HEAD


def test_an_older_schema_is_refused_with_the_command_that_upgrades_it(opened, url, monkeypatch):
    upgrade(opened)
    monkeypatch.setattr("winnow.storage.admin.schema.HEAD", "9998")
    monkeypatch.setattr("winnow.storage.admin.schema.REVISIONS", [*REVISIONS, "9998"])
    for demand in (require_schema, ensure_schema):
        with pytest.raises(SchemaOutdated) as refused:
            demand(opened)
        assert f"winnow db upgrade --storage {url}" in str(refused.value)
        assert (refused.value.found, refused.value.expected) == (HEAD, "9998")


def test_a_newer_schema_is_refused_by_reading_writing_and_upgrading(opened, url):
    upgrade(opened)
    stamp(opened, "9999")
    for demand in (require_schema, ensure_schema, upgrade):
        with pytest.raises(
            SchemaTooNew, match=r"9999.*install the Winnow that wrote the database"
        ) as refused:
            demand(opened)
        assert url in str(refused.value)


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            "ALTER TABLE generations RENAME COLUMN latency TO lag",
            "it lacks generations.latency and has generations.lag, unknown to this Winnow; an",
        ),
        (
            "ALTER TABLE rounds ADD COLUMN width INTEGER",
            "it has rounds.width, unknown to this Winnow",
        ),
        ("DROP TABLE bets", "is damaged: its table bets is missing; restore a backup"),
    ],
)
def test_tables_that_are_not_those_of_their_revision_are_refused(opened, statement, told):
    upgrade(opened)
    with opened.writing() as session:
        session.execute(text(statement))
    for demand in (require_schema, ensure_schema, upgrade):
        with pytest.raises(SchemaDiffers, match="name a new database") as refused:
            demand(opened)
        assert told in str(refused.value)


def test_a_database_without_our_tables_is_refused_by_who_only_reads(opened, url):
    with pytest.raises(SchemaMissing, match="run a campaign first") as refused:
        require_schema(opened)
    assert url in str(refused.value)


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize(
    ("place", "to_write", "to_read"),
    [
        ("notes.txt", "file is not a database", "file is not a database"),
        ("notes.txt/results.db", "is not a database: Not a directory", "there is no such file"),
        ("nowhere/results.db", "unable to open database file", "there is no such file"),
        (".", *["is not a database: it is a folder"] * 2),
    ],
)
def test_a_place_that_holds_no_database_is_named_with_a_remedy(tmp_path, place, to_write, to_read, read_only):
    complaint = to_read if read_only else to_write
    (tmp_path / "notes.txt").write_text("no database at all, only some text\n" * 100)
    url = f"sqlite:///{tmp_path / place}"
    database = open_database(url, read_only=read_only)
    with pytest.raises(StorageUnavailable, match=complaint) as refused:
        require_schema(database) if read_only else ensure_schema(database)
    assert url in str(refused.value)
    remedy = "name another file" if place == "notes.txt" else "check that the path or server exists"
    if place.endswith("results.db") and read_only:
        remedy = "name another by --storage sqlite:///FILE"
    assert remedy in str(refused.value)
    database.close()


def test_a_damaged_file_is_said_to_be_damaged_with_how_to_save_what_is_left(tmp_path):
    url = f"sqlite:///{tmp_path}/w.db"
    database = open_database(url)
    ensure_schema(database)
    database.close()
    whole = (tmp_path / "w.db").read_bytes()
    (tmp_path / "w.db").write_bytes(whole[: len(whole) // 2])
    database = open_database(url, read_only=True)
    with pytest.raises(StorageUnavailable, match=r"malformed; the file is damaged: .* \.recover"):
        require_schema(database)
    database.close()


@SQLITE
def test_a_reader_does_not_create_the_file_it_was_to_read(tmp_path, url):
    database = open_database(url, read_only=True)
    with pytest.raises(StorageUnavailable):
        require_schema(database)
    database.close()
    assert list(tmp_path.iterdir()) == []


def test_who_opens_read_only_cannot_write(opened, url):
    upgrade(opened)
    reader = open_database(url, read_only=True)
    with (
        pytest.raises(StorageUnavailable, match=r"readonly|read-only transaction"),
        reader.writing() as session,
    ):
        session.add(Campaign(name="x"))
    with (
        pytest.raises(StorageUnavailable, match=r"readonly|read-only transaction"),
        reader.reading() as session,
    ):
        session.execute(update(Campaign).values(name="x"))
    reader.close()


@pytest.mark.parametrize(
    "url",
    [
        "mysql+nothing://ann:secret@host/x",
        "postgresql://ann:secret@host:port/x",
        "postgresql+asyncpg://ann:secret@host/x",
        "mysql://ann@host/x?password=secret",
    ],
)
def test_a_url_that_cannot_be_opened_is_refused_without_its_password(url):
    with pytest.raises(StorageUnavailable, match="its URL cannot be read") as refused:
        open_database(url)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "remedy"),
    [
        ("postgres://ann:secret@host/x", "or postgresql://USER@HOST/DATABASE"),
        ("postgresql://ann:secret@cret@host/x", "write each @ of a name or a password as %40"),
        ("sqlite:/w.db", "here: sqlite:///w.db"),
        ("sqlite:w.db", "here: sqlite:///w.db"),
        ("postgresql://ann:***@host/x", "write the password there, or set WINNOW_STORAGE to the whole URL"),
    ],
)
def test_a_url_that_is_not_written_as_it_should_be_is_told_how(url, remedy):
    with pytest.raises(StorageUnavailable) as refused:
        open_database(url)
    assert remedy in str(refused.value)
    assert "server exists" not in str(refused.value)  # which would be another remedy, and no help
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize(("path", "url"), [("w.db", "sqlite:///w.db"), ("", "sqlite:///winnow.db")])
def test_a_path_in_the_place_of_a_url_is_told_how_it_is_written(path, url):
    with pytest.raises(StorageUnavailable, match=f"not a URL; for a file write {url}"):
        open_database(path)


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite:///:memory:"])
def test_a_database_in_memory_is_refused_because_it_would_forget(url):
    with pytest.raises(StorageUnavailable, match="name a file"):
        open_database(url)


def test_ctrl_c_within_a_migration_is_handed_on(tmp_path):
    with ExitStack() as stack:
        stack.enter_context(pytest.raises(KeyboardInterrupt))
        database = stack.enter_context(closing(open_database(f"sqlite:///{tmp_path}/winnow.db")))
        connection = stack.enter_context(rewriting(database))
        connection.invalidate()  # as SQLAlchemy does when a statement is interrupted
        raise KeyboardInterrupt

"""Other programs at the file of SQLite, and copies and halves of it that are put in its place."""

import os
import shutil
import sqlite3
from collections.abc import Generator
from contextlib import closing
from pathlib import Path

import psycopg

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, die, hold

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
IN_A_BATCH = At("before a batch", 3, hold)
LATE = At("before a batch", 5, die)
READERS = 10


@fault("a stranger reads in one transaction until its end", *OBJECTIVES, codes=DONE, states=SETTLED)
def long_reader(scene: Scene) -> Meeting:
    scene.cut_short()
    with closing(sqlite3.connect(scene.database, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        assert reader.execute("SELECT count(*) FROM campaigns").fetchall() == [(1,)]
        yield scene.resume().ended()


@fault("a stranger reads in one transaction until its end on a server", *OBJECTIVES, codes=DONE,
       states=SETTLED, databases=("postgresql",))  # fmt: skip
def long_reader_on_a_server(scene: Scene) -> Meeting:
    scene.cut_short()
    with psycopg.connect(scene.storage.replace("+psycopg", "")) as reader:
        reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        assert reader.execute("SELECT count(*) FROM campaigns").fetchall() == [(1,)]
        yield scene.resume().ended()


@fault("a stranger turns the write-ahead log off", *OBJECTIVES, codes=DONE, states=SETTLED)
def no_log(scene: Scene) -> Meeting:
    scene.cut_short()
    _told(scene, "PRAGMA journal_mode = DELETE")
    yield scene.resume().ended()


@fault("a stranger vacuums the file between processes", "best-mean", "certify", codes=DONE, states=SETTLED)
def vacuumed(scene: Scene) -> Meeting:
    scene.cut_short()
    _told(scene, "VACUUM")
    yield scene.resume().ended()


@fault("a stranger vacuums the file within a batch", *OBJECTIVES, codes=DONE, states=SETTLED)
def vacuumed_beside(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    _told(scene, "VACUUM")
    yield run.go().ended()


@fault("a stranger moves the write-ahead log to the file all the while", "best-mean", "route", codes=DONE,
       states=SETTLED)  # fmt: skip
def checkpointed(scene: Scene) -> Meeting:
    run = scene.run(At("before a batch", 1, hold)).held().go()
    with closing(sqlite3.connect(scene.database, isolation_level=None, timeout=60.0)) as stranger:
        while run.process.exitcode is None:
            stranger.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            run.process.join(0.01)
    yield run.ended()


@fault(
    "a stranger has a table of their own in the file", "best-mean", "best-duel", codes=DONE, states=SETTLED
)
def own_table(scene: Scene) -> Meeting:
    scene.cut_short()
    _told(scene, "CREATE TABLE notes(id INTEGER PRIMARY KEY, text); INSERT INTO notes VALUES (1, 'mine')")
    yield scene.resume().ended()


@fault("an older copy of the file is put back", *OBJECTIVES, codes=DONE, states=SETTLED)
def older_copy(scene: Scene) -> Meeting:
    scene.run(At("a round is done", 1, die)).ended()
    copy = copied(scene)
    scene.resume(LATE).ended()
    put_in_its_place(scene, copy)
    yield scene.resume().ended()


@fault("a copy that was made within a batch is gone on with", *OBJECTIVES, codes=DONE, states=SETTLED)
def copy_of_a_running_one(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    copy = copied(scene)
    run.process.kill()
    run.ended()
    put_in_its_place(scene, copy)
    yield scene.resume().ended()


@fault("the end of the write-ahead log is lost, as when the power goes", *OBJECTIVES, codes=DONE,
       states=SETTLED)  # fmt: skip
def half_a_log(scene: Scene) -> Meeting:
    scene.run(At("a round is done", 1, die)).ended()
    log = _part(scene, "-wal")
    first = log.stat().st_size
    scene.resume(LATE).ended()
    size = log.stat().st_size
    os.truncate(log, first + (size - first) // 2 if size > first else size // 2)
    _part(scene, "-shm").unlink(missing_ok=True)
    yield scene.resume().ended()


@fault("the write-ahead log ends in bytes of something else", *OBJECTIVES, codes=DONE, states=SETTLED)
def torn_log(scene: Scene) -> Meeting:
    scene.cut_short()
    with _part(scene, "-wal").open("ab") as log:
        log.write(os.urandom(9_000))
    yield scene.resume().ended()


@fault("the index of the write-ahead log is of something else", *OBJECTIVES, codes=DONE, states=SETTLED)
def garbled_index(scene: Scene) -> Meeting:
    scene.cut_short()
    _part(scene, "-shm").write_bytes(os.urandom(32_768))
    yield scene.resume().ended()


@fault("ten processes read it all the while", *OBJECTIVES, codes=DONE, states=SETTLED,
       databases=("sqlite", "postgresql"))  # fmt: skip
def read_by_ten(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    asked = ("status",), ("query", "survivor", "leaderboard"), ("report", "survivor"), ("list",)
    arguments = [(*asked[number % len(asked)], "--storage", scene.storage) for number in range(READERS)]
    readers = [scene.command(*each) for each in arguments]
    run.go()
    for reader in readers:
        assert reader.code == 0, reader.said
    yield run.ended()


def _told(scene: Scene, statements: str) -> None:
    with closing(sqlite3.connect(scene.database, isolation_level=None, timeout=30.0)) as stranger:
        stranger.executescript(statements)


def copied(scene: Scene) -> Path:
    """A copy as a backup makes it, of what is committed."""
    copy = scene.folder / "copy.db"
    with closing(sqlite3.connect(scene.database)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    return copy


def put_in_its_place(scene: Scene, copy: Path) -> None:
    """Have a copy be the database."""
    for part in ("-wal", "-shm"):
        _part(scene, part).unlink(missing_ok=True)
    shutil.copy(copy, scene.database)


def _part(scene: Scene, part: str) -> Path:
    return scene.database.with_name(scene.database.name + part)

"""A database file that is locked, gone, no database, on a full disk, or may not be written."""

import os
import shutil
import sqlite3
import time
from collections.abc import Generator
from contextlib import closing
from functools import partial
from pathlib import Path

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, disk_of, hold, impatient, mounted_as

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
ERROR = (1,)
PATIENCE_MS = 800
IN_A_BATCH = At("before a batch", 3, hold)
PARTS = ("", "-wal", "-shm")


@fault("SQLite is locked by another process for two seconds", *OBJECTIVES, codes=DONE, states=SETTLED)
def locked_for_a_while(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    with closing(_locked(scene)) as other:
        run.go()
        time.sleep(2.0)
        other.execute("ROLLBACK")
    yield run.ended()


@fault("SQLite is locked for longer than a writer waits", *OBJECTIVES, codes=ERROR)
def locked_for_too_long(scene: Scene) -> Meeting:
    run = scene.run(partial(impatient, PATIENCE_MS), IN_A_BATCH).held()
    with closing(_locked(scene)):
        yield run.go().ended()


@fault("the database file is moved away within a batch", "best-mean", codes=(*DONE, 1), states=(None,))
def moved_away(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    away = scene.folder / "away"
    away.mkdir()
    _move(scene.folder, away, scene.database.name)
    yield run.go().ended()
    for part in PARTS:
        (scene.folder / f"{scene.database.name}{part}").unlink(missing_ok=True)
    _move(away, scene.folder, scene.database.name)


@fault("a copy replaces the database file within a batch", *OBJECTIVES, codes=ERROR)
def replaced(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    copy = scene.folder / "copy"
    with closing(sqlite3.connect(scene.database)) as old, closing(sqlite3.connect(copy)) as new:
        old.backup(new)
    copy.replace(scene.database)
    for part in PARTS[1:]:
        (scene.folder / f"{scene.database.name}{part}").unlink(missing_ok=True)
    run.go().ended()
    assert "replaced by another file" in run.said, run.said
    yield run


@fault("the database file is gone at resume", "best-mean", codes=ERROR, states=(None,))
def gone(scene: Scene) -> Meeting:
    scene.cut_short()
    away = scene.folder / "away"
    away.mkdir()
    _move(scene.folder, away, scene.database.name)
    yield scene.resume().ended()
    assert not scene.database.exists(), "an empty database was made in its place"
    _move(away, scene.folder, scene.database.name)


@fault("the database file is no database at resume", "best-mean", codes=ERROR, states=(None,))
def no_database(scene: Scene) -> Meeting:
    scene.cut_short()
    away = scene.folder / "away"
    away.mkdir()
    _move(scene.folder, away, scene.database.name)
    scene.database.write_bytes(os.urandom(8192))
    yield scene.resume().ended()
    scene.database.unlink()
    _move(away, scene.folder, scene.database.name)


@fault("the disk of the database is full", *OBJECTIVES, codes=ERROR)
def full(scene: Scene) -> Meeting:
    scene.cut_short()
    with closing(sqlite3.connect(scene.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    # Room for what is there and the pages of a transaction or two; other files are smaller.
    yield scene.resume(partial(disk_of, 24 * 1024)).ended()


@fault("the database may only be read", "best-mean", codes=ERROR)
def read_only(scene: Scene) -> Meeting:
    scene.cut_short()
    with closing(sqlite3.connect(scene.database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    yield scene.resume(partial(_as_nobody, str(scene.folder))).ended()
    for path in scene.folder.glob(f"{scene.database.name}-*"):
        path.unlink()


@fault("the database is on a network file system", *OBJECTIVES, codes=ERROR, states=(None,))
def on_a_network(scene: Scene) -> Meeting:
    yield scene.run(partial(mounted_as, "nfs4", str(scene.folder))).ended()
    assert not scene.database.exists(), "a database was made on it"


@fault("the database's folder is on a network file system at resume", *OBJECTIVES, codes=ERROR)
def moved_to_a_network(scene: Scene) -> Meeting:
    scene.cut_short()
    run = scene.resume(partial(mounted_as, "cifs", str(scene.folder))).ended()
    assert "PostgreSQL" in run.said, run.said
    yield run


@fault("the database's file has a second name at resume", *OBJECTIVES, codes=ERROR)
def named_twice(scene: Scene) -> Meeting:
    scene.cut_short()
    other = scene.folder / "another-name"
    os.link(scene.database, other)
    run = scene.resume().ended()
    assert "2 names" in run.said, run.said
    yield run
    other.unlink()


@fault("the disk fails under a commit", "best-mean", codes=ERROR)
def failing(scene: Scene) -> Meeting:
    error = sqlite3.OperationalError("disk I/O error")
    yield scene.run(At("before a commit", 6, partial(_fail_as_driver, error.args[0]))).ended()


def _locked(scene: Scene) -> sqlite3.Connection:
    """Another process's transaction that lets nobody write."""
    connection = sqlite3.connect(scene.database, isolation_level=None, timeout=30.0)
    connection.execute("BEGIN EXCLUSIVE")
    return connection


def _move(source: Path, target: Path, name: str) -> None:
    for part in PARTS:
        if (source / f"{name}{part}").exists():
            shutil.move(source / f"{name}{part}", target / f"{name}{part}")


def _as_nobody(folder: str) -> None:
    """Be a user who may read the folder and write nothing in it but logs."""
    nobody = 65534
    for path in Path(folder).rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for name in ("logs", ".winnow"):
        (Path(folder) / name).mkdir(exist_ok=True)
    for path in [Path(folder), *Path(folder).parents][:3]:
        path.chmod(path.stat().st_mode | 0o555)
    if os.geteuid() == 0:
        os.setgid(nobody)
        os.setuid(nobody)


def _fail_as_driver(message: str) -> None:
    from sqlalchemy.exc import OperationalError

    raise OperationalError("COMMIT", {}, sqlite3.OperationalError(message))

"""A PostgreSQL server that dies, restarts, cuts connections off, refuses them, or may only be read."""

import os
import signal
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial

import psycopg

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, hold, impatient, unpublished

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
ERROR = (1,)
POSTGRESQL = ("postgresql",)
IN_A_BATCH = At("before a batch", 3, hold)
LOCK = "LOCK TABLE alembic_version IN SHARE UPDATE EXCLUSIVE MODE"


@fault("PostgreSQL is killed within a batch, and is back", *OBJECTIVES, codes=ERROR, databases=POSTGRESQL)
def killed(scene: Scene) -> Meeting:
    run = scene.run(unpublished, IN_A_BATCH).held()
    scene.server.kill()
    scene.server.start()
    yield run.go().ended()


@fault(
    "PostgreSQL is killed within a batch, and stays away",
    "best-mean",
    codes=ERROR,
    states=(None,),
    databases=POSTGRESQL,
)
def killed_for_long(scene: Scene) -> Meeting:
    run = scene.run(unpublished, IN_A_BATCH).held()
    scene.server.kill()
    try:
        yield run.go().ended()
    finally:
        scene.server.start()


@fault("PostgreSQL is restarted within a batch", "best-mean", codes=ERROR, databases=POSTGRESQL)
def restarted(scene: Scene) -> Meeting:
    run = scene.run(unpublished, IN_A_BATCH).held()
    scene.server.stop()
    scene.server.start()
    yield run.go().ended()


@fault("pg_terminate_backend of all connections", *OBJECTIVES, codes=ERROR, databases=POSTGRESQL)
def terminated(scene: Scene) -> Meeting:
    run = scene.run(unpublished, IN_A_BATCH).held()
    cut_off(scene)
    yield run.go().ended()


@fault("a backend of PostgreSQL is killed by the kernel", "best-mean", codes=ERROR, databases=POSTGRESQL)
def backend_killed(scene: Scene) -> Meeting:
    run = scene.run(unpublished, IN_A_BATCH).held()
    ((pid,), *_) = scene.server.execute(
        f"SELECT pid FROM pg_stat_activity WHERE datname = '{scene.database_name}'"
    )
    os.kill(pid, signal.SIGKILL)
    wait_until_back(scene)
    yield run.go().ended()


@fault(
    "PostgreSQL lets nobody into the database",
    "best-mean",
    codes=ERROR,
    states=(None,),
    databases=POSTGRESQL,
)
def refused(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    scene.server.execute(f"ALTER DATABASE {scene.database_name} ALLOW_CONNECTIONS false")
    cut_off(scene)
    yield run.go().ended()
    scene.server.execute(f"ALTER DATABASE {scene.database_name} ALLOW_CONNECTIONS true")


@fault("another writer holds PostgreSQL for two seconds", "best-mean", codes=DONE, states=SETTLED,
       databases=POSTGRESQL)  # fmt: skip
def locked_for_a_while(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    with psycopg.connect(scene.storage.replace("+psycopg", "")) as other:
        other.execute(LOCK)
        run.go()
        time.sleep(2.0)
    yield run.ended()


@fault("another writer holds PostgreSQL for too long", *OBJECTIVES, codes=ERROR, databases=POSTGRESQL)
def locked_for_too_long(scene: Scene) -> Meeting:
    run = scene.run(partial(impatient, 800), IN_A_BATCH).held()
    with psycopg.connect(scene.storage.replace("+psycopg", "")) as other:
        other.execute(LOCK)
        yield run.go().ended()


@fault("a role that may only read locks all it can", *OBJECTIVES, codes=DONE, states=SETTLED,
       databases=POSTGRESQL)  # fmt: skip
def locked_by_a_reader(scene: Scene) -> Meeting:
    run = scene.run(partial(impatient, 800), IN_A_BATCH).held()
    with _reading_role(scene) as url, psycopg.connect(url, autocommit=True) as reader:
        with suppress(psycopg.errors.InsufficientPrivilege):
            reader.execute(f"BEGIN; {LOCK}")
        reader.execute("ROLLBACK; BEGIN")
        for (table,) in scene.stored(
            "SELECT relname FROM pg_class WHERE relkind = 'r' AND relname !~ '^(pg|sql)_'"
        ):
            reader.execute(f"LOCK TABLE {table} IN ACCESS SHARE MODE")
        yield run.go().ended()


@fault("PostgreSQL becomes read-only", "best-mean", codes=ERROR, databases=POSTGRESQL)
def read_only(scene: Scene) -> Meeting:
    scene.cut_short()
    with _reading_role(scene) as url:
        yield scene.command("resume", "survivor", "--storage", url.replace(":", "+psycopg:", 1)).ended()


@contextmanager
def _reading_role(scene: Scene) -> Generator[str, None, None]:
    """A role that may only SELECT, and the URL with which it comes."""
    role = f"reader_{scene.database_name}"
    rights = f"CREATE ROLE {role} LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}"
    scene.server.execute(rights, scene.database_name)
    try:
        yield scene.storage.replace("+psycopg", "").replace("postgres@", f"{role}@")
    finally:
        scene.server.execute(f"DROP OWNED BY {role}; DROP ROLE {role}", scene.database_name)


def cut_off(scene: Scene) -> None:
    scene.server.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{scene.database_name}'"
    )


def wait_until_back(scene: Scene) -> None:
    """A server that has lost a backend cuts all others off and recovers."""
    deadline = time.monotonic() + 30
    while True:
        time.sleep(0.1)
        try:
            scene.server.execute("SELECT 1")
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "PostgreSQL does not come back"

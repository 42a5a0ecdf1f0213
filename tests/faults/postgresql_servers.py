"""A PostgreSQL server that dies, restarts, cuts connections off, refuses them, or may only be read."""

import os
import signal
import time
from collections.abc import Generator
from functools import partial

import psycopg

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, hold, impatient

Meeting = Generator[Run, None, None]
SETTLED = ("decided", "undecided")
ERROR = (1,)
POSTGRESQL = ("postgresql",)
IN_A_BATCH = At("before a batch", 3, hold)
LOCK_OF_WRITERS = 0x77696E6E6F77


@fault("PostgreSQL is killed within a batch, and is back", *OBJECTIVES, codes=ERROR, databases=POSTGRESQL)
def killed(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
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
    run = scene.run(IN_A_BATCH).held()
    scene.server.kill()
    try:
        yield run.go().ended()
    finally:
        scene.server.start()


@fault("PostgreSQL is restarted within a batch", "best-mean", codes=ERROR, databases=POSTGRESQL)
def restarted(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    scene.server.stop()
    scene.server.start()
    yield run.go().ended()


@fault("pg_terminate_backend of all connections", *OBJECTIVES, codes=ERROR, databases=POSTGRESQL)
def terminated(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    _cut_off(scene)
    yield run.go().ended()


@fault("a backend of PostgreSQL is killed by the kernel", "best-mean", codes=ERROR, databases=POSTGRESQL)
def backend_killed(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    ((pid,), *_) = scene.server.execute(
        f"SELECT pid FROM pg_stat_activity WHERE datname = '{scene.database_name}'"
    )
    os.kill(pid, signal.SIGKILL)
    _wait_until_back(scene)
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
    _cut_off(scene)
    yield run.go().ended()
    scene.server.execute(f"ALTER DATABASE {scene.database_name} ALLOW_CONNECTIONS true")


@fault("another writer holds PostgreSQL for two seconds", "best-mean", codes=DONE, states=SETTLED,
       databases=POSTGRESQL)  # fmt: skip
def locked_for_a_while(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    with psycopg.connect(scene.storage.replace("+psycopg", "")) as other:
        other.execute(f"SELECT pg_advisory_xact_lock({LOCK_OF_WRITERS})")
        run.go()
        time.sleep(2.0)
    yield run.ended()


@fault("another writer holds PostgreSQL for too long", *OBJECTIVES, codes=ERROR, databases=POSTGRESQL)
def locked_for_too_long(scene: Scene) -> Meeting:
    run = scene.run(partial(impatient, 800), IN_A_BATCH).held()
    with psycopg.connect(scene.storage.replace("+psycopg", "")) as other:
        other.execute(f"SELECT pg_advisory_xact_lock({LOCK_OF_WRITERS})")
        yield run.go().ended()


@fault("PostgreSQL becomes read-only", "best-mean", codes=ERROR, databases=POSTGRESQL)
def read_only(scene: Scene) -> Meeting:
    scene.cut_short()
    role = "CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader"
    scene.server.execute(role, scene.database_name)
    as_reader = scene.storage.replace("postgres@", "reader@")
    yield scene.command("resume", "survivor", "--storage", as_reader).ended()
    scene.server.execute("DROP OWNED BY reader; DROP ROLE reader", scene.database_name)


def _cut_off(scene: Scene) -> None:
    scene.server.execute(
        f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{scene.database_name}'"
    )


def _wait_until_back(scene: Scene) -> None:
    """A server that has lost a backend cuts all others off and recovers."""
    deadline = time.monotonic() + 30
    while True:
        time.sleep(0.1)
        try:
            scene.server.execute("SELECT 1")
            return
        except psycopg.OperationalError:
            assert time.monotonic() < deadline, "PostgreSQL does not come back"

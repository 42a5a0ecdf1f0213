"""A PostgreSQL server that is set up otherwise, has no room, is behind a pooler, or fails over to another."""

import os
import signal
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress

import psycopg

from tests.faults.kinds import OBJECTIVES
from tests.faults.poolers import pooler
from tests.faults.postgresql_servers import LOCK, cut_off, wait_until_back
from tests.faults.registry import DONE, STOPPED, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.standbys import standby
from tests.faults.tampering import At, die, hold, unpublished

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
ERROR = (1,)
POSTGRESQL = ("postgresql",)
IN_A_BATCH = At("before a batch", 3, hold)
IDLE_S = 7.0
"""Longer than a connection is trusted without being asked."""
CROWD = 60
"""As many connections as the server takes."""


@fault("PostgreSQL fails over to its standby within a batch", *OBJECTIVES, codes=(*DONE, 1),
       states=(*STOPPED, *SETTLED), databases=POSTGRESQL)  # fmt: skip
def fails_over(scene: Scene) -> Meeting:
    with standby(scene.server) as other:
        run = scene.run(IN_A_BATCH).held()
        other.take_over()
        yield run.go().ended()


@fault("PostgreSQL has no connection left", *OBJECTIVES, codes=ERROR, states=(None,), databases=POSTGRESQL)
def no_connection_left(scene: Scene) -> Meeting:
    scene.cut_short()
    with ExitStack() as crowd:
        with suppress(psycopg.OperationalError):
            for _ in range(CROWD):
                crowd.enter_context(psycopg.connect(_url(scene)))
        yield scene.resume().ended()


@fault("a statement of PostgreSQL takes longer than it may", "best-mean", "route", codes=ERROR,
       states=STOPPED, databases=POSTGRESQL)  # fmt: skip
def statement_timeout(scene: Scene) -> Meeting:
    scene.cut_short()
    with _set(scene, "statement_timeout", "500ms"), psycopg.connect(_url(scene)) as other:
        other.execute(LOCK)
        yield scene.resume().ended()


@fault("PostgreSQL ends sessions that are idle", *OBJECTIVES, codes=DONE, states=SETTLED,
       databases=POSTGRESQL)  # fmt: skip
def idle_sessions(scene: Scene) -> Meeting:
    scene.cut_short()
    with _set(scene, "idle_session_timeout", f"{IDLE_S - 1:g}s"):
        run = scene.resume(At("before a batch", 1, hold)).held()
        time.sleep(IDLE_S)
        yield run.go().ended()


@fault("all transactions of PostgreSQL are serializable", *OBJECTIVES, codes=DONE, states=SETTLED,
       databases=POSTGRESQL)  # fmt: skip
def serializable(scene: Scene) -> Meeting:
    with _set(scene, "default_transaction_isolation", "serializable"):
        yield scene.run().ended()


@fault("PostgreSQL rounds the numbers that it tells", *OBJECTIVES, codes=DONE, states=SETTLED,
       databases=POSTGRESQL)  # fmt: skip
def rounded(scene: Scene) -> Meeting:
    with _set(scene, "extra_float_digits", "-14"):
        yield scene.run().ended()


@fault("PostgreSQL speaks of times as elsewhere", "best-mean", "certify", codes=DONE, states=SETTLED,
       databases=POSTGRESQL)  # fmt: skip
def elsewhere(scene: Scene) -> Meeting:
    with _set(scene, "timezone", "Pacific/Kiritimati"), _set(scene, "datestyle", "German"):
        yield scene.run().ended()


@fault("PostgreSQL may only be read from the middle on", *OBJECTIVES, codes=ERROR, databases=POSTGRESQL)
def read_only(scene: Scene) -> Meeting:
    run = scene.run(unpublished, IN_A_BATCH).held()
    with _set(scene, "default_transaction_read_only", "on"):
        cut_off(scene)
        yield run.go().ended()


@fault("the tables of PostgreSQL are out of sight", "best-mean", codes=ERROR, states=(None,),
       databases=POSTGRESQL)  # fmt: skip
def other_schema(scene: Scene) -> Meeting:
    scene.cut_short()
    with _set(scene, "search_path", "elsewhere"):
        yield scene.resume().ended()


@fault("the database of PostgreSQL is renamed within a batch", "best-mean", "route", codes=ERROR,
       states=(None,), databases=POSTGRESQL)  # fmt: skip
def renamed(scene: Scene) -> Meeting:
    run, name = scene.run(IN_A_BATCH).held(), scene.database_name
    _rename(scene, name, f"{name}_away")
    yield run.go().ended()
    _rename(scene, f"{name}_away", name)


@fault("the checkpointer of PostgreSQL is killed", "best-mean", "certify", codes=ERROR, databases=POSTGRESQL)
def checkpointer_killed(scene: Scene) -> Meeting:
    run = scene.run(unpublished, IN_A_BATCH).held()
    ((pid,),) = scene.server.execute("SELECT pid FROM pg_stat_activity WHERE backend_type = 'checkpointer'")
    os.kill(pid, signal.SIGKILL)
    wait_until_back(scene)
    yield run.go().ended()


@fault("the backends of PostgreSQL are frozen for two seconds", *OBJECTIVES, codes=DONE, states=SETTLED,
       databases=POSTGRESQL)  # fmt: skip
def frozen(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    backends = scene.server.execute(
        f"SELECT pid FROM pg_stat_activity WHERE datname = '{scene.database_name}'"
    )
    _send(backends, signal.SIGSTOP)
    run.go()
    time.sleep(2.0)
    _send(backends, signal.SIGCONT)
    yield run.ended()


@fault("PgBouncer pools transactions before a PostgreSQL that rounds numbers, and kill -9", *OBJECTIVES,
       codes=DONE, states=SETTLED, databases=POSTGRESQL)  # fmt: skip
def pooled(scene: Scene) -> Meeting:
    with pooler(scene.server) as own, _set(scene, "extra_float_digits", "-14"):
        url = own.url(scene.database_name)
        set_ = ("--set", f"storage={url}")
        killed = scene.command("run", "campaign.yaml", *set_, tamperings=[At("before a batch", 4, die)])
        assert killed.code == -signal.SIGKILL, killed.said
        yield scene.command("resume", "survivor", "--storage", url).ended()


@fault("PgBouncer is killed within a batch, and starts again", *OBJECTIVES, codes=(*DONE, 1),
       states=(*STOPPED, *SETTLED), databases=POSTGRESQL)  # fmt: skip
def pooler_killed(scene: Scene) -> Meeting:
    with pooler(scene.server) as own:
        url = own.url(scene.database_name)
        run = scene.command("run", "campaign.yaml", "--set", f"storage={url}", tamperings=[IN_A_BATCH]).held()
        own.kill()
        own.start()
        yield run.go().ended()


@contextmanager
def _set(scene: Scene, name: str, value: str) -> Generator[None, None, None]:
    """Have new sessions of a campaign's database begin with a setting."""
    change = f"ALTER DATABASE {scene.database_name}"
    scene.server.execute(f"{change} SET {name} = '{value}'")
    try:
        yield
    finally:
        scene.server.execute(f"{change} RESET {name}")


def _rename(scene: Scene, name: str, new: str) -> None:
    cut_off(scene)
    scene.server.execute(f"ALTER DATABASE {name} RENAME TO {new}")


def _send(backends: list[tuple[int]], number: signal.Signals) -> None:
    for (pid,) in backends:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _url(scene: Scene) -> str:
    return scene.storage.replace("+psycopg", "")

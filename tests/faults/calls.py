"""Single system calls at which a process dies, or which fail: see `system_calls`."""

import errno
import re
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, STOPPED, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.strikes import AT_LEASE, overseen
from tests.faults.system_calls import KILL, Call, begin_counting
from tests.faults.tampering import At, Tampering

Meeting = Generator[Run, None, None]
POSTGRESQL = ("postgresql",)
ERROR = (1,)
SETTLED = ("ended",)
KILLED = (-signal.SIGKILL,)
ALWAYS = 1_000_000
FROM_LEASE = At(AT_LEASE, 1, begin_counting)
WAL = r"winnow\.db-wal"
WRITES = r"(pwrite64|write|writev|pwritev|ftruncate)"
DATABASE_WRITES = rf"{WRITES} winnow\.db.*"
ANY_CHANGE = rf"({WRITES}|openat|rename\w*|unlink\w*) (?!out-|err-).*"
SENT = "sendto PostgreSQL"
BEGUN = (*STOPPED, None)
"""As long as nothing is stored of it, its status is that there is no such campaign."""


@dataclass
class Passage:
    """An answer to some of the calls that fit a pattern; all others are made."""

    pattern: str
    """Of the call's name and what it is on."""
    first: int
    """From 1."""
    verdict: int | None
    times: int = 1
    act: Callable[[Call], None] | None = None
    """What happens just before."""
    passed: int = 0

    def __call__(self, call: Call) -> int | None:
        if not re.fullmatch(self.pattern, f"{call.name} {call.target}"):
            return None
        self.passed += 1
        if not self.first <= self.passed < self.first + self.times:
            return None
        if self.act is not None:
            self.act(call)
        return self.verdict


@contextmanager
def passing(scene: Scene, passage: Passage) -> Generator[Tampering, None, None]:
    """What the process has to do first that is to come to a passage; it must come there."""
    with overseen(scene, passage) as overseer:
        yield overseer.tampering
    assert passage.passed >= passage.first, f"the fault was not met: {[str(call) for call in overseer.calls]}"


def run_through(scene: Scene, passage: Passage, start: Tampering = FROM_LEASE) -> Run:
    """Run a campaign whose calls are counted from the lease on."""
    with passing(scene, passage) as tampering:
        return scene.run(tampering, start).ended()


@fault("kill -9 while the tables are made", "best-mean", codes=KILLED, states=BEGUN)
def while_tables_are_made(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(DATABASE_WRITES, 20, KILL), begin_counting)


@fault("kill -9 while the tables are made on a server", "best-mean", codes=KILLED, states=BEGUN,
       databases=POSTGRESQL)  # fmt: skip
def while_tables_are_made_on_a_server(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(SENT, 30, KILL), begin_counting)


@fault("kill -9 as the database file is begun", "best-mean", codes=KILLED, states=BEGUN)
def as_the_file_is_begun(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(rf"{WRITES} winnow\.db", 1, KILL), begin_counting)


@fault("kill -9 as the write-ahead log is begun", "best-mean", codes=KILLED, states=BEGUN)
def as_the_log_is_begun(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(f"{WRITES} {WAL}", 1, KILL), begin_counting)


@fault("kill -9 within a page of the write-ahead log", *OBJECTIVES, codes=KILLED)
def within_a_page(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(f"{WRITES} {WAL}", 24, KILL))


@fault("kill -9 as the write-ahead log is flushed", *OBJECTIVES, codes=KILLED, states=(*STOPPED, *SETTLED))
def as_the_log_is_flushed(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(f"f(data)?sync {WAL}", 1, KILL))


@fault(
    "kill -9 as the write-ahead log moves to the file", *OBJECTIVES, codes=KILLED, states=(*STOPPED, *SETTLED)
)
def as_the_log_moves(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(rf"{WRITES} winnow\.db", 3, KILL))


@fault("kill -9 as the database file is flushed", *OBJECTIVES, codes=KILLED, states=(*STOPPED, *SETTLED))
def as_the_file_is_flushed(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(r"f(data)?sync winnow\.db", 1, KILL))


@fault("kill -9 as the write-ahead log is removed", *OBJECTIVES, codes=KILLED, states=(*STOPPED, *SETTLED))
def as_the_log_is_removed(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(f"unlink {WAL}", 1, KILL))


@fault("kill -9 as a statement is sent", *OBJECTIVES, codes=KILLED, databases=POSTGRESQL)
def as_a_statement_is_sent(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(SENT, 40, KILL))


@fault("the file system becomes read-only in the middle", *OBJECTIVES, codes=ERROR)
def read_only(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(ANY_CHANGE, 40, errno.EROFS, ALWAYS))


@fault("the disk is full from the middle on", *OBJECTIVES, codes=ERROR)
def full(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(f"({WRITES}|openat) (?!out-|err-).*", 40, errno.ENOSPC, ALWAYS))


@fault("the quota is spent from the middle on", "best-mean", codes=ERROR)
def quota(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(f"({WRITES}|openat) (?!out-|err-).*", 40, errno.EDQUOT, ALWAYS))


@fault("the disk fails from the middle on", *OBJECTIVES, codes=ERROR)
def failing(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(DATABASE_WRITES, 30, errno.EIO, ALWAYS))


@fault("one write of the database fails", *OBJECTIVES, codes=(*DONE, 1), states=(*STOPPED, *SETTLED))
def one_write_fails(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(DATABASE_WRITES, 30, errno.EIO))


@fault("no flush of the database gets through", "best-mean", codes=(*DONE, 1), states=(*STOPPED, *SETTLED))
def no_flush(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(r"f(data)?sync winnow\.db.*", 1, errno.EIO, ALWAYS))


@fault("the write-ahead log cannot be removed", "best-mean", codes=(*DONE, 1), states=(*STOPPED, *SETTLED))
def log_not_removed(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(f"unlink {WAL}", 1, errno.EPERM, ALWAYS))


@fault("every other write is interrupted by a signal", *OBJECTIVES, codes=DONE, states=SETTLED)
def interrupted(scene: Scene) -> Meeting:
    def every_other(call: Call) -> int | None:
        counted(call)
        return errno.EINTR if call.name != "openat" and call.number % 2 else None

    counted = Passage(DATABASE_WRITES, 1, None, ALWAYS)
    with overseen(scene, every_other) as overseer:
        yield scene.run(overseer.tampering, FROM_LEASE).ended()
    assert counted.passed


@fault(
    "no more files may be opened from the middle on",
    "best-mean",
    codes=(*DONE, 1),
    states=(*STOPPED, *SETTLED),
)
def too_many_files(scene: Scene) -> Meeting:
    yield run_through(
        scene, Passage(r"openat winnow\.db.*", 1, errno.EMFILE, ALWAYS), begin_at_the_second_batch
    )


@fault(
    "the log folder becomes read-only in the middle", "workers", codes=(*DONE, 1), states=(*STOPPED, *SETTLED)
)
def read_only_logs(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(r"(write|openat) logs/.*", 2, errno.EROFS, ALWAYS))


@fault("the connection to PostgreSQL breaks as a statement is sent", *OBJECTIVES, codes=(*DONE, 1),
       states=(*STOPPED, *SETTLED), databases=POSTGRESQL)  # fmt: skip
def connection_breaks(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(SENT, 40, errno.ECONNRESET, act=partial(_hang_up, scene)))


@fault("no connection to PostgreSQL holds from the middle on", *OBJECTIVES, codes=ERROR, databases=POSTGRESQL)
def no_connection_holds(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(SENT, 40, errno.EPIPE, ALWAYS, act=partial(_hang_up, scene)))


def _hang_up(scene: Scene, call: Call) -> None:
    """Break connections at the server's end too: the kernel lets nobody read where sending has failed so."""
    scene.server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    )


@fault("PostgreSQL does not answer in time any more", "best-mean", codes=ERROR, databases=POSTGRESQL)
def no_answer(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(SENT, 40, errno.ETIMEDOUT, ALWAYS, act=partial(_hang_up, scene)))


@fault("PostgreSQL is killed as a statement is sent, and is back", *OBJECTIVES, codes=(*DONE, 1),
       states=(*STOPPED, *SETTLED), databases=POSTGRESQL)  # fmt: skip
def server_killed(scene: Scene) -> Meeting:
    def restart(call: Call) -> None:
        scene.server.kill()
        scene.server.start()

    yield run_through(scene, Passage(SENT, 44, None, act=restart))


@fault("PostgreSQL is restarted as a statement is sent", "best-mean", "route", codes=(*DONE, 1),
       states=(*STOPPED, *SETTLED), databases=POSTGRESQL)  # fmt: skip
def server_restarted(scene: Scene) -> Meeting:
    def restart(call: Call) -> None:
        scene.server.stop()
        scene.server.start()

    yield run_through(scene, Passage(SENT, 51, None, act=restart))


def begin_at_the_second_batch() -> None:
    """Count the calls that follow the first batch."""
    At("after a batch", 1, begin_counting)()

"""What the system allows a process, spent; and signals that nobody thinks of."""

import resource
import signal
import time
from collections.abc import Generator
from functools import partial

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, STOPPED, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, hold

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
IN_A_BATCH = At("before a batch", 3, hold)
IN_A_COMMIT = At("before a commit", 6, hold)
ON_LOAD = At("a model loads", 2, hold)
TERMINATED, FORCED = 143, 130
CRASHES = (-signal.SIGSEGV, -signal.SIGABRT)


@fault("SIGSEGV within a batch", *OBJECTIVES, codes=(-signal.SIGSEGV,))
def segmentation(scene: Scene) -> Meeting:
    yield _sent(scene, signal.SIGSEGV)


@fault("SIGABRT within a batch", "best-mean", "certify", codes=(-signal.SIGABRT,))
def abort(scene: Scene) -> Meeting:
    yield _sent(scene, signal.SIGABRT)


@fault("SIGBUS within a batch", "best-duel", "route", codes=(-signal.SIGBUS,))
def bus(scene: Scene) -> Meeting:
    yield _sent(scene, signal.SIGBUS)


@fault("SIGXCPU: the time of the processor is spent", "best-mean", "route", codes=(-signal.SIGXCPU,))
def processor_time(scene: Scene) -> Meeting:
    yield _sent(scene, signal.SIGXCPU)


@fault("SIGUSR1 within a batch", "best-mean", codes=(-signal.SIGUSR1,))
def user_signal(scene: Scene) -> Meeting:
    yield _sent(scene, signal.SIGUSR1)


@fault("SIGALRM within a batch", "best-duel", codes=(-signal.SIGALRM,))
def alarm(scene: Scene) -> Meeting:
    yield _sent(scene, signal.SIGALRM)


@fault("SIGPIPE within a batch", "best-mean", "certify", codes=DONE, states=SETTLED)
def pipe(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held().send(signal.SIGPIPE)
    yield run.go().ended()


@fault("SIGSTOP and SIGCONT within a batch", *OBJECTIVES, codes=DONE, states=SETTLED,
       databases=("sqlite", "postgresql"))  # fmt: skip
def stopped(scene: Scene) -> Meeting:
    yield _paused(scene, signal.SIGSTOP)


@fault("Ctrl-Z and fg within a batch", "best-mean", "best-duel", codes=DONE, states=SETTLED)
def suspended(scene: Scene) -> Meeting:
    yield _paused(scene, signal.SIGTSTP)


@fault("SIGTERM within a commit", *OBJECTIVES, codes=(TERMINATED,), databases=("sqlite", "postgresql"))
def terminated_in_a_commit(scene: Scene) -> Meeting:
    yield scene.run(IN_A_COMMIT).held().send(signal.SIGTERM).go().ended()


@fault("SIGINT within a commit", *OBJECTIVES, codes=(FORCED,), databases=("sqlite", "postgresql"))
def interrupted_in_a_commit(scene: Scene) -> Meeting:
    yield scene.run(IN_A_COMMIT).held().send(signal.SIGINT).go().ended()


@fault("SIGTERM while a model loads", "best-mean", "best-duel", codes=(TERMINATED,))
def terminated_on_load(scene: Scene) -> Meeting:
    yield scene.run(ON_LOAD).held().send(signal.SIGTERM).go().ended()


@fault("SIGINT twice while a model loads", "best-mean", codes=(FORCED,))
def interrupted_on_load(scene: Scene) -> Meeting:
    run = scene.run(ON_LOAD).held().send(signal.SIGINT)
    run.until(lambda: "press Ctrl-C again" in run.said)
    yield run.send(signal.SIGINT).go().ended()


@fault("SIGTERM five times", "best-mean", "route", codes=(TERMINATED, -signal.SIGTERM))
def terminated_often(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held()
    for _ in range(5):
        run.send(signal.SIGTERM)
        time.sleep(0.01)
    yield run.go().ended()


@fault("no more files may be opened", "best-mean", "workers", codes=(*DONE, 1), states=(*SETTLED, *STOPPED))
def no_files(scene: Scene) -> Meeting:
    yield scene.run(At("before a batch", 2, partial(limited, resource.RLIMIT_NOFILE, 3))).ended()


@fault("no more memory may be taken", "best-mean", "best-duel", codes=(*DONE, 1, *CRASHES),
       states=(*SETTLED, *STOPPED))  # fmt: skip
def no_memory(scene: Scene) -> Meeting:
    """Libraries in C crash for want of it."""
    yield scene.run(At("before a batch", 3, no_more_memory)).ended()


@fault("no thread may be begun", "best-mean", "route", codes=(*DONE, 1), states=(*SETTLED, *STOPPED))
def no_threads(scene: Scene) -> Meeting:
    yield scene.run(At("before a batch", 2, no_more_threads)).ended()


def limited(what: int, most: int) -> None:
    """Have the system allow this process no more than that."""
    resource.setrlimit(what, (most, most))


def no_more_memory() -> None:
    """Have the system refuse this process memory beyond what it has."""
    from pathlib import Path

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limited(resource.RLIMIT_AS, pages * resource.getpagesize())


def no_more_threads() -> None:
    """What the system answers a process that has as many threads as it may have."""
    import threading

    def refuse(self: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    threading.Thread.start = refuse


def _sent(scene: Scene, number: signal.Signals) -> Run:
    # Nobody wants a core file of it.
    return scene.run(partial(limited, resource.RLIMIT_CORE, 0), IN_A_BATCH).held().send(number).ended()


def _paused(scene: Scene, number: signal.Signals) -> Run:
    run = scene.run(IN_A_BATCH).held().send(number)
    time.sleep(0.5)
    return run.send(signal.SIGCONT).go().ended()

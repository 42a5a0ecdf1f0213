"""Signals that a person, a terminal or a service manager sends to the process that runs a campaign."""

import signal
from collections.abc import Generator

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, hold

FORCED, TERMINATED, HUNG_UP = 130, 143, 129
IN_A_BATCH = At("before a batch", 3, hold)

Meeting = Generator[Run, None, None]


@fault("SIGTERM within a batch", *OBJECTIVES, codes=(TERMINATED,), databases=("sqlite", "postgresql"))
def terminated(scene: Scene) -> Meeting:
    yield scene.run(IN_A_BATCH).held().send(signal.SIGTERM).ended()


@fault("SIGHUP within a batch: the terminal is gone", "best-mean", codes=(HUNG_UP,))
def hung_up(scene: Scene) -> Meeting:
    yield scene.run(IN_A_BATCH).held().send(signal.SIGHUP).ended()


@fault("SIGINT once: the round is finished", *OBJECTIVES, codes=(FORCED,))
def interrupted(scene: Scene) -> Meeting:
    yield scene.run(IN_A_BATCH).held().send(signal.SIGINT).go().ended()


@fault("SIGINT twice: stopped at once", *OBJECTIVES, codes=(FORCED,))
def interrupted_twice(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held().send(signal.SIGINT)
    run.until(lambda: "press Ctrl-C again" in run.said)
    yield run.send(signal.SIGINT).ended()


@fault("SIGTERM, then SIGKILL while it ends", "best-mean", codes=(TERMINATED, -signal.SIGKILL))
def terminated_impatiently(scene: Scene) -> Meeting:
    run = scene.run(IN_A_BATCH).held().send(signal.SIGTERM)
    run.process.kill()
    yield run.ended()


@fault("SIGQUIT within a batch", "best-mean", codes=(-signal.SIGQUIT,))
def quit_(scene: Scene) -> Meeting:
    yield scene.run(IN_A_BATCH).held().send(signal.SIGQUIT).ended()


@fault("killed by the kernel, short of memory", *OBJECTIVES, codes=(-signal.SIGKILL,))
def killed_for_memory(scene: Scene) -> Meeting:
    yield scene.run(IN_A_BATCH).held().send(signal.SIGKILL).ended()

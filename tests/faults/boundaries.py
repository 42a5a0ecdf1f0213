"""kill -9 at the edges of transactions, where a wrong program would lose a row or write it twice."""

import signal
from collections.abc import Generator

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, die

Meeting = Generator[Run, None, None]
BOTH = ("sqlite", "postgresql")
KILLED = (-signal.SIGKILL,)


@fault("kill -9 before the lease is committed", "best-mean", codes=KILLED, databases=BOTH)
def before_the_lease(scene: Scene) -> Meeting:
    yield _killed_at(scene, "before a commit", 2)


@fault("kill -9 right after a commit", *OBJECTIVES, codes=KILLED, databases=BOTH)
def after_a_commit(scene: Scene) -> Meeting:
    yield _killed_at(scene, "after a commit", 5)


@fault("kill -9 right before a commit", *OBJECTIVES, codes=KILLED, databases=BOTH)
def before_a_commit(scene: Scene) -> Meeting:
    yield _killed_at(scene, "before a commit", 6)


@fault("kill -9 between a batch and its commit", *OBJECTIVES, codes=KILLED)
def between(scene: Scene) -> Meeting:
    yield scene.run(At("after a batch", 3, die)).ended()


@fault("kill -9 while prompts are embedded", "route", codes=KILLED)
def while_embedding(scene: Scene) -> Meeting:
    yield scene.run(At("before embedding", 1, die)).ended()


def _killed_at(scene: Scene, moment: str, number: int) -> Run:
    return scene.run(At(moment, number, die)).ended()

"""Faults with several rounds in flight, on engines that are processes of their own."""

import errno
import signal
from collections.abc import Generator

from tests.faults.calls import ALWAYS, ANY_CHANGE, SENT, Passage, run_through
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.system_calls import KILL
from tests.faults.tampering import At, die, hold

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
BOTH = ("sqlite", "postgresql")
KILLED = (-signal.SIGKILL,)
AHEAD = "workers ahead"


@fault("kill -9 with rounds ahead in flight", AHEAD, codes=KILLED, databases=BOTH)
def killed(scene: Scene) -> Meeting:
    yield scene.run(At("before a batch", 6, die)).ended()


@fault("kill -9 right after a commit with rounds ahead in flight", AHEAD, codes=KILLED, databases=BOTH)
def killed_after_a_commit(scene: Scene) -> Meeting:
    yield scene.run(At("after a commit", 8, die)).ended()


@fault("kill -9 as a statement is sent with rounds ahead in flight", AHEAD, codes=KILLED,
       databases=("postgresql",))  # fmt: skip
def killed_as_it_sends(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(SENT, 60, KILL))


@fault("the disk is full from the middle on with rounds ahead in flight", AHEAD, codes=(1,))
def full(scene: Scene) -> Meeting:
    yield run_through(scene, Passage(ANY_CHANGE, 40, errno.ENOSPC, ALWAYS))


@fault("an engine is killed with rounds ahead in flight", AHEAD, codes=DONE, states=SETTLED)
def engine_killed(scene: Scene) -> Meeting:
    yield _met(scene, "kill")


@fault("an engine hangs with rounds ahead in flight", AHEAD, codes=DONE, states=SETTLED)
def engine_hangs(scene: Scene) -> Meeting:
    yield _met(scene, "hang")


@fault("an engine writes bytes that are no message with rounds ahead in flight", AHEAD, codes=DONE,
       states=SETTLED)  # fmt: skip
def garbage(scene: Scene) -> Meeting:
    yield _met(scene, "garbage")


@fault("SIGTERM with rounds ahead in flight", AHEAD, codes=(143,), databases=BOTH)
def terminated(scene: Scene) -> Meeting:
    yield scene.run(At("before a batch", 5, hold)).held().send(signal.SIGTERM).go().ended()


@fault("SIGINT once with rounds ahead in flight", AHEAD, codes=(130,))
def interrupted(scene: Scene) -> Meeting:
    yield scene.run(At("before a batch", 5, hold)).held().send(signal.SIGINT).go().ended()


def _met(scene: Scene, do: str) -> Run:
    scene.plan_fault("one", "batch", 2, do)
    run = scene.run().ended()
    assert (scene.folder / "met").exists(), "the fault was not met"
    return run

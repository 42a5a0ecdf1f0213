"""Judges whose model hangs, dies or says what cannot be read."""

import signal
from collections.abc import Generator

from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, die

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)


@fault("a judge never answers", "judged", codes=DONE, states=SETTLED)
def hangs(scene: Scene) -> Meeting:
    yield _met(scene, "hang")


@fault("a judge's model is killed within a batch", "judged", codes=DONE, states=SETTLED)
def killed(scene: Scene) -> Meeting:
    yield _met(scene, "kill")


@fault("a judge's engine writes bytes that are no message", "judged", codes=DONE, states=SETTLED)
def garbage(scene: Scene) -> Meeting:
    yield _met(scene, "garbage")


@fault("kill -9 while a judge that cannot be read is asked again", "unreadable", codes=(-signal.SIGKILL,))
def unreadable(scene: Scene) -> Meeting:
    # A round's texts are four batches; then come the judgments, and those that are played again.
    yield scene.run(At("before a batch", 8, die)).ended()


def _met(scene: Scene, do: str) -> Run:
    scene.plan_fault("judge", "batch", 3, do)
    run = scene.run().ended()
    assert (scene.folder / "met").exists(), "the fault was not met"
    return run

"""Engines that fail within a batch; their processes are real, and ended or frozen for real."""

import os
import signal
from collections.abc import Generator

from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, fail

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)


@fault("an engine is killed within a batch", "workers", codes=DONE, states=SETTLED)
def killed(scene: Scene) -> Meeting:
    yield _met(scene, "kill")


@fault("an engine ends with an error of CUDA within a batch", "workers", codes=DONE, states=SETTLED)
def ends(scene: Scene) -> Meeting:
    yield _met(scene, "leave")


@fault("an engine hangs within a batch", "workers", codes=DONE, states=SETTLED)
def hangs(scene: Scene) -> Meeting:
    yield _met(scene, "hang")


@fault("an engine is frozen within a batch", "workers", codes=DONE, states=SETTLED)
def frozen(scene: Scene) -> Meeting:
    yield _met(scene, "freeze")


@fault("an engine is killed three times in a row", "workers", codes=DONE, states=SETTLED)
def killed_often(scene: Scene) -> Meeting:
    yield _met(scene, "kill", times=3)


@fault("an engine answers too few requests", "workers", codes=DONE, states=SETTLED)
def too_few(scene: Scene) -> Meeting:
    yield _met(scene, "few")


@fault("an engine answers too many requests", "workers", codes=DONE, states=SETTLED)
def too_many(scene: Scene) -> Meeting:
    yield _met(scene, "many")


@fault("an engine writes bytes that are no message", "workers", codes=DONE, states=SETTLED)
def garbage(scene: Scene) -> Meeting:
    yield _met(scene, "garbage")


@fault("an engine's message is of the wrong kind", "workers", codes=DONE, states=SETTLED)
def wrong_kind(scene: Scene) -> Meeting:
    yield _met(scene, "list")


@fault("an engine's answers lack their fields", "workers", codes=DONE, states=SETTLED)
def strangers(scene: Scene) -> Meeting:
    yield _met(scene, "strangers")


@fault("an engine's message lacks the answers", "workers", codes=DONE, states=SETTLED)
def nothing(scene: Scene) -> Meeting:
    yield _met(scene, "nothing")


@fault("out of memory within a batch of transformers", "best-mean", codes=DONE, states=SETTLED)
def out_of_memory(scene: Scene) -> Meeting:
    import torch

    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
    yield scene.run(At("a model decodes", 40, _Raise(error))).ended()


@fault("MemoryError within a batch of transformers", "best-mean", codes=DONE, states=SETTLED)
def memory_error(scene: Scene) -> Meeting:
    yield scene.run(At("a model decodes", 40, _Raise(MemoryError()))).ended()


@fault("a real vLLM engine is killed within a batch", "vllm", codes=DONE, states=SETTLED)
def vllm_killed(scene: Scene) -> Meeting:
    run = scene.run(At("before a batch", 3, _kill_children))
    yield run.ended()


def _met(scene: Scene, do: str, times: int = 1) -> Run:
    scene.plan_fault("one", "batch", 2, do, times)
    run = scene.run().ended()
    assert (scene.folder / "met").exists(), "the fault was not met"
    return run


class _Raise:
    """`fail` for an error whose class can be pickled."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __call__(self) -> None:
        fail(self._error)


def _kill_children() -> None:
    """kill -9 of every engine of this process, a moment after the batch has gone to it."""
    import threading

    import psutil

    def kill() -> None:
        for child in psutil.Process().children():
            os.kill(child.pid, signal.SIGKILL)

    threading.Timer(0.02, kill).start()

"""Engines that fail within a batch; their processes are real, and ended or frozen for real."""

from collections.abc import Generator
from functools import partial

from tests.faults.kinds import BY_ENGINE, ON_WORKERS
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.strikes import kill_engines_after
from tests.faults.tampering import At, fail

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
FIRST = {
    "workers": "one",
    "workers best-duel": "one",
    "workers certify": "large",
    "workers route": "counter",
}
"""The model that meets the fault, by kind of campaign."""


@fault("an engine is killed within a batch", *ON_WORKERS, codes=DONE, states=SETTLED)
def killed(scene: Scene) -> Meeting:
    yield _met(scene, "kill")


@fault("an engine ends with an error of CUDA within a batch", *ON_WORKERS, codes=DONE, states=SETTLED)
def ends(scene: Scene) -> Meeting:
    yield _met(scene, "leave")


@fault("an engine hangs within a batch", *ON_WORKERS, codes=DONE, states=SETTLED)
def hangs(scene: Scene) -> Meeting:
    yield _met(scene, "hang")


@fault("an engine is frozen within a batch", *ON_WORKERS, codes=DONE, states=SETTLED)
def frozen(scene: Scene) -> Meeting:
    yield _met(scene, "freeze")


@fault("an engine is killed three times in a row", *ON_WORKERS, codes=DONE, states=SETTLED)
def killed_often(scene: Scene) -> Meeting:
    yield _met(scene, "kill", times=3)


@fault("an engine answers too few requests", *ON_WORKERS, codes=DONE, states=SETTLED)
def too_few(scene: Scene) -> Meeting:
    yield _met(scene, "few")


@fault("an engine answers too many requests", *ON_WORKERS, codes=DONE, states=SETTLED)
def too_many(scene: Scene) -> Meeting:
    yield _met(scene, "many")


@fault("an engine writes bytes that are no message", *ON_WORKERS, codes=DONE, states=SETTLED)
def garbage(scene: Scene) -> Meeting:
    yield _met(scene, "garbage")


@fault("an engine's message is of the wrong kind", *ON_WORKERS, codes=DONE, states=SETTLED)
def wrong_kind(scene: Scene) -> Meeting:
    yield _met(scene, "list")


@fault("an engine's answers lack their fields", *ON_WORKERS, codes=DONE, states=SETTLED)
def strangers(scene: Scene) -> Meeting:
    yield _met(scene, "strangers")


@fault("an engine's message lacks the answers", *ON_WORKERS, codes=DONE, states=SETTLED)
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


@fault("a real vLLM engine is killed within a batch", *BY_ENGINE["vllm"], codes=DONE, states=SETTLED)
def vllm_killed(scene: Scene) -> Meeting:
    run = scene.run(At("before a batch", 3, partial(kill_engines_after, 0.02)))
    yield run.ended()


def _met(scene: Scene, do: str, times: int = 1) -> Run:
    scene.plan_fault(FIRST[scene.kind], "batch", 2, do, times)
    run = scene.run().ended()
    assert (scene.folder / "met").exists(), "the fault was not met"
    return run


class _Raise:
    """`fail` for an error whose class can be pickled."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    def __call__(self) -> None:
        fail(self._error)

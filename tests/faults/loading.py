"""Engines that do not come up: they hang, or there is no memory for them, or no checkpoint."""

from collections.abc import Generator
from functools import partial

from tests.faults.registry import DONE, STOPPED, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, fail

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
REFUSED = 2


@fault("an engine hangs on load", "workers", codes=DONE, states=SETTLED)
def hangs(scene: Scene) -> Meeting:
    yield _met(scene, "hang")


@fault("an engine is killed on load, short of memory", "workers", codes=DONE, states=SETTLED)
def killed(scene: Scene) -> Meeting:
    yield _met(scene, "kill")


@fault("an engine says that CUDA is out of memory on load", "workers", codes=DONE, states=SETTLED)
def out_of_memory(scene: Scene) -> Meeting:
    yield _met(scene, "memory")


@fault("vLLM finds the GPU's memory in use on load", "workers", codes=DONE, states=SETTLED)
def in_use(scene: Scene) -> Meeting:
    yield _met(scene, "little memory", times=2)


@fault("out of memory while transformers loads", "best-mean", codes=DONE, states=SETTLED)
def transformers_memory(scene: Scene) -> Meeting:
    import torch

    error = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 MiB.")
    yield scene.run(At("a model loads", 1, partial(fail, error))).ended()


@fault("MemoryError while transformers loads", "best-mean", codes=DONE, states=SETTLED)
def memory_error(scene: Scene) -> Meeting:
    yield scene.run(At("a model loads", 2, partial(fail, MemoryError()))).ended()


@fault("a checkpoint is gone at resume", "best-mean", codes=(REFUSED,), states=STOPPED)
def gone(scene: Scene) -> Meeting:
    scene.cut_short()
    model, elsewhere = scene.folder / "model-2", scene.folder / "elsewhere"
    model.rename(elsewhere)
    yield scene.resume().ended()
    elsewhere.rename(model)


@fault("a checkpoint has other weights at resume", "best-mean", codes=(REFUSED,), states=STOPPED)
def changed(scene: Scene) -> Meeting:
    scene.cut_short()
    weights = scene.folder / "model-2" / "model.safetensors"
    before = weights.read_bytes()
    weights.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    yield scene.resume().ended()
    weights.write_bytes(before)


def _met(scene: Scene, do: str, times: int = 1) -> Run:
    scene.plan_fault("one", "load", 1, do, times)
    run = scene.run().ended()
    assert (scene.folder / "met").exists(), "the fault was not met"
    return run

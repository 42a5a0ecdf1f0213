"""Inputs and answers that are far larger than anybody means them to be."""

from collections.abc import Generator
from pathlib import Path

import certify_campaigns as certify

from tests.faults.inputs import give_labels
from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, die

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
REFUSED = (2,)
HUGE = 100_000_000
"""Characters."""
NOT_BEGUN = (None,)


@fault("a line of the dataset has 100 MB", *OBJECTIVES, codes=REFUSED, states=NOT_BEGUN)
def long_line(scene: Scene) -> Meeting:
    data = scene.folder / "data.jsonl"
    yield from _with(scene, data, '{"id": "huge", "input": "' + "7" * HUGE + '", "target": "a"}\n')


@fault("a line of the dataset has 100 MB and no end", "best-mean", codes=REFUSED, states=NOT_BEGUN)
def endless_line(scene: Scene) -> Meeting:
    yield from _with(scene, scene.folder / "data.jsonl", '{"id": "huge", "input": "' + "7" * HUGE)


@fault("the spec has a line of 100 MB", "best-mean", codes=REFUSED, states=NOT_BEGUN)
def long_spec(scene: Scene) -> Meeting:
    yield from _with(scene, scene.folder / "campaign.yaml", "# " + "x" * HUGE + "\n")


@fault("a line of a file of labels has 100 MB", "unlabelled", codes=REFUSED, states=("waiting",))
def long_label(scene: Scene) -> Meeting:
    scene.run().ended()
    file = certify.write_labels(scene.folder, certify.all_keys())
    with file.open("a") as labels:
        labels.write('{"id": "e1", "target": "' + "a" * HUGE + '"}\n')
    yield scene.command("label", "survivor", str(file), "--storage", scene.storage).ended()
    assert scene.stored("SELECT count(*) FROM labels") == [(0,)], "half of a file was stored"
    give_labels(scene)


@fault("an engine's message has 100 MB", "workers", codes=DONE, states=SETTLED)
def long_answer(scene: Scene) -> Meeting:
    scene.plan_fault("one", "batch", 2, "huge")
    run = scene.run().ended()
    assert (scene.folder / "met").exists(), "the fault was not met"
    yield run


@fault("kill -9 among a million examples", "million", codes=(-9,))
def million(scene: Scene) -> Meeting:
    yield scene.run(At("before a batch", 3, die)).ended()


def _with(scene: Scene, file: Path, more: str) -> Meeting:
    """Have a campaign begun from a file that ends in something that should not be there."""
    before = file.read_bytes()
    file.write_bytes(before + more.encode())
    yield scene.run().ended()
    file.write_bytes(before)

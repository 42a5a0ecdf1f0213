"""Files that a campaign was begun with, which are gone, changed or broken when it goes on."""

from collections.abc import Generator
from pathlib import Path

import certify_campaigns as certify

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, die

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
REFUSED = (2,)
KILLED = (-9,)


@fault("the dataset is gone at resume: it is not needed", *OBJECTIVES, codes=DONE, states=SETTLED)
def dataset_gone(scene: Scene) -> Meeting:
    scene.cut_short()
    (scene.folder / "data.jsonl").unlink()
    yield scene.resume().ended()


@fault("the dataset has another row when it is run again", *OBJECTIVES, codes=REFUSED)
def dataset_changed(scene: Scene) -> Meeting:
    scene.cut_short()
    with (scene.folder / "data.jsonl").open("a") as data:
        data.write('{"id": "new", "input": "count 1", "target": "a", "type": "count"}\n')
    yield scene.run().ended()


@fault("the dataset is cut off in a line", "best-mean", codes=REFUSED)
def dataset_cut(scene: Scene) -> Meeting:
    scene.cut_short()
    data = scene.folder / "data.jsonl"
    data.write_text(data.read_text()[:-20])
    yield scene.run().ended()


@fault("the spec asks for another seed when it is run again", *OBJECTIVES, codes=REFUSED)
def seed_changed(scene: Scene) -> Meeting:
    scene.cut_short()
    yield scene.command("run", "campaign.yaml", "--set", "seed=99").ended()


@fault("the spec is gone at resume: it is not needed", "best-mean", codes=DONE, states=SETTLED)
def spec_gone(scene: Scene) -> Meeting:
    scene.cut_short()
    (scene.folder / "campaign.yaml").unlink()
    yield scene.resume().ended()


@fault("the spec is no YAML when it is run again", "best-mean", codes=REFUSED)
def spec_broken(scene: Scene) -> Meeting:
    scene.cut_short()
    spec = scene.folder / "campaign.yaml"
    spec.write_text(spec.read_text() + "\n  stopping: [")
    yield scene.run().ended()


@fault("kill -9 while labels are stored", "unlabelled", codes=KILLED, states=("waiting",))
def labels_killed(scene: Scene) -> Meeting:
    scene.run().ended()
    file = certify.write_labels(scene.folder, certify.all_keys())
    label = ("label", "survivor", str(file), "--storage", scene.storage)
    yield scene.command(*label, tamperings=[At("before a commit", 1, die)]).ended()
    give_labels(scene)


@fault("a file of labels is cut off in a line", "unlabelled", codes=REFUSED, states=("waiting",))
def labels_cut(scene: Scene) -> Meeting:
    scene.run().ended()
    file = certify.write_labels(scene.folder, certify.all_keys())
    _cut(file)
    yield scene.command("label", "survivor", str(file), "--storage", scene.storage).ended()
    assert scene.stored("SELECT count(*) FROM labels") == [(0,)], "half of a file was stored"
    give_labels(scene)


def give_labels(scene: Scene) -> None:
    """Label every example of a campaign that certifies."""
    file = certify.write_labels(scene.folder, certify.all_keys())
    labelled = scene.command("label", "survivor", str(file), "--storage", scene.storage).ended()
    assert labelled.code == 0, labelled.said


def _cut(file: Path) -> None:
    file.write_text(file.read_text()[:-10])

"""A campaign whose texts another one has taken up is deleted while that one is within a round."""

from collections.abc import Generator

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, hold

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
BOTH = ("sqlite", "postgresql")


@fault(
    "its texts' campaign is pruned within a round", *OBJECTIVES, codes=DONE, states=SETTLED, databases=BOTH
)
def pruned_within_a_round(scene: Scene) -> Meeting:
    _done(scene, "run", "campaign.yaml", "--set", "name=elder")
    run = scene.run(At("texts are at hand", 1, hold)).held()
    assert scene.stored("SELECT count(*) FROM pins")[0][0] > 0, "it has taken up no text"
    _prune(scene, "elder")
    # Other texts come, which might get the ids of those that went.
    _done(scene, "run", "campaign.yaml", "--set", "name=stranger", "--set", "seed=12")
    yield run.go().ended()
    assert scene.problems() == []
    _prune(scene, "stranger")


def _prune(scene: Scene, name: str) -> None:
    _done(scene, "db", "prune", "--older-than", "0h", "--campaign", name, "--yes", "--storage", scene.storage)


def _done(scene: Scene, *arguments: str) -> None:
    run = scene.command(*arguments)
    assert run.code in DONE, run.said

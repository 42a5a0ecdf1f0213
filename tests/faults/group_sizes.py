"""A campaign that is killed and goes on with other group sizes, and so with other batches in its engines."""

from collections.abc import Generator

from tests.faults.registry import fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import At, die

Meeting = Generator[Run, None, None]

ON_TRANSFORMERS = ("best-mean", "best-duel", "transformers certify", "transformers route")
"""Campaigns of all four objectives whose tokens Winnow draws itself."""


@fault(
    "killed within a batch, and resumed with other group sizes",
    *ON_TRANSFORMERS,
    "large vocabulary",
    codes=(-9,),
)
def other_group_sizes(scene: Scene) -> Meeting:
    yield scene.run(At("before a batch", 3, die)).ended()
    for size, tamperings in ((7, (At("before a batch", 2, die),)), (32, ())):
        sized = ("--set", f"execution.group_size={size}")
        scene.command("resume", "survivor", "--storage", scene.storage, *sized, tamperings=tamperings).ended()

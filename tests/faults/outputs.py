"""Where a campaign writes beside its database: logs, standard streams, its folder of work."""

from collections.abc import Generator
from functools import partial

from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.tampering import closed, disk_of, onto, without_reader

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
LARGEST = 4_000_000
"""Bytes."""


@fault("the log folder cannot be made", "workers", codes=(1,))
def no_log_folder(scene: Scene) -> Meeting:
    logs = scene.folder / "logs"
    logs.write_text("a file where the folder should be")
    yield scene.run().ended()
    logs.unlink()


@fault("the disk of the log folder is full", "workers", codes=DONE, states=SETTLED)
def full_log_folder(scene: Scene) -> Meeting:
    logs = scene.folder / "logs" / "survivor"
    logs.mkdir(parents=True)
    # Longer than any file may be by now; the database is far smaller.
    (logs / "one.log").write_bytes(b"\n" * LARGEST)
    scene.plan_fault("one", "batch", 2, "leave")
    yield scene.run(partial(disk_of, LARGEST)).ended()


@fault("nobody reads standard error any more", "best-mean", codes=DONE, states=SETTLED)
def no_reader_of_errors(scene: Scene) -> Meeting:
    yield scene.run(partial(without_reader, 2)).ended()


@fault("nobody reads either output any more", "best-mean", codes=(*DONE, 1), states=SETTLED)
def no_reader(scene: Scene) -> Meeting:
    yield scene.run(partial(without_reader, 1, 2)).ended()


@fault("standard error goes to a full disk", "best-mean", codes=DONE, states=SETTLED)
def errors_on_full_disk(scene: Scene) -> Meeting:
    yield scene.run(partial(onto, "/dev/full", 2)).ended()


@fault("both outputs go to a full disk", "best-mean", codes=(*DONE, 1), states=SETTLED)
def outputs_on_full_disk(scene: Scene) -> Meeting:
    yield scene.run(partial(onto, "/dev/full", 1, 2)).ended()


@fault("begun with all standard streams closed", "best-mean", "workers", codes=DONE, states=SETTLED)
def all_closed(scene: Scene) -> Meeting:
    yield scene.run(partial(closed, 0, 1, 2)).ended()


@fault("begun without standard input", "best-mean", codes=DONE, states=SETTLED)
def no_input(scene: Scene) -> Meeting:
    yield scene.run(partial(closed, 0)).ended()

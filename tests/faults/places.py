"""Folders that a process counts on and that are not there, and disks that are full under what is exported."""

import errno
import os
import shutil
import tempfile
from collections.abc import Generator
from functools import partial
from pathlib import Path

from tests.faults.calls import ALWAYS, Passage, passing
from tests.faults.kinds import OBJECTIVES, ON_WORKERS
from tests.faults.registry import DONE, STOPPED, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.system_calls import begin_counting
from tests.faults.tampering import At, hold, with_environment

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
ERROR = (1,)
NOWHERE = "/proc/nowhere"
"""Where nobody can make a folder."""


@fault("the log folder is removed within a batch", *ON_WORKERS, codes=DONE, states=SETTLED)
def no_logs(scene: Scene) -> Meeting:
    run = scene.run(At("before a batch", 3, hold)).held()
    shutil.rmtree(scene.folder / "logs")
    yield run.go().ended()


@fault("there is no folder for temporary files", *OBJECTIVES, "workers", codes=(*DONE, 1),
       states=(*STOPPED, *SETTLED, None))  # fmt: skip
def no_temporary_files(scene: Scene) -> Meeting:
    yield scene.run(without_temporary_files).ended()


@fault("its folder is removed before it is resumed", *OBJECTIVES, codes=ERROR)
def no_folder(scene: Scene) -> Meeting:
    scene.cut_short()
    yield scene.resume(in_a_folder_that_is_gone).ended()


@fault("the home folder is not there", "best-mean", "workers", codes=DONE, states=SETTLED)
def no_home(scene: Scene) -> Meeting:
    yield scene.run(partial(with_environment, {"HOME": NOWHERE, "XDG_CACHE_HOME": NOWHERE})).ended()


@fault("Prefect's folder cannot be made", "best-mean", codes=ERROR, states=("new", None))
def no_prefect_home(scene: Scene) -> Meeting:
    yield scene.anew("run", "campaign.yaml", PREFECT_HOME=NOWHERE, PREFECT_API_URL="").ended()


@fault("the disk is full while winnow export writes", *OBJECTIVES, codes=ERROR)
def export_on_full_disk(scene: Scene) -> Meeting:
    yield from _writing(scene, errno.ENOSPC, "found", "export", "survivor", "found")


@fault("the file system becomes read-only while winnow export writes", "best-mean", "route", codes=ERROR)
def export_on_read_only_disk(scene: Scene) -> Meeting:
    yield from _writing(scene, errno.EROFS, "found", "export", "survivor", "found")


@fault("the disk is full while winnow report writes", *OBJECTIVES, codes=ERROR)
def report_on_full_disk(scene: Scene) -> Meeting:
    yield from _writing(scene, errno.ENOSPC, "r.html", "report", "survivor", "--html", "r.html")


@fault("the disk is full while winnow db copy writes", "best-mean", "certify", codes=ERROR)
def copy_on_full_disk(scene: Scene) -> Meeting:
    scene.cut_short()
    arguments = ("db", "copy", scene.storage, "sqlite:///copied.db")
    with passing(scene, Passage(r"(pwrite64|write) copied\.db.*", 30, errno.ENOSPC, ALWAYS)) as tampering:
        yield scene.command(*arguments, tamperings=(tampering, begin_counting)).ended()


def _writing(scene: Scene, error: int, name: str, *arguments: str) -> Meeting:
    """Have a command's writes fail; nothing is then left of what it was to write."""
    scene.cut_short()
    writes = r"(write|writev|openat|pwrite64) (?!out-|err-|winnow\.db|\.winnow).*"
    with passing(scene, Passage(writes, 2, error, ALWAYS)) as tampering:
        command = (*arguments, "--storage", scene.storage)
        run = scene.command(*command, tamperings=(tampering, begin_counting)).ended()
    assert not (scene.folder / name).exists(), f"a part of {name} is there"
    yield run


def without_temporary_files() -> None:
    """Have the folder for temporary files be one that nobody can make."""
    os.environ["TMPDIR"] = tempfile.tempdir = NOWHERE


def in_a_folder_that_is_gone() -> None:
    """Be in a folder that somebody has removed."""
    folder = Path("gone")
    folder.mkdir()
    os.chdir(folder)
    Path("../gone").rmdir()

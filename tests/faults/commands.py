"""Other commands that are killed, or that work on the database of a campaign that is being run."""

import hashlib
import re
import shutil
import signal
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.strikes import overseen
from tests.faults.system_calls import KILL, begin_counting
from tests.faults.tampering import At, hold

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
BOTH = ("sqlite", "postgresql")
KILLED = (-signal.SIGKILL,)
IN_A_BATCH = At("before a batch", 3, hold)
MOMENT = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?")
SHARES = (0.0, 0.3, 0.6, 0.95)
"""At which parts of a command's system calls it is killed."""


@fault("kill -9 of winnow export", *OBJECTIVES, codes=KILLED)
def export_csv(scene: Scene) -> Meeting:
    yield from _killed_writing(scene, Path("found"), "export", "survivor", "found")


@fault("kill -9 of winnow export --format jsonl", "best-mean", "best-duel", codes=KILLED)
def export_jsonl(scene: Scene) -> Meeting:
    yield from _killed_writing(scene, Path("found"), "export", "survivor", "found", "--format", "jsonl")


@fault("kill -9 of winnow export --format parquet", "best-mean", "route", codes=KILLED)
def export_parquet(scene: Scene) -> Meeting:
    yield from _killed_writing(scene, Path("found"), "export", "survivor", "found", "--format", "parquet")


@fault("kill -9 of winnow report --html", *OBJECTIVES, codes=KILLED)
def report_html(scene: Scene) -> Meeting:
    yield from _killed_writing(scene, Path("r.html"), "report", "survivor", "--html", "r.html")


@fault("kill -9 of winnow db copy", "best-mean", "certify", codes=KILLED)
def copy(scene: Scene) -> Meeting:
    scene.cut_short()
    target = "sqlite:///copied.db"
    yield from killed_at_calls(scene, "db", "copy", scene.storage, target)
    for part in ("", "-wal", "-shm", "-journal"):
        (scene.folder / f"copied.db{part}").unlink(missing_ok=True)
    done(scene, "db", "copy", scene.storage, target)


@fault("kill -9 of winnow db vacuum", *OBJECTIVES, codes=KILLED)
def vacuum(scene: Scene) -> Meeting:
    scene.cut_short()
    yield from killed_at_calls(scene, "db", "vacuum", "--storage", scene.storage)
    assert scene.problems() == []


@fault("kill -9 of winnow db prune", "best-mean", "best-duel", codes=KILLED)
def prune(scene: Scene) -> Meeting:
    done(scene, "run", "campaign.yaml", "--set", "name=elder", "--set", "seed=12")
    scene.cut_short()
    arguments = ("--older-than", "0h", "--campaign", "elder", "--yes", "--storage", scene.storage)
    yield from killed_at_calls(scene, "db", "prune", *arguments)
    assert scene.problems() == []
    if scene.stored("SELECT 1 FROM campaigns WHERE name = 'elder'"):
        done(scene, "db", "prune", *arguments)


@fault("upgrade beside a running campaign", *OBJECTIVES, codes=DONE, states=SETTLED, databases=BOTH)
def upgrade_beside(scene: Scene) -> Meeting:
    yield _beside(scene, ("db", "upgrade", "--storage", scene.storage))


@fault("db check beside a running campaign", *OBJECTIVES, codes=DONE, states=SETTLED, databases=BOTH)
def check_beside(scene: Scene) -> Meeting:
    yield _beside(scene, ("db", "check", "--storage", scene.storage))


@fault("db vacuum beside a running campaign", *OBJECTIVES, codes=DONE, states=SETTLED, databases=BOTH)
def vacuum_beside(scene: Scene) -> Meeting:
    yield _beside(scene, ("db", "vacuum", "--storage", scene.storage), codes=(0, 1))


@fault("db copy beside a running campaign", *OBJECTIVES, codes=DONE, states=SETTLED)
def copy_beside(scene: Scene) -> Meeting:
    yield _beside(scene, ("db", "copy", scene.storage, "sqlite:///copied.db"))


@fault(
    "db prune of a campaign that is being run",
    "best-mean",
    "route",
    codes=DONE,
    states=SETTLED,
    databases=BOTH,
)
def prune_beside(scene: Scene) -> Meeting:
    arguments = ("db", "prune", "--older-than", "0h", "--campaign", "survivor", "--yes")
    yield _beside(scene, (*arguments, "--storage", scene.storage), codes=(0, 1, 2))


@fault("export and report beside a running campaign", *OBJECTIVES, codes=DONE, states=SETTLED, databases=BOTH)
def read_beside(scene: Scene) -> Meeting:
    where = ("--storage", scene.storage)
    export, report = (
        ("export", "survivor", "found", *where),
        ("report", "survivor", "--html", "r.html", *where),
    )
    yield _beside(scene, export, report)


@fault("another spec is run under its name while it is run", *OBJECTIVES, codes=DONE, states=SETTLED)
def another_spec(scene: Scene) -> Meeting:
    yield _beside(scene, ("run", "campaign.yaml", "--set", "seed=99"), codes=(2,))


@fault(
    "another campaign is run in the same database", *OBJECTIVES, codes=DONE, states=SETTLED, databases=BOTH
)
def another_campaign(scene: Scene) -> Meeting:
    yield _beside(scene, ("run", "campaign.yaml", "--set", "name=other", "--set", "seed=12"), codes=DONE)
    done(
        scene, "db", "prune", "--older-than", "0h", "--campaign", "other", "--yes", "--storage", scene.storage
    )


def _beside(scene: Scene, *commands: tuple[str, ...], codes: tuple[int, ...] = (0,)) -> Run:
    """Run commands while a campaign is held within a batch, which then goes on to its end."""
    run = scene.run(IN_A_BATCH).held()
    for command in commands:
        other = scene.command(*command)
        assert other.code in codes, f"{' '.join(command)}: {other.code}: {other.said}"
        assert "Traceback" not in other.said, other.said
    return run.go().ended()


def _killed_writing(scene: Scene, target: Path, *arguments: str) -> Meeting:
    """Kill a command again and again; what it writes is there as a whole or not at all."""
    scene.cut_short()
    command = (*arguments, "--storage", scene.storage)
    done(scene, *command)
    whole = _files(scene.folder / target)
    _remove(scene.folder / target)
    yield from killed_at_calls(scene, *command, written=Written(scene.folder / target, whole))
    _remove(scene.folder / target)
    done(scene, *command)
    assert _files(scene.folder / target) == whole, "after a kill it writes something else"


@dataclass(frozen=True)
class Written:
    """What a command is to write."""

    path: Path
    whole: dict[str, str]

    def is_whole_or_absent(self) -> bool:
        return not self.path.exists() or _files(self.path) == self.whole


def _files(path: Path) -> dict[str, str]:
    """The files that a command wrote, by name, each with what it holds but the moment it was written at."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return {each.name: _digest(each) for each in files if each.is_file()}


def _digest(file: Path) -> str:
    content = MOMENT.sub(b"", file.read_bytes())
    return hashlib.sha256(content).hexdigest()


def killed_at_calls(
    scene: Scene, *command: str, written: Written | None = None, again: Callable[[], None] = lambda: None
) -> Meeting:
    """Kill a command at some of its system calls, each time anew; yields the last of them.

    Args:
        scene: Where.
        command: The command's arguments.
        written: What it writes beside the database.
        again: Takes away what it wrote in the database, so that it has the same to do again.
    """

    def forget() -> None:
        _forget(scene, command, written)
        again()

    with overseen(scene) as overseer:
        whole = scene.command(*command, tamperings=(overseer.tampering, begin_counting))
        assert whole.code in DONE, whole.said
    forget()
    for share in SHARES:
        number = max(1, round(share * len(overseer.calls)))
        with overseen(scene, lambda call, number=number: KILL if call.number == number else None) as killer:
            run = scene.command(*command, tamperings=(killer.tampering, begin_counting)).ended()
        assert written is None or written.is_whole_or_absent(), f"a part of {written.path} is there"
        if share < SHARES[-1]:
            assert run.code == -signal.SIGKILL, run.said
            forget()
    yield run


def _forget(scene: Scene, command: tuple[str, ...], written: Written | None) -> None:
    """Have nothing be there of what a command wrote, so that it has the same to do again."""
    if written is not None:
        _remove(written.path)
    for left in scene.folder.glob("copied.db*"):
        left.unlink()
    if "prune" in command and not scene.stored("SELECT 1 FROM campaigns WHERE name = 'elder'"):
        done(scene, "run", "campaign.yaml", "--set", "name=elder", "--set", "seed=12")


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def done(scene: Scene, *arguments: str) -> None:
    """Have a command do what it is there for."""
    run = scene.command(*arguments)
    assert run.code in DONE, f"{' '.join(arguments)}: {run.code}: {run.said}"

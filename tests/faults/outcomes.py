"""What became of a campaign that met a fault, held against the same campaign left alone."""

import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any, Protocol

from tests.faults import histories
from tests.faults.registry import Fault
from tests.faults.scenes import Scene
from tests.faults.tampering import Tampering


class Server(Protocol):
    """Where new PostgreSQL databases come from."""

    def new_database(self) -> str: ...

    def drop_database(self, url: str) -> None: ...


@dataclass(kw_only=True)
class Outcome:
    """A row of the table."""

    fault: str
    campaign: str
    database: str
    code: int | None = None
    sentence: str = ""
    status: str = ""
    processes: int = 0
    same_decision: bool = False
    lost: int | None = None
    doubled: int | None = None
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)
    """What is not as it should be; a good row has nothing here."""

    @property
    def is_good(self) -> bool:
        return not self.wrong

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


class Stage:
    """Runs faults, each in a new folder, and keeps the reference of each kind of campaign."""

    def __init__(self, forks: ForkServerContext, parent: Path, server: Server | None) -> None:
        self.forks, self.server = forks, server
        self.always: tuple[Tampering, ...] = ()
        """What every process of a new campaign does first."""
        self._parent = parent
        self._references: dict[str, histories.History] = {}

    def scene(self, kind: str, database: str) -> Scene:
        """A new campaign."""
        folder = Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=self._parent))
        if database == "sqlite":
            storage = f"sqlite:///{folder}/winnow.db"
            return Scene(self.forks, folder, kind, storage, always=self.always)
        assert self.server is not None
        return Scene(self.forks, folder, kind, self.server.new_database(), self.server, self.always)

    def clear(self, scene: Scene) -> None:
        """Leave nothing of a campaign."""
        shutil.rmtree(scene.folder, ignore_errors=True)
        if self.server is not None and scene.server is not None:
            self.server.drop_database(scene.storage)

    def reference(self, kind: str) -> histories.History:
        """The rows of a campaign that nothing happened to; run once."""
        if kind not in self._references:
            scene = self.scene(kind, "sqlite")
            run = scene.run().ended()
            if kind == "unlabelled":
                from tests.faults.inputs import give_labels

                give_labels(scene)
            scene.finish()
            assert "Traceback" not in run.said, run.said
            self._references[kind] = scene.history()
            self.clear(scene)
        return self._references[kind]

    def outcome(self, fault: Fault) -> Outcome:
        """Have a campaign meet a fault and go on to its end."""
        reference = self.reference(fault.kind)
        row = Outcome(fault=fault.name, campaign=fault.kind, database=fault.database)
        started = time.monotonic()
        scene = self.scene(fault.kind, fault.database)
        try:
            self._meet(fault, scene, row)
            self._compare(scene, reference, row)
        except Exception as error:  # a row of the table, whatever it is
            row.wrong.append(f"{type(error).__name__}: {error}")
        row.seconds = round(time.monotonic() - started, 1)
        if row.is_good:
            self.clear(scene)
        return row

    def _meet(self, fault: Fault, scene: Scene, row: Outcome) -> None:
        meeting = fault.meet(scene)
        run = next(meeting)
        row.code, row.sentence = run.code, run.sentence
        status = scene.status()
        row.status = describe(status)
        if row.code not in fault.codes:
            row.wrong.append(f"ended with {row.code}, not {sorted(fault.codes)}: {_end_of(run.said)}")
        if "Traceback" in run.said or "Traceback" in run.out:
            row.wrong.append(f"a traceback: {_end_of(run.said)}")
        if status["state"] not in fault.states and row.code not in (0, 3):
            row.wrong.append(f"its state is {status['state']}, not one of {fault.states}")
        if status["state"] in ("interrupted", "new") and not status.get("resume"):
            row.wrong.append("its status does not say how to go on")
        with suppress(StopIteration):
            next(meeting)
            raise AssertionError("a fault yields once")

    def _compare(self, scene: Scene, reference: histories.History, row: Outcome) -> None:
        if scene.is_stored:
            histories.note_stored(scene.folder)
        row.processes = 1 + scene.finish()
        found = scene.history()
        row.lost, row.doubled = histories.lost(found, reference), histories.doubled(found, reference)
        row.same_decision = histories.last_decision(found) == histories.last_decision(reference)
        if not row.same_decision:
            row.wrong.append("another decision")
        if row.lost or row.doubled:
            row.wrong.append(histories.difference(found, reference))
        if again := histories.asked_again(scene.folder):
            row.wrong.append(f"{again} texts that were committed were asked for again")
        row.wrong += scene.problems()


def _end_of(text: str, lines: int = 6) -> str:
    return " / ".join(text.strip().splitlines()[-lines:])


def describe(status: dict) -> str:
    """The state, and who holds the campaign or how its last process left it."""
    if status["state"] is None:
        return f"refused: {status['refused']}"
    more = status.get("holder") or status.get("left") or ""
    return f"{status['state']}: {more}" if more else status["state"]

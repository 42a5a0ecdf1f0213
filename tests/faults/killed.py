"""What a killed process left, and what became of its campaign."""

import shutil
from dataclasses import dataclass, field
from pathlib import Path

from campaign_processes import STORAGE, rows

from tests.faults import histories
from tests.faults.scenes import Scene, problems_of

PHASES = ("between rounds", "planned", "texts arrive", "after the last decision")
"""What is in the database when a process dies that held the lease."""


@dataclass(kw_only=True)
class Killed:
    """What became of one campaign."""

    engine: str
    objective: str
    database: str
    kills: list[dict[str, str]] = field(default_factory=list)
    """How each was killed, at which system call if at one, and what was in the database."""
    lost: int = 0
    doubled: int = 0
    wrong_links: int = 0
    asked_again: int = 0
    """Committed texts that were asked for again."""
    same_decision: bool = False
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def copied(scene: Scene) -> Path:
    """A folder with what the killed process left of the database; nobody has opened the original since."""
    looked = scene.folder / "looked-at"
    looked.mkdir()
    url = scene.storage
    if scene.server is None:
        for part in ("", "-wal"):
            left = scene.database.with_name(scene.database.name + part)
            if left.exists():
                shutil.copy(left, looked)
        url = f"sqlite:///{looked}/{scene.database.name}"
    (looked / STORAGE).write_text(url)
    return looked


def phase_of(looked: Path) -> str:
    if rows(looked, "SELECT 1 FROM decisions WHERE stop"):
        return PHASES[3]
    unfinished = rows(
        looked, "SELECT r.id FROM rounds r LEFT JOIN decisions d ON d.round_id = r.id WHERE d.id IS NULL"
    )
    if not unfinished:
        return PHASES[0]
    texts = rows(looked, f"SELECT 1 FROM generations WHERE round_id = {unfinished[0][0]}")
    return PHASES[2] if texts else PHASES[1]


def check(scene: Scene, looked: Path, row: Killed) -> None:
    """What `winnow db check` says."""
    wrong, links = problems_of((looked / STORAGE).read_text(), scene.folder)
    row.wrong_links += len(links)
    row.wrong += [*wrong, *links]


def compare(scene: Scene, reference: histories.History, row: Killed) -> None:
    """Have a process go on to the end, and hold all rows against the reference."""
    _finish(scene)
    found = scene.history()
    row.lost, row.doubled = histories.lost(found, reference), histories.doubled(found, reference)
    row.asked_again += histories.asked_again(scene.folder)
    row.same_decision = histories.last_decision(found) == histories.last_decision(reference)
    wrong, links = problems_of(scene.storage, scene.folder)
    row.wrong_links += len(links)
    row.wrong += [*wrong, *links]
    if found != reference:
        row.wrong.append(histories.difference(found, reference))
    if row.asked_again:
        row.wrong.append(f"{row.asked_again} texts that were committed were asked for again")
    if not row.same_decision:
        row.wrong.append("another decision")


def _finish(scene: Scene) -> None:
    if not scene.has_ended:
        scene.finish()

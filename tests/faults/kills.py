"""kill -9 at random moments, again and again, over campaigns of all four objectives on both databases.

python -m tests.faults.kills --out .winnow/faults --kills 500
"""

import argparse
import json
import random
import shutil
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from itertools import product
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock

import psutil

from tests.faults import histories
from tests.faults.kinds import OBJECTIVES
from tests.faults.outcomes import Stage
from tests.faults.runs import Run
from tests.faults.scenes import Scene
from tests.faults.staging import stage

DATABASES = ("sqlite", "postgresql")
PHASES = (
    "before the campaign is stored",
    "before the lease",
    "between rounds",
    "planned",
    "texts arrive",
    "after the last decision",
)
"""What is in the database when the process dies."""
LOOK = 0.005
"""Seconds between looks at how far a process has come."""


@dataclass(kw_only=True)
class Killed:
    """What became of the campaigns of one objective on one database."""

    objective: str
    database: str
    kills: int = 0
    campaigns: int = 0
    most_kills: int = 0
    """Of one campaign."""
    lost: int = 0
    doubled: int = 0
    asked_again: int = 0
    """Committed texts that were asked for again."""
    phases: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PHASES, 0))
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)


def kill_campaigns(
    ready: Stage, kills: int, folder: Path, *, seed: int = 8, abreast: int = 2
) -> list[Killed]:
    """Kill processes until each objective has had its share on each database, one campaign after the other.

    Args:
        ready: Where campaigns are run.
        kills: Over all; each of the eight gets an eighth.
        folder: Where the table is written, anew after every campaign.
        seed: Of the moments.
        abreast: Campaigns that run side by side.
    """
    rows = [Killed(objective=each, database=database) for each, database in product(OBJECTIVES, DATABASES)]
    lives = {objective: _life(ready, objective) for objective in OBJECTIVES}
    waiting: SimpleQueue[tuple[Killed, int, random.Random]] = SimpleQueue()
    for number, row in enumerate(rows):
        share = kills // len(rows) + (number < kills % len(rows))
        waiting.put((row, share, random.Random(f"{seed} {row.objective} {row.database}")))

    def work(_: int) -> None:
        while True:
            try:
                row, share, chance = waiting.get_nowait()
            except Empty:
                return
            started = time.monotonic()
            _one_campaign(ready, row, chance, lives[row.objective], share)
            row.seconds = round(row.seconds + time.monotonic() - started, 1)
            if row.kills < share:
                waiting.put((row, share, chance))
            with writing:
                write_kills(rows, folder)

    writing = Lock()
    with ThreadPoolExecutor(abreast) as threads:
        list(threads.map(work, range(abreast)))
    return rows


def _life(ready: Stage, objective: str) -> float:
    """Seconds of processor time that an uninterrupted process takes; its rows become the reference."""
    ready.reference(objective)
    run = ready.scene(objective, "sqlite").run()
    used = 0.0
    while run.process.exitcode is None:
        used = max(used, _used(run))
        time.sleep(LOOK)
    return used


def _one_campaign(ready: Stage, row: Killed, chance: random.Random, life: float, most: int) -> None:
    """Kill a campaign's processes at random moments until one gets to the end before its moment."""
    scene, kills = ready.scene(row.objective, row.database), 0
    while row.kills < most:
        before = _token(scene)
        if before is not None:
            histories.note_stored(scene.folder)
        run = scene.run() if before is None else scene.resume()
        if not _killed(run, chance.uniform(0.0, life)):
            break
        kills += 1
        row.kills += 1
        row.phases[_phase(scene, before)] += 1
        row.asked_again += histories.asked_again(scene.folder)
    if "Traceback" in run.said:
        row.wrong.append(f"a traceback: {run.said[-2000:]}")
    _end(scene)
    found, reference = scene.history(), ready.reference(row.objective)
    row.campaigns += 1
    row.most_kills = max(row.most_kills, kills)
    row.lost += histories.lost(found, reference)
    row.doubled += histories.doubled(found, reference)
    row.asked_again += histories.asked_again(scene.folder)
    row.wrong += scene.problems()
    if found != reference or row.asked_again:
        row.wrong.append(f"not as the reference: {scene.folder}")
    else:
        shutil.rmtree(scene.folder, ignore_errors=True)


def _killed(run: Run, moment: float) -> bool:
    """Kill a process once it has used so much processor time; False if it ended before."""
    while run.process.exitcode is None:
        if _used(run) >= moment:
            run.process.kill()
            break
        time.sleep(LOOK)
    return run.ended().code == -9


def _used(run: Run) -> float:
    try:
        times = psutil.Process(run.pid).cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(times.user + times.system)


def _end(scene: Scene) -> None:
    if _token(scene) is None:
        scene.run().ended()
    scene.finish()


def _token(scene: Scene) -> int | None:
    """How often the lease was taken; None where no campaign is stored yet."""
    try:
        if not scene.stored("SELECT 1 FROM campaigns"):
            return None
        return sum(token for (token,) in scene.stored("SELECT token FROM leases"))
    except Exception as error:  # either driver's, where there is no table yet
        if "no such table" in str(error) or "does not exist" in str(error):
            return None
        raise


def _phase(scene: Scene, before: int | None) -> str:
    now = _token(scene)
    if now is None:
        return PHASES[0]
    if now == (before or 0):
        return PHASES[1]
    if scene.has_ended:
        return PHASES[5]
    unfinished = scene.stored(
        "SELECT r.id FROM rounds r LEFT JOIN decisions d ON d.round_id = r.id WHERE d.id IS NULL"
    )
    if not unfinished:
        return PHASES[2]
    texts = scene.stored(f"SELECT 1 FROM generations WHERE round_id = {unfinished[0][0]}")
    return PHASES[4] if texts else PHASES[3]


def write_kills(rows: Sequence[Killed], folder: Path) -> Path:
    """Write kills.md and kills.json; return the first."""
    headings = ["objective", "database", "kills", "campaigns", "most of one", *PHASES]
    headings += ["lost", "doubled", "asked again", "s"]
    lines = [
        f"{sum(row.kills for row in rows)} kills of {sum(row.campaigns for row in rows)} campaigns: "
        f"{sum(row.lost for row in rows)} rows lost, {sum(row.doubled for row in rows)} doubled.",
        "",
        "| " + " | ".join(headings) + " |",
        "|" + "---|" * len(headings),
    ]
    for row in rows:
        values = [row.objective, row.database, row.kills, row.campaigns, row.most_kills]
        values += [row.phases[phase] for phase in PHASES]
        values += [row.lost, row.doubled, row.asked_again, row.seconds]
        lines.append("| " + " | ".join(map(str, values)) + " |")
    lines += [f"\n{row.objective} on {row.database}: {' '.join(row.wrong)}" for row in rows if row.wrong]
    path = folder / "kills.md"
    path.write_text("\n".join(lines) + "\n")
    (folder / "kills.json").write_text(json.dumps([asdict(row) for row in rows], indent=2))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/faults"))
    parser.add_argument("--kills", type=int, default=500)
    parser.add_argument("--seed", type=int, default=8, help="of the moments")
    parser.add_argument("--abreast", type=int, default=2, help="campaigns that run side by side")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with stage() as ready:
        rows = kill_campaigns(ready, options.kills, options.out, seed=options.seed, abreast=options.abreast)
    print(write_kills(rows, options.out).read_text())
    sys.exit(1 if any(row.wrong for row in rows) else 0)


if __name__ == "__main__":
    main()

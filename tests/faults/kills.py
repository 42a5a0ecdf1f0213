"""kill -9 at random moments, again and again, over campaigns of all four objectives on both databases.

python -m tests.faults.kills --out .winnow/faults [--page docs/faults.md] [--scripted 1700]
                             [--transformers 200] [--vllm 100]

A case is one campaign: its processes are killed, one after the other, until one gets to the end before its
moment. After every kill a copy of the database is checked as `winnow db check` does, and after the last
process all rows are held against those of the same campaign that nobody killed. The copy, since whoever opens
a SQLite file in passing tidies up what the killed process left, and it is Winnow that has to. Finished cases
are counted in its tables; a run that was stopped goes on behind them.
"""

import argparse
import random
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from tests.faults import histories
from tests.faults.counts import RANDOM, Counts, total
from tests.faults.killed import Killed, check, compare, copied, phase_of
from tests.faults.kinds import BY_ENGINE, OBJECTIVES
from tests.faults.outcomes import Stage
from tests.faults.scenes import Scene
from tests.faults.shared_imports import shared_imports
from tests.faults.staging import stage
from tests.faults.strikes import CALL, ENGINE, MOMENT, Length, length_of, struck

DATABASES = ("sqlite", "postgresql")
SHARES = {"scripted": 1700, "transformers": 200, "vllm": 100}
"""Kills by what answers."""
WAYS = {"scripted": (MOMENT, CALL), "transformers": (MOMENT, CALL), "vllm": (MOMENT, CALL, ENGINE)}
"""How processes are killed; an engine that is no process of its own cannot be."""
MOST_SAID = 5
"""Sentences about one campaign."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One campaign that is killed."""

    engine: str
    objective: str
    database: str
    number: int

    @property
    def key(self) -> str:
        return f"{self.engine} / {self.objective} / {self.database} / {self.number}"

    @property
    def kind(self) -> str:
        """A key of `KINDS`."""
        return BY_ENGINE[self.engine][OBJECTIVES.index(self.objective)]


class Killing:
    """Kills campaigns, one after the other."""

    def __init__(
        self, ready: Stage, counts: Counts, left: Path, seed: int = 8, databases: Sequence[str] = DATABASES
    ) -> None:
        """
        Args:
            ready: Where campaigns are run.
            counts: Of what became of them.
            left: Where the folder of a campaign is kept in which something went wrong.
            seed: Of the moments.
            databases: On which campaigns are.
        """
        self._ready, self._counts, self._left = ready, counts, left
        self._seed, self._databases = seed, databases
        self._lengths: dict[tuple[str, str], Length] = {}

    def kill(self, shares: dict[str, int]) -> None:
        """Kill so many processes for each engine, a part of them in each objective on each database."""
        for engine, share in shares.items():
            with shared_imports() if engine == "vllm" else nullcontext() as imports:
                self._ready.always = () if imports is None else (imports,)
                self._kill_on(engine, share)
            self._ready.always = ()

    def _kill_on(self, engine: str, share: int) -> None:
        for case, most in self._cases(engine, share):
            row = self._one_campaign(case, most)
            self._counts.add_kills(RANDOM, row)
            said = "; ".join(row.wrong) or "as the reference"
            print(f"{case.key}: {len(row.kills)} kills, {row.seconds:.1f} s, {said}", flush=True)

    def _cases(self, engine: str, share: int) -> Iterator[tuple[Case, int]]:
        """What is left to be killed, and how often at most; all eight get on together."""
        cells = list(product(OBJECTIVES, self._databases))
        shares = {cell: share // len(cells) + (at < share % len(cells)) for at, cell in enumerate(cells)}
        while any(
            (
                left := {cell: max(0, most - self._so_far(engine, cell)[1]) for cell, most in shares.items()}
            ).values()
        ):
            for (objective, database), most in left.items():
                number = self._so_far(engine, (objective, database))[0]
                if most > 0:
                    yield Case(engine=engine, objective=objective, database=database, number=number), most

    def _so_far(self, engine: str, cell: tuple[str, str]) -> tuple[int, int]:
        """How many campaigns there were, and how many kills."""
        rows = self._counts.kills(RANDOM, engine=engine, objective=cell[0], database=cell[1])
        return total(rows, "campaigns"), total(rows, "kills")

    def _one_campaign(self, case: Case, most: int) -> Killed:
        """Kill a campaign's processes until one gets to the end before its moment."""
        chance, length = random.Random(f"{self._seed} {case.key}"), self._length(case)
        row = Killed(engine=case.engine, objective=case.objective, database=case.database)
        started = time.monotonic()
        scene = self._ready.scene(case.kind, case.database)
        try:
            while len(row.kills) < most and self._one_process(scene, case, row, length, chance):
                pass
            compare(scene, self._ready.reference(case.kind), row)
        except Exception as error:  # a row of the table, whatever it is
            row.wrong.append(f"{type(error).__name__}: {error}")
        row.seconds = round(time.monotonic() - started, 1)
        if row.wrong:
            shutil.copytree(scene.folder, self._left / scene.folder.name, dirs_exist_ok=True)
            row.wrong = [*row.wrong[:MOST_SAID], f"left in {scene.folder.name}"]
        self._ready.clear(scene)
        return row

    def _length(self, case: Case) -> Length:
        known = self._lengths.get((case.kind, case.database))
        if known is None:
            scene = self._ready.scene(case.kind, case.database)
            known = self._lengths[case.kind, case.database] = length_of(scene)
            self._ready.clear(scene)
        return known

    def _one_process(
        self, scene: Scene, case: Case, row: Killed, length: Length, chance: random.Random
    ) -> bool:
        """Have a process go on and be killed; return whether it was, and not only its engine."""
        how = chance.choice(WAYS[case.engine])
        with struck(scene, how, length, chance) as strike:
            start = scene.resume if row.kills else scene.run
            run = start(*strike.tamperings).ended()
        if "Traceback" in run.said:
            row.wrong.append(f"a traceback: {run.said[-2000:]}")
        was_engine_killed = how == ENGINE and (scene.folder / "killed").exists()
        if run.code != -9 and not was_engine_killed:
            return False
        looked = copied(scene)
        row.kills.append({"how": how, "where": strike.where, "phase": phase_of(looked)})
        row.asked_again += 0 if was_engine_killed else histories.asked_again(scene.folder)
        check(scene, looked, row)
        histories.note_stored(scene.folder, looked)
        shutil.rmtree(looked)
        return run.code == -9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/faults"))
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="folder of the tables; OUT by default")
    parser.add_argument("--seed", type=int, default=8, help="of the moments")
    for engine, share in SHARES.items():
        parser.add_argument(f"--{engine}", type=int, default=share, metavar="KILLS")
    options = parser.parse_args()
    counts = Counts(options.tables or options.out)
    with stage() as ready:
        killing = Killing(ready, counts, options.out / "left", options.seed)
        killing.kill({engine: getattr(options, engine) for engine in SHARES})
    sys.exit(1 if counts.wrong else 0)


if __name__ == "__main__":
    main()

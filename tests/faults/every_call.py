"""kill -9 at every system call of one round: each write, flush, rename, removal and send, one by one.

python -m tests.faults.every_call --out .winnow/faults [--page docs/faults.md] [--only REGEX]

A campaign is stopped behind its first round and put aside. From there it goes on as many times as its second
round makes system calls, is killed at another one of them each time, goes on to the end, and is held against
the same campaign left alone. What is done already is counted in its tables.
"""

import argparse
import re
import shutil
import sys
import time
from itertools import product
from pathlib import Path

from tests.faults import histories
from tests.faults.counts import EVERY_CALL, Counts, total
from tests.faults.killed import Killed, check, compare, copied, phase_of
from tests.faults.kills import DATABASES
from tests.faults.kinds import BY_ENGINE, OBJECTIVES
from tests.faults.outcomes import Stage
from tests.faults.scenes import Scene
from tests.faults.staging import stage
from tests.faults.strikes import AT_LEASE, CALL, overseen
from tests.faults.system_calls import KILL, Call, begin_counting, end_counting
from tests.faults.tampering import At, die

ONE_ROUND = (At(AT_LEASE, 1, begin_counting), At("a round is done", 1, end_counting))


def kill_at_every_call(ready: Stage, counts: Counts, only: str = "") -> None:
    """Kill at each call of a round of every objective on both databases, or of those that fit a pattern."""
    kinds = zip(OBJECTIVES, BY_ENGINE["scripted"], strict=True)
    for (objective, kind), database in product(kinds, DATABASES):
        case = f"{objective} / {database}"
        done = counts.kills(EVERY_CALL, objective=objective, database=database)
        if total(done, "whole") or not re.search(only, case):
            continue
        scene = ready.scene(kind, database)
        aside = Aside(scene)
        calls = aside.calls_of_one_round()
        for call in calls[total(done, "kills") :]:
            row = Killed(engine="scripted", objective=objective, database=database)
            _kill_at(aside, call, row, ready)
            counts.add_kills(EVERY_CALL, row, is_whole=call is calls[-1])
            what = f"call {call.number} of {len(calls)}, {call.name} {call.target}"
            print(f"{case}: {what}: {'; '.join(row.wrong) or 'as the reference'}", flush=True)
        aside.clear()
        ready.clear(scene)


class Aside:
    """A campaign behind its first round, which can be had again and again."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._folder = scene.folder.with_name(f"{scene.folder.name}-aside")
        scene.run(At("a round is done", 1, die)).ended()
        shutil.copytree(scene.folder, self._folder)
        if scene.server is not None:
            self._copy_database(scene.database_name, self._database)

    def have_again(self) -> Scene:
        """Put everything back to where it was."""
        shutil.rmtree(self.scene.folder)
        shutil.copytree(self._folder, self.scene.folder)
        if self.scene.server is not None:
            self.scene.server.drop_database(self.scene.storage)
            self._copy_database(self._database, self.scene.database_name)
        return self.scene

    def calls_of_one_round(self) -> list[Call]:
        """What the next round asks of the system."""
        with overseen(self.have_again()) as overseer:
            self.scene.resume(overseer.tampering, *ONE_ROUND, At("a round is done", 1, die)).ended()
        return overseer.calls

    def clear(self) -> None:
        """Leave nothing of what was put aside."""
        shutil.rmtree(self._folder)
        if self.scene.server is not None:
            self.scene.server.drop_database(self._database)

    @property
    def _database(self) -> str:
        return f"{self.scene.database_name}_aside"

    def _copy_database(self, source: str, target: str) -> None:
        # A killed process's connection is there until the server has noticed.
        self.scene.server.execute(
            f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{source}'"
        )
        deadline = time.monotonic() + 30.0
        while self.scene.server.execute(f"SELECT 1 FROM pg_stat_activity WHERE datname = '{source}'"):
            assert time.monotonic() < deadline, f"somebody stays connected to {source}"
            time.sleep(0.01)
        self.scene.server.execute(f"CREATE DATABASE {target} TEMPLATE {source}")


def _kill_at(aside: Aside, call: Call, row: Killed, ready: Stage) -> None:
    """Kill the round at one call, go on to the end, and compare."""
    started, scene = time.monotonic(), aside.have_again()
    try:
        _note_stored(scene)
        with overseen(scene, lambda asked: KILL if asked.number == call.number else None) as overseer:
            run = scene.resume(overseer.tampering, *ONE_ROUND).ended()
        assert run.code == -9, f"it was to be killed, and ended with {run.code}: {run.said}"
        struck, looked = overseer.calls[-1], copied(scene)
        row.kills.append({"how": CALL, "where": f"{struck.name} {struck.target}", "phase": phase_of(looked)})
        row.asked_again += histories.asked_again(scene.folder)
        check(scene, looked, row)
        shutil.rmtree(looked)
        _note_stored(scene)
        compare(scene, ready.reference(scene.kind), row)
    except Exception as error:  # a row of the table, whatever it is
        row.wrong.append(f"{type(error).__name__}: {error}")
    row.seconds = round(time.monotonic() - started, 1)


def _note_stored(scene: Scene) -> None:
    looked = copied(scene)
    histories.note_stored(scene.folder, looked)
    shutil.rmtree(looked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(".winnow/faults"))
    parser.add_argument("--tables", type=Path, metavar="FOLDER", help="folder of the tables; OUT by default")
    parser.add_argument("--only", default="", metavar="REGEX", help="only where OBJECTIVE / DATABASE fits")
    options = parser.parse_args()
    counts = Counts(options.tables or options.out)
    with stage() as ready:
        kill_at_every_call(ready, counts, options.only)
    sys.exit(1 if counts.wrong else 0)


if __name__ == "__main__":
    main()

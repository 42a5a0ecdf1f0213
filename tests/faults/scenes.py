"""Where a fault is met: a campaign in a folder, its database, and commands run on both."""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir
from itertools import count
from multiprocessing.context import ForkServerContext
from pathlib import Path
from threading import Lock
from typing import Any

from campaign_processes import rows

from tests.faults import child, histories
from tests.faults.kinds import KINDS
from tests.faults.runs import Run
from tests.faults.tampering import At, Tampering, die

WRITING = Lock()
"""Models with random weights are drawn from the one generator of this process."""

MOST_RESUMES = 10
"""Processes after which a campaign that does not end is stuck."""


class Scene:
    """One campaign that is to meet one fault."""

    def __init__(
        self,
        forks: ForkServerContext,
        folder: Path,
        kind: str,
        storage: str,
        server: Any = None,
        always: Sequence[Tampering] = (),
    ) -> None:
        """
        Args:
            forks: Where its processes come from.
            folder: Of its files.
            kind: A key of `KINDS`.
            storage: URL of its database.
            server: The PostgreSQL server that its database is on.
            always: What each of its forks does first.
        """
        self.forks, self.folder, self.kind, self.storage, self.server = forks, folder, kind, storage, server
        self._always = always
        self._numbers = count()
        folder.mkdir(parents=True, exist_ok=True)
        with WRITING:
            KINDS[kind].write(folder, storage)

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return Path(self.storage.removeprefix("sqlite:///"))

    @property
    def database_name(self) -> str:
        """The PostgreSQL database."""
        return self.storage.rpartition("/")[2]

    def command(self, *arguments: str, tamperings: Sequence[Tampering] = ()) -> Run:
        """Start `winnow ARGUMENTS` as a fork."""
        out, err = self._outputs()
        tamperings = (*self._always, *tamperings)
        prefect_api = os.environ.get("PREFECT_API_URL")
        process = self.forks.Process(
            target=child.run_command,
            args=(str(self.folder), arguments, tamperings, str(out), str(err), prefect_api),
        )
        process.start()
        return Run(process, self.folder, out, err)

    def run(self, *tamperings: Tampering) -> Run:
        """Start `winnow run`, tampered with."""
        return self.command("run", "campaign.yaml", tamperings=tamperings)

    def resume(self, *tamperings: Tampering) -> Run:
        """Start `winnow resume`, tampered with."""
        return self.command("resume", "survivor", "--storage", self.storage, tamperings=tamperings)

    def anew(self, *arguments: str, **environment: str) -> Run:
        """Start `winnow ARGUMENTS` as a process that shares nothing with this one."""
        out, err = self._outputs()
        with out.open("wb") as to, err.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "winnow.flows.main", *arguments],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=to, stderr=errors,
                env={key: value for key, value in {**os.environ, **environment}.items() if value},
            )  # fmt: skip
        return Run(_Started(process), self.folder, out, err)

    def cut_short(self) -> None:
        """Begin the campaign and kill it within its second round."""
        self.run(At("before a batch", 4, die)).ended()

    def status(self) -> dict:
        """What `winnow status` says, or the sentence with which it refuses to."""
        asked = self.command("status", "survivor", "--json", "--storage", self.storage)
        return json.loads(asked.out) if asked.code == 0 else {"state": None, "refused": asked.sentence}

    def finish(self) -> int:
        """Resume as often as it takes; return the number of processes.

        Raises:
            AssertionError: If it does not end.
        """
        for number in range(MOST_RESUMES):
            if self.has_ended:
                return number
            run = (self.resume() if self.is_stored else self.run()).ended()
            if "Traceback" in run.said:
                raise AssertionError(f"resume ended in a traceback: {run.said}")
        raise AssertionError(f"it has not ended after {MOST_RESUMES} processes: {run.said}")

    @property
    def is_stored(self) -> bool:
        """Whether the campaign is stored."""
        return self._has_any("campaigns")

    @property
    def has_ended(self) -> bool:
        """Whether the last decision is stored."""
        return self._has_any("decisions WHERE stop")

    def _has_any(self, which: str) -> bool:
        try:
            return bool(rows(self.folder, f"SELECT 1 FROM {which}"))
        except Exception as error:  # either driver's, where there is no table yet
            if "no such table" in str(error) or "does not exist" in str(error):
                return False
            raise

    def problems(self) -> list[str]:
        """What `winnow db check` finds wrong."""
        wrong, links = problems_of(self.storage, self.folder)
        return [*wrong, *links]

    def stored(self, query: str) -> list[tuple]:
        return rows(self.folder, query)

    def history(self) -> histories.History:
        return histories.history(self.folder)

    def plan_fault(self, model: str, at: str, number: int, do: str, times: int = 1) -> None:
        """Have a worker of `worker_engine` meet a fault; see `scripted_worker`."""
        plan = {"model": model, "at": at, "number": number, "do": do, "times": times}
        (self.folder / "fault.json").write_text(json.dumps(plan))

    def _outputs(self) -> tuple[Path, Path]:
        number = next(self._numbers)
        return self.folder / f"out-{number}.txt", self.folder / f"err-{number}.txt"


def problems_of(storage: str, folder: Path) -> tuple[list[str], list[str]]:
    """What `winnow db check`, run from a folder, finds wrong with a database and with its links."""
    from winnow.storage.admin import check
    from winnow.storage.engine.database import open_database
    from winnow.tasks.queries.check_texts import findings

    database = open_database(storage, read_only=True)
    try:
        with chdir(folder), database.reading() as session:
            return check.problems(session), [str(each) for each in findings(session)]
    finally:
        database.close()


class _Started:
    """A process that was started anew, spoken to like a fork."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process, self.pid = process, process.pid

    @property
    def exitcode(self) -> int | None:
        return self._process.poll()

    def join(self, timeout: float | None = None) -> None:
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return

    def kill(self) -> None:
        self._process.kill()

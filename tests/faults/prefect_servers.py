"""Prefect's server dies, is not there, or does not answer: the database alone is the truth."""

import os
import signal
import time
from collections.abc import Generator

import psutil

from tests.faults.kinds import OBJECTIVES
from tests.faults.registry import DONE, fault
from tests.faults.runs import PATIENCE, Run
from tests.faults.scenes import Scene

Meeting = Generator[Run, None, None]
SETTLED = ("ended",)
NONE = {"PREFECT_API_URL": ""}
"""A process of this environment starts a server of its own."""


@fault("the run's own Prefect server is killed", *OBJECTIVES, codes=(*DONE, 1),
       states=(*SETTLED, "interrupted"))  # fmt: skip
def killed(scene: Scene) -> Meeting:
    run = scene.anew("run", "campaign.yaml", **NONE)
    run.until(lambda: _has_decisions(scene))
    os.kill(_server_of(run), signal.SIGKILL)
    yield run.ended()


@fault("the run's own Prefect server is killed as it comes up", "best-mean", codes=(1,),
       states=("new", None))  # fmt: skip
def killed_at_once(scene: Scene) -> Meeting:
    run = scene.anew("run", "campaign.yaml", **NONE)
    os.kill(_server_of(run), signal.SIGKILL)
    yield run.ended()


@fault("the run's own Prefect server is frozen for three seconds", "best-mean", codes=DONE, states=SETTLED)
def frozen(scene: Scene) -> Meeting:
    run = scene.anew("run", "campaign.yaml", **NONE)
    run.until(lambda: _has_decisions(scene))
    server = _server_of(run)
    os.kill(server, signal.SIGSTOP)
    time.sleep(3.0)
    os.kill(server, signal.SIGCONT)
    yield run.ended()


@fault("there is no Prefect server where one is named", "best-mean", codes=(1,), states=("new",))
def unreachable(scene: Scene) -> Meeting:
    yield scene.anew("run", "campaign.yaml", PREFECT_API_URL="http://127.0.0.1:9/api").ended()


def _has_decisions(scene: Scene) -> bool:
    if not scene.database.exists():
        return False
    tables = scene.stored("SELECT 1 FROM sqlite_master WHERE name = 'decisions'")
    return bool(tables and scene.stored("SELECT 1 FROM decisions"))


def _server_of(run: Run) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for child in psutil.Process(run.pid).children():
            if "winnow.flows.prefect_support.server" in child.cmdline():
                return child.pid
    raise AssertionError("it has no Prefect server of its own")

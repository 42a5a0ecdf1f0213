"""Work pools, workers and flow runs of a real Prefect server, as an operator would set them up."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psutil
from waiting import until

ROOT = Path(__file__).parents[2]
RARELY_S = 0.5
"""Seconds between two questions to a Prefect server, each of which costs it and who asks."""


def client_of_prefect():
    """Imported late: Prefect reads its settings when it is imported, and a fixture makes them."""
    from prefect.client.orchestration import get_client

    return get_client(sync_client=True)


def make_pool(name):
    from prefect.client.schemas.actions import WorkPoolCreate

    with client_of_prefect() as client:
        client.create_work_pool(WorkPoolCreate(name=name, type="process"))
    return name


def crons(deployment):
    """When a deployment fires, as cron expressions."""
    with client_of_prefect() as client:
        return [each.schedule.cron for each in client.read_deployment_by_name(deployment).schedules]


def submit(deployment, **parameters):
    """Have a deployment run now; the id of its flow run."""
    with client_of_prefect() as client:
        found = client.read_deployment_by_name(deployment)
        return client.create_flow_run_from_deployment(found.id, parameters=parameters).id


def crash(deployment):
    """Let a flow run of a deployment crash before anybody has begun it."""
    from prefect.states import Crashed, Scheduled

    with client_of_prefect() as client:
        found = client.read_deployment_by_name(deployment)
        late = Scheduled(scheduled_time=datetime.now(UTC) + timedelta(days=1))
        run = client.create_flow_run_from_deployment(found.id, state=late)
        client.set_flow_run_state(run.id, Crashed(message="by a test"), force=True)


def state_of(run):
    with client_of_prefect() as client:
        return client.read_flow_run(run).state


def ended(run):
    """The state in which a flow run ends; one client asks, as to make one costs more than to ask."""
    with client_of_prefect() as client:

        def final():
            state = client.read_flow_run(run).state
            return state if state.is_final() else None

        return until(final, every_s=RARELY_S)


def runs_of(deployment):
    from prefect.client.schemas.filters import DeploymentFilter, DeploymentFilterId

    with client_of_prefect() as client:
        found = client.read_deployment_by_name(deployment)
        return client.read_flow_runs(
            deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[found.id]))
        )


def environment(**more):
    """That of a process that finds this checkout first, whichever is installed."""
    return os.environ | {"PYTHONPATH": f"{ROOT / '.package'}:{ROOT}", "OMP_NUM_THREADS": "1"} | more


@contextmanager
def worker(pool, log, limit):
    """A worker for so many runs at once, in a process group of its own; killed with them if still there."""
    command = [sys.executable, "-m", "prefect", "worker", "start", "--pool", pool]
    command += ["--type", "process", "--limit", str(limit)]
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            env=environment(PREFECT_WORKER_QUERY_SECONDS="1"),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        kill(process)


def kill(process):
    """kill -9 of a process and all that it started, unless it is gone."""
    if process.poll() is not None:
        return
    family = [process.pid, *(child.pid for child in psutil.Process(process.pid).children(recursive=True))]
    for pid in family:
        if psutil.pid_exists(pid):
            os.kill(pid, signal.SIGKILL)
    process.wait()

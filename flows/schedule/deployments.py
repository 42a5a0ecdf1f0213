"""Deploy a schedule to a Prefect work pool, whose workers run it on their machines."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from winnow.flows.prefect_support import client
from winnow.flows.prefect_support.server import require_answer
from winnow.flows.schedule.trigger import When
from winnow.tasks.errors import SpecError

if TYPE_CHECKING:
    from uuid import UUID

    from prefect.deployments.runner import RunnerDeployment


POOL_TYPE = "process"
"""Type of work pools whose workers start local processes, in the environment with Winnow."""

HEARTBEAT_S = 30
"""Seconds between two heartbeats of a flow run; 30 is Prefect's minimum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """A scheduled campaign, as it is deployed to Prefect."""

    spec: str
    settings: Sequence[str]
    storage: str | None
    """URL of the results database without its password; None if WINNOW_STORAGE or the file sets it."""
    name: str
    """Name of the deployment."""
    when: When

    def parameters(self) -> dict[str, object]:
        """Parameters of every flow run."""
        return {"spec": self.spec, "settings": list(self.settings), "storage": self.storage}


def deployment_of(
    scheduled: Scheduled, *, pool: str | None = None, variables: dict[str, object] | None = None
) -> "RunnerDeployment":
    """Create the deployment object of a schedule.

    Args:
        scheduled: The campaign and its times.
        pool: Name of a work pool; None if this process serves the schedule.
        variables: Job variables of the work pool; None without a work pool.
    """
    from prefect.client.schemas.actions import DeploymentScheduleCreate
    from prefect.deployments.runner import RunnerDeployment
    from prefect.types.entrypoint import EntrypointType

    from winnow.flows.schedule.flows import scheduled_campaign

    return RunnerDeployment.from_flow(
        scheduled_campaign,
        name=scheduled.name,
        schedules=[DeploymentScheduleCreate(schedule=scheduled.when.schedule())],
        parameters=scheduled.parameters(),
        paused=False,
        entrypoint_type=EntrypointType.MODULE_PATH,
        work_pool_name=pool,
        job_variables=variables,
    )


def deploy(scheduled: Scheduled, pool: str, folder: str) -> str:
    """Deploy a schedule to a work pool, with automations for crashes; return the URL of Prefect's server.

    Args:
        scheduled: The campaign and its times.
        pool: Name of an existing work pool of type process.
        folder: Folder on the workers' machines that paths are relative to.

    Raises:
        SpecError: If no Prefect server is set, if the pool does not exist or has another type, or if the name
            belongs to the schedule of another file, or to one that is served from a terminal.
        PrefectServerFailed: If the server does not answer.
    """
    from prefect.deployments.runner import RunnerDeployment
    from prefect.settings import PREFECT_API_URL
    from prefect.types.entrypoint import EntrypointType

    from winnow.flows.schedule.flows import resume_all

    url: str | None = PREFECT_API_URL.value()
    if not url:
        raise SpecError(
            "--work-pool needs a Prefect server: start one (prefect server start) and set PREFECT_API_URL, "
            "or remove --work-pool to run the schedule from this terminal"
        )
    require_answer(url)
    _require_pool(pool, url)
    _require_free_name(scheduled, folder, url)
    variables = job_variables(folder)
    fires = _apply(deployment_of(scheduled, pool=pool, variables=variables))
    resumption = RunnerDeployment.from_flow(
        resume_all,
        name=scheduled.name,
        parameters=scheduled.parameters(),
        entrypoint_type=EntrypointType.MODULE_PATH,
        work_pool_name=pool,
        job_variables=variables,
    )
    resumes = _apply(resumption)
    client.go_on_after_crashes(scheduled.name, watched=fires, started=resumes)
    client.mark_silent_runs(scheduled.name, watched=fires, heartbeat_s=HEARTBEAT_S)
    return url


def _apply(deployment: "RunnerDeployment") -> "UUID":
    # `apply` returns a coroutine only if an event loop runs, which is never the case here.
    return cast("UUID", deployment.apply())


def job_variables(folder: str) -> dict[str, object]:
    """Job variables of a work pool: the environment in which a worker starts flow runs."""
    from winnow.flows.schedule.flows import FOLDER_VARIABLE

    env = {
        FOLDER_VARIABLE: folder,
        # A folder `flows` in the working folder must not shadow Winnow's.
        "PYTHONSAFEPATH": "1",
        # Set as in the command `winnow`, because sums depend on the number of threads.
        "OPENBLAS_NUM_THREADS": os.environ.get("OPENBLAS_NUM_THREADS", "1"),
        "PREFECT_FLOWS_HEARTBEAT_FREQUENCY": str(HEARTBEAT_S),
    }
    return {"env": env}


def require_no_pool(name: str) -> None:
    """Refuse to serve a schedule under the name of a work pool's schedule, which Prefect would replace.

    Raises:
        SpecError: If a work pool has a schedule of this name.
    """
    there = client.deployment(_full_name(name))
    if there is not None and there.work_pool_name is not None:
        raise SpecError(
            f"'{name}' is the schedule of work pool '{there.work_pool_name}', which this one would replace; "
            f"give another --name, or end that schedule: {_delete_command(name)}"
        )


def _delete_command(name: str) -> str:
    return f"prefect deployment delete '{_full_name(name)}'"


def _full_name(name: str) -> str:
    from winnow.flows.schedule.flows import scheduled_campaign

    return f"{scheduled_campaign.name}/{name}"


def _require_free_name(scheduled: Scheduled, folder: str, url: str) -> None:
    """Refuse the name of another schedule, which Prefect would replace without an error.

    A schedule served from a terminal is paused when its process ends; its name can then be used.
    """
    there = client.deployment(_full_name(scheduled.name))
    if there is None:
        return
    if there.work_pool_name is None:
        if not there.paused:
            raise SpecError(
                f"'{scheduled.name}' is the schedule of {there.parameters.get('spec')}, served from a "
                f"terminal, which this one would replace on {url}; end it there with Ctrl-C, or give another "
                f"--name; if that process no longer runs: {_delete_command(scheduled.name)}"
            )
        return
    from winnow.flows.schedule.flows import FOLDER_VARIABLE

    there_env = there.job_variables.get("env")
    begins = there_env.get(FOLDER_VARIABLE, "") if isinstance(there_env, dict) else ""
    file = Path(str(there.job_variables.get("working_dir", begins))) / str(there.parameters.get("spec"))
    if file != Path(folder) / scheduled.spec:
        raise SpecError(
            f"'{scheduled.name}' is the schedule of {file} on {url}; give another --name, or end that "
            f"schedule: {_delete_command(scheduled.name)}"
        )


def _require_pool(name: str, url: str) -> None:
    pool = client.work_pool(name)
    if pool is None:
        raise SpecError(
            f"there is no work pool '{name}' on {url}; create it with: "
            f"prefect work-pool create {name} --type {POOL_TYPE}"
        )
    if pool.type != POOL_TYPE:
        raise SpecError(
            f"work pool '{name}' is of type {pool.type}, but campaigns need type {POOL_TYPE}; create a pool "
            f"with: prefect work-pool create NAME --type {POOL_TYPE}"
        )

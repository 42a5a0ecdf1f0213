"""Requests to Prefect's API about flow runs, deployments, work pools, artifacts and automations.

Only the process of a flow run, or the worker that started it, reports the run's end to Prefect. If both were
killed, Prefect keeps showing the run as running. So every flow run of Winnow has a label with its process, as
in a lease, and tags from a small fixed set, by which runs are found.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import timedelta
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.actions import ArtifactCreate, ArtifactUpdate
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
    FlowRunFilterTags,
)
from prefect.client.schemas.objects import FlowRun, State, StateType, WorkPool
from prefect.client.schemas.responses import DeploymentResponse
from prefect.events.actions import ActionTypes, ChangeFlowRunState, RunDeployment
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification
from prefect.exceptions import ObjectNotFound
from prefect.states import Completed, Crashed
from prefect.types import DateTime

from winnow.storage.engine.database import Database
from winnow.storage.records import leases
from winnow.storage.records.record_types import Holder
from winnow.tasks.campaign.lease import is_dead, is_gone, this_process

TAG = "winnow"
"""Tag of all flow runs of Winnow."""

CAMPAIGN_TAG, SCHEDULE_TAG = "winnow-campaign", "winnow-schedule"
"""Further tags, of runs of a campaign and of runs of a schedule."""

PROCESS = "winnow.process"
"""Label of a flow run that contains its process."""


def labels_of_this_process() -> dict[str, str]:
    """Labels for flow runs of this process."""
    return {PROCESS: ":".join(str(value) for value in asdict(this_process()).values())}


def label_run(id_: UUID) -> None:
    """Label a flow run with this process; do nothing if the server has no labels or no such run."""
    with get_client(sync_client=True) as client, suppress(ObjectNotFound):
        client.update_flow_run_labels(id_, {**labels_of_this_process()})


def process_of(labels: Mapping[str, object]) -> Holder | None:
    """The process in a flow run's labels; None without such a label."""
    if PROCESS not in labels:
        return None
    host, pid, boot_id, namespace, ticks = str(labels[PROCESS]).rsplit(":", 4)
    return Holder(host=host, pid=int(pid), boot_id=boot_id, pid_namespace=namespace, started_ticks=int(ticks))


def mark_crashed_runs(database: Database) -> list[str]:
    """Mark crashed flow runs of Winnow in Prefect, and return their names.

    A run has crashed if its process was on this machine and has ended, or if its process, on any machine, has
    let its lease on a campaign of this database expire.
    """
    with database.reading() as session:
        left = {lease.holder for lease in leases.unreleased(session) if is_gone(lease)}
    ours = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])),
        tags=FlowRunFilterTags(all_=[TAG]),
    )
    marked = []
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(flow_run_filter=ours):
            holder = process_of(run.labels)
            if holder is None or not (holder in left or is_dead(holder)):
                continue
            message = f"its process, {holder}, is gone; reported by the process that resumed its campaign"
            with suppress(ObjectNotFound):  # the run was deleted meanwhile
                client.set_flow_run_state(run.id, Crashed(message=message), force=True)
                marked.append(run.name)
    return marked


def introduce_run(run: FlowRun, name: str) -> FlowRun:
    """Set the name and tags of a schedule's flow run, label it with this process, and return it."""
    with get_client(sync_client=True) as client:
        client.update_flow_run(run.id, name=name, tags={*run.tags, TAG, SCHEDULE_TAG})
        label_run(run.id)
        return client.read_flow_run(run.id)


def drop_overdue_runs(run: FlowRun) -> int:
    """Drop all other overdue runs of the same schedule, and return their number.

    Otherwise, after a night without a worker, an hourly schedule would start a campaign for every hour. Runs
    that were requested by hand stay.
    """
    if run.deployment_id is None:
        return 0
    overdue = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])),
        expected_start_time=FlowRunFilterExpectedStartTime(before_=DateTime.now("UTC")),
    )
    same = DeploymentFilter(id=DeploymentFilterId(any_=[run.deployment_id]))
    instead: State[None] = Completed(name="Skipped", message=f"late: '{run.name}' ran instead")
    dropped = 0
    with get_client(sync_client=True) as client:
        for late in client.read_flow_runs(flow_run_filter=overdue, deployment_filter=same):
            if late.auto_scheduled and late.id != run.id:
                with suppress(ObjectNotFound):  # the run was deleted meanwhile
                    client.set_flow_run_state(late.id, instead, force=True)
                    dropped += 1
    return dropped


def deployment(full_name: str) -> DeploymentResponse | None:
    """The deployment of this name, FLOW/NAME; None if it does not exist."""
    with get_client(sync_client=True) as client, suppress(ObjectNotFound):
        return client.read_deployment_by_name(full_name)
    return None


def work_pool(name: str) -> WorkPool | None:
    """The work pool of this name; None if it does not exist."""
    with get_client(sync_client=True) as client, suppress(ObjectNotFound):
        return client.read_work_pool(name)
    return None


def put_artifact(id_: UUID | None, artifact: ArtifactCreate) -> UUID:
    """Create an artifact on Prefect's pages, or update the one with this id; return its id."""
    with get_client(sync_client=True) as client:
        if id_ is None:
            return client.create_artifact(artifact).id
        update = ArtifactUpdate(
            data=artifact.data, description=artifact.description, metadata_=artifact.metadata_
        )
        client.update_artifact(id_, update)
        return id_


async def pause_deployment(id_: UUID) -> None:
    """Pause a deployment; do nothing if it was deleted."""
    async with get_client() as client:
        with suppress(ObjectNotFound):
            await client.pause_deployment(id_)


HEARTBEAT = "prefect.flow-run.heartbeat"
CRASHED = "prefect.flow-run.Crashed"
ENDS = ("Completed", "Skipped", "Failed", "Cancelled", "Crashed")
"""Final states of flow runs, after which heartbeats are not expected."""

BEATS_MISSED = 4
"""Missed heartbeats after which a flow run counts as crashed; a busy machine misses fewer."""


def go_on_after_crashes(name: str, *, watched: UUID, started: UUID) -> None:
    """Create an automation that starts a deployment whenever a flow run of another one crashes.

    Runs of the started deployment are not watched. So a campaign that kills its process each time is not
    restarted forever; the next run, or a user, resumes it.

    Args:
        name: Name of the schedule.
        watched: Id of the deployment whose runs are watched.
        started: Id of the deployment that resumes unfinished campaigns.
    """
    trigger = EventTrigger(
        expect={CRASHED}, match_related=_runs_of(watched), posture=Posture.Reactive, threshold=1
    )
    _put(
        f"winnow {name}: resume after a crash",
        "Starts resume-all when a run of this schedule crashed.",
        trigger,
        RunDeployment(source="selected", deployment_id=started, parameters=None, job_variables=None),
    )


def mark_silent_runs(name: str, *, watched: UUID, heartbeat_s: int) -> None:
    """Create an automation that marks a deployment's flow run as crashed when its heartbeats stop."""
    trigger = EventTrigger(
        after={HEARTBEAT},
        expect={HEARTBEAT, *(f"prefect.flow-run.{state}" for state in ENDS)},
        match_related=_runs_of(watched),
        for_each={"prefect.resource.id"},
        posture=Posture.Proactive,
        threshold=1,
        within=timedelta(seconds=heartbeat_s * BEATS_MISSED),
    )
    _put(
        f"winnow {name}: mark what went silent",
        "Marks a run as crashed when its machine is gone.",
        trigger,
        ChangeFlowRunState(
            name=None, state=StateType.CRASHED, message="no heartbeat: its machine is gone", force=False
        ),
    )


def _runs_of(deployment: UUID) -> ResourceSpecification:
    return ResourceSpecification(
        {"prefect.resource.role": "deployment", "prefect.resource.id": f"prefect.deployment.{deployment}"}
    )


def _put(name: str, description: str, trigger: EventTrigger, action: ActionTypes) -> None:
    """Create an automation, or update the existing one of this name."""
    wanted = AutomationCore(name=name, description=description, trigger=trigger, actions=[action])
    with get_client(sync_client=True) as client:
        found = client.read_automations_by_name(name)
        if found:
            client.update_automation(found[0].id, wanted)
        else:
            client.create_automation(wanted)

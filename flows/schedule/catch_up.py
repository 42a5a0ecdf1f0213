"""Firings that came due while nobody could run them: one takes the place of all."""

from contextlib import suppress

from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import (
    DeploymentFilter,
    DeploymentFilterId,
    FlowRunFilter,
    FlowRunFilterExpectedStartTime,
    FlowRunFilterState,
    FlowRunFilterStateType,
)
from prefect.client.schemas.objects import FlowRun, State, StateType
from prefect.exceptions import ObjectNotFound
from prefect.states import Completed
from prefect.types import DateTime


def take_their_place(run: FlowRun) -> int:
    """Drop all other overdue runs that the same schedule planned; return their number.

    After a night without a worker there would otherwise be a campaign for every hour of it. Runs that
    somebody asked for by hand stay.
    """
    if run.deployment_id is None:
        return 0
    overdue = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])),
        expected_start_time=FlowRunFilterExpectedStartTime(before_=DateTime.now("UTC")),
    )
    same = DeploymentFilter(id=DeploymentFilterId(any_=[run.deployment_id]))
    instead: State[None] = Completed(name="Skipped", message=f"came due late: '{run.name}' took its place")
    dropped = 0
    with get_client(sync_client=True) as client:
        for late in client.read_flow_runs(flow_run_filter=overdue, deployment_filter=same):
            if late.auto_scheduled and late.id != run.id:
                with suppress(ObjectNotFound):  # somebody deleted it meanwhile
                    client.set_flow_run_state(late.id, instead, force=True)
                    dropped += 1
    return dropped

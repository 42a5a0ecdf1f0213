"""Prefect automations that go on with a schedule's campaign when the process that ran it is gone.

A scheduled run that crashes starts `resume-all`; one that gives no sign of life is marked as crashed
first. The runs of `resume-all` are not watched, so that a campaign which kills its process each time is not
begun for ever: the next run, or a human, takes it up.
"""

from datetime import timedelta
from uuid import UUID

from prefect.client.orchestration import get_client
from prefect.client.schemas.objects import StateType
from prefect.events.actions import ActionTypes, ChangeFlowRunState, RunDeployment
from prefect.events.schemas.automations import AutomationCore, EventTrigger, Posture
from prefect.events.schemas.events import ResourceSpecification

HEARTBEAT = "prefect.flow-run.heartbeat"
CRASHED = "prefect.flow-run.Crashed"
ENDS = ("Completed", "Skipped", "Failed", "Cancelled", "Crashed")
"""States in which a flow run of ours gives no sign of life any more, and need not."""

BEATS_MISSED = 4
"""Signs of life that a flow run misses until it is taken for dead: more than a busy machine ever pauses."""


def go_on_after_crashes(name: str, *, watched: UUID, started: UUID) -> None:
    """Have a deployment started whenever a flow run of another one crashes.

    Args:
        name: The schedule's, which the automation is known by.
        watched: The deployment that fires.
        started: The deployment that goes on with what was left unfinished.
    """
    trigger = EventTrigger(
        expect={CRASHED},
        match_related=_runs_of(watched),
        posture=Posture.Reactive,
        threshold=1,
    )
    _put(
        f"winnow {name}: go on after a crash",
        "Starts resume-all when a run of this schedule has crashed.",
        trigger,
        RunDeployment(source="selected", deployment_id=started, parameters=None, job_variables=None),
    )


def mark_silent_runs(name: str, *, watched: UUID, heartbeat_s: int) -> None:
    """Have a flow run of a deployment marked as crashed when its signs of life stop.

    Args:
        name: The schedule's, which the automation is known by.
        watched: The deployment that fires.
        heartbeat_s: Seconds between two signs of life.
    """
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
        "Marks a run as crashed when its machine is gone and nobody could say so.",
        trigger,
        ChangeFlowRunState(
            name=None,
            state=StateType.CRASHED,
            message="no sign of life: its machine is gone",
            force=False,
        ),
    )


def _runs_of(deployment: UUID) -> ResourceSpecification:
    return ResourceSpecification(
        {
            "prefect.resource.role": "deployment",
            "prefect.resource.id": f"prefect.deployment.{deployment}",
        }
    )


def _put(name: str, description: str, trigger: EventTrigger, action: ActionTypes) -> None:
    """Create an automation, or change the one of this name to match."""
    wanted = AutomationCore(name=name, description=description, trigger=trigger, actions=[action])
    with get_client(sync_client=True) as client:
        found = client.read_automations_by_name(name)
        if found:
            client.update_automation(found[0].id, wanted)
        else:
            client.create_automation(wanted)

"""Zombies: flow runs that Prefect still calls running although the process that ran them is gone.

Prefect learns of a process's end from the process, or from the worker that started it; where both were killed
it learns nothing. Every flow run of ours is therefore labelled with its process, as a lease names it; its
tags are always the same few, by which runs are looked for.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict
from uuid import UUID

from winnow.storage.engine.database import Database
from winnow.storage.records import leases
from winnow.storage.records.values import Holder
from winnow.tasks.campaign.lease import is_dead, is_gone, this_process

TAG = "winnow"
"""The tag of every flow run of ours."""

CAMPAIGN_TAG, SCHEDULE_TAG = "winnow-campaign", "winnow-schedule"
"""Further tags: of a campaign's own run, and of a run of a schedule that runs campaigns."""

PROCESS = "winnow.process"
"""The label of the process that runs it."""


def labels_of_this_process() -> dict[str, str]:
    """The labels that a flow run gets from the process that runs it."""
    return {PROCESS: ":".join(str(value) for value in asdict(this_process()).values())}


def label_run(id_: UUID) -> None:
    """Label a flow run with this process; a server that knows no labels marks no run of ours as crashed."""
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    with get_client(sync_client=True) as client, suppress(ObjectNotFound):
        client.update_flow_run_labels(id_, {**labels_of_this_process()})


def process_of(labels: Mapping[str, object]) -> Holder | None:
    """The process that a flow run was labelled with."""
    if PROCESS not in labels:
        return None
    host, pid, boot_id, namespace, ticks = str(labels[PROCESS]).rsplit(":", 4)
    return Holder(host=host, pid=int(pid), boot_id=boot_id, pid_namespace=namespace, started_ticks=int(ticks))


def mark_crashed_runs(database: Database) -> list[str]:
    """Tell Prefect which of our flow runs have crashed; return their names.

    Those are the runs of a process of this machine that is no more, and of a process anywhere that is known
    to have let its lease on a campaign of this database run out.

    Args:
        database: The results database.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
        FlowRunFilterTags,
    )
    from prefect.client.schemas.objects import StateType
    from prefect.exceptions import ObjectNotFound
    from prefect.states import Crashed

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
            message = f"{holder}, which ran it, is gone; whoever goes on with its campaign said so"
            with suppress(ObjectNotFound):  # somebody deleted it meanwhile
                client.set_flow_run_state(run.id, Crashed(message=message), force=True)
                marked.append(run.name)
    return marked

"""Zombies: flow runs that Prefect still calls running although the process that ran them is gone.

Prefect learns of a process's end from the process, or from the worker that started it; where both were killed
it learns nothing. Every flow run of ours is therefore tagged with its process, as a lease names it.
"""

from contextlib import suppress
from dataclasses import asdict

from winnow.flows.reports.open_readonly import reading
from winnow.storage import leases
from winnow.storage.records.values import Holder
from winnow.tasks.campaign.liveness import is_dead, is_gone, this_process

TAG = "winnow"
"""What every flow run of ours is tagged with."""

_PROCESS = "winnow-process:"


def tags_of_this_process() -> list[str]:
    """What a flow run is tagged with by the process that runs it."""
    holder = this_process()
    return [TAG, _PROCESS + ":".join(str(value) for value in asdict(holder).values())]


def process_of(tags: list[str]) -> Holder | None:
    """The process that a flow run was tagged with."""
    for tag in tags:
        if tag.startswith(_PROCESS):
            host, pid, boot_id, namespace, ticks = tag.removeprefix(_PROCESS).rsplit(":", 4)
            return Holder(
                host=host, pid=int(pid), boot_id=boot_id, pid_namespace=namespace, started_ticks=int(ticks)
            )
    return None


def mark_zombies(storage: str) -> list[str]:
    """Tell Prefect which of our flow runs have crashed; return their names.

    Those are the runs of a process of this machine that is no more, and of a process anywhere that is known
    to have let its lease on a campaign of this database run out.

    Args:
        storage: URL of the results database; it holds Winnow's tables.
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

    with reading(storage) as session:
        left = {lease.holder for lease in leases.unreleased(session) if is_gone(lease)}
    ours = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.RUNNING])),
        tags=FlowRunFilterTags(all_=[TAG]),
    )
    marked = []
    with get_client(sync_client=True) as client:
        for run in client.read_flow_runs(flow_run_filter=ours):
            holder = process_of(run.tags)
            if holder is None or not (holder in left or is_dead(holder)):
                continue
            message = f"{holder}, which ran it, is gone; whoever goes on with its campaign said so"
            with suppress(ObjectNotFound):  # somebody deleted it meanwhile
                client.set_flow_run_state(run.id, Crashed(message=message), force=True)
                marked.append(run.name)
    return marked

"""The flows that Prefect starts: runs of a schedule, and resumption after a crash.

A worker finds them by the names `winnow.flows.schedule.flows.scheduled_campaign` and
`winnow.flows.schedule.flows.resume_all`. They return a Prefect state whose message is the text that a
terminal would show.
"""

import logging
import os
import signal
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
from prefect.runtime import flow_run as this_run
from prefect.states import Cancelled, Completed, Failed

from winnow.flows import exit_codes
from winnow.flows.prefect_support.client import drop_overdue_runs, introduce_run, mark_crashed_runs
from winnow.flows.prefect_support.environment import TALKER
from winnow.flows.prefect_support.masked_urls import url_of_a_worker
from winnow.flows.run.resume import resume_each, unfinished_campaigns
from winnow.flows.run.signals import Interrupts
from winnow.flows.run.trust_prompt import Trust, require_place
from winnow.flows.schedule.run_scheduled import how_to_allow, plan_scheduled_run, read_settled, run_scheduled
from winnow.storage.admin.schema import existing
from winnow.tasks.plugins.library_settings import close_imported
from winnow.tasks.spec.stored_spec import DEFAULT_STORAGE
from winnow.tasks.text.printable import printable

FOLDER_VARIABLE = "WINNOW_WORKING_FOLDER"
"""Holds the folder that the paths of a flow run are relative to, if a worker starts it elsewhere."""

# Prefect imports this module in a process of its own, where nothing of ours has run before.
close_imported()
if FOLDER_VARIABLE in os.environ:
    os.chdir(os.environ[FOLDER_VARIABLE])
logging.getLogger(TALKER).setLevel(logging.CRITICAL)


OF_NO_PREFECT = (signal.SIGHUP,)
"""Signals that stop a flow run at once; not SIGTERM, by which Prefect cancels it, which is not a crash."""


class RunMessages:
    """The messages of a flow run, one per line."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @property
    def message(self) -> str:
        """All lines, for the final state of the run."""
        return "\n".join(self._lines) or "nothing to do"

    def say(self, line: str) -> None:
        """Write to Prefect's log, which workers show and the server keeps, or print if it is off."""
        self._lines.append(line)
        logger = get_run_logger()
        if logger.isEnabledFor(logging.INFO):
            logger.info(line)
        else:
            print(line, flush=True)


@contextmanager
def told_where_log_is_off(spec: str) -> Generator[None, None, None]:
    """Print the error that ends a run of a file if Prefect's log is off and would lose it."""
    try:
        yield
    except Exception as error:
        if not get_run_logger().isEnabledFor(logging.ERROR):
            if exit_codes.exit_code_of(error) is None:
                traceback.print_exc()
            due = f"{this_run.scheduled_start_time:%Y-%m-%d %H:%M:%S} UTC"
            print(
                f"the run of {spec} that was due at {due} failed: {printable(exit_codes.sentence_of(error))}",
                flush=True,
            )
        raise


@flow(name="scheduled-campaign", validate_parameters=False)
def scheduled_campaign(
    spec: str,
    storage: str | None = None,
    settings: Sequence[str] = (),
    campaign: str | None = None,
    trust: Sequence[str] = (),
) -> State[object]:
    """Finish crashed campaigns of the series, then run a new campaign of it.

    Args:
        spec: The campaign's YAML file, read again each time.
        storage: URL of the results database without its password; None takes WINNOW_STORAGE, then the file's.
        settings: `key=value` settings that override the file's.
        campaign: The new campaign's name; None names it after the file and the scheduled time.
        trust: Ignored: older deployments contain permissions, and anyone with access to the server could add
            them.

    Raises:
        SpecError: If the file is invalid, or needs more than its user has allowed.
        StorageError: If the database cannot be used.
    """
    messages, interrupts = RunMessages(), Interrupts()
    with told_where_log_is_off(spec), interrupts.caught(OF_NO_PREFECT):
        _tell_if_ignored(trust, messages)
        run = plan_scheduled_run(spec, settings, storage, this_run.scheduled_start_time, campaign)
        drop_overdue_runs(_introduce(f"run of {run.name}"))
        how = run_scheduled(run, interrupts, messages.say)
    if how == "stopped":
        messages.say("stopped before the end; the next run continues")
        return Cancelled(message=messages.message)
    return Completed(message=messages.message, name="Skipped" if how == "skipped" else "Completed")


@flow(name="resume-all", validate_parameters=False)
def resume_all(
    storage: str | None = None,
    spec: str | None = None,
    settings: Sequence[str] = (),
    trust: Sequence[str] = (),
) -> State[object]:
    """Resume every unfinished campaign that no process holds.

    Args:
        storage: URL of the results database without its password; None takes WINNOW_STORAGE.
        spec: A campaign's file that names the database, if neither of these does.
        settings: `key=value` settings that override the file's.
        trust: Ignored, as in `scheduled_campaign`.

    Raises:
        SpecError: If that file is invalid, or needs more than its user has allowed.
        StorageError: If the database cannot be used.
    """
    messages, interrupts = RunMessages(), Interrupts()
    with interrupts.caught(OF_NO_PREFECT):
        _tell_if_ignored(trust, messages)
        if spec is None:
            url = url_of_a_worker(storage) or DEFAULT_STORAGE
            if url != os.environ.get("WINNOW_STORAGE"):
                require_place(url, how_to_allow(None, (), url))
        else:
            url = read_settled(spec, settings, storage).storage
        how = how_to_allow(spec, settings, url)
        _introduce("resume all")
        with existing(url) as database:
            mark_crashed_runs(database)
            left, unreadable = unfinished_campaigns(database)
            worst = resume_each(database, url, left, interrupts, messages.say, Trust(how=how), unreadable)
    if worst == exit_codes.FORCED:
        return Cancelled(message=messages.message)
    end = Completed if worst in exit_codes.OF_ANSWERS else Failed
    return end(message=messages.message)


def _tell_if_ignored(trust: Sequence[str], messages: RunMessages) -> None:
    if trust:
        messages.say(
            "the parameter 'trust' of this deployment is ignored: what a run may do is what its user has "
            "allowed where it runs; schedule it again to be rid of this line"
        )


def _introduce(name: str) -> FlowRun:
    context = FlowRunContext.get()
    assert context is not None, "only a flow calls this"
    assert context.flow_run is not None, "a flow that runs has a run"
    return introduce_run(context.flow_run, name)

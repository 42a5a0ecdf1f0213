"""The flows that Prefect starts: runs of a schedule, and resumption after a crash.

A worker finds them by the names `winnow.flows.schedule.flows.scheduled_campaign` and
`winnow.flows.schedule.flows.resume_all`. They return a Prefect state whose message is the text that a
terminal would show. A run of a schedule finishes crashed campaigns, then runs a new one of the same series.
"""

import datetime as dt
import logging
import os
import shlex
import signal
import traceback
from collections.abc import Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from prefect import flow, get_run_logger
from prefect.client.schemas.objects import FlowRun, State
from prefect.context import FlowRunContext
from prefect.runtime import flow_run as this_run
from prefect.states import Cancelled, Completed, Failed

from winnow.flows import exit_codes
from winnow.flows.notify.announce import delivering
from winnow.flows.prefect_support.client import drop_overdue_runs, introduce_run, mark_crashed_runs
from winnow.flows.prefect_support.environment import TALKER
from winnow.flows.prefect_support.masked_urls import has_secret, url_of_a_worker
from winnow.flows.reports.summary import campaign_line, status_now
from winnow.flows.run.launch import launching
from winnow.flows.run.resume import Reporter, resume_each, run_flow, unfinished_campaigns
from winnow.flows.run.signals import Interrupts
from winnow.flows.run.trust_prompt import Trust, approving, require_place
from winnow.storage.admin.schema import ensure_schema, existing
from winnow.storage.engine.database import Database, open_database
from winnow.storage.errors import LeaseHeld
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.campaign import find_in
from winnow.tasks.plugins.library_settings import close_imported
from winnow.tasks.setup.load import Approve, check_campaign_file
from winnow.tasks.setup.yaml_file import parse_spec, read_spec_file
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.stored_spec import DEFAULT_STORAGE
from winnow.tasks.text.printable import printable

ScheduledRunResult = Literal["done", "skipped", "stopped"]
"""Result of a run: its campaign is settled, replaced by another one, or was stopped on request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRun:
    """One run of a schedule: its file, time and campaign name."""

    spec: str
    """The campaign's YAML file, read again by every run."""
    settings: Sequence[str]
    """`key=value` settings that override the file's."""
    storage: str
    """URL of the results database."""
    series: str
    """The name in the campaign's file."""
    name: str
    """The name of the campaign of this run."""
    due: dt.datetime | None
    """The scheduled time; None if the campaign was requested by its name."""


def plan_scheduled_run(
    spec: str, settings: Sequence[str], storage: str | None, due: dt.datetime, name: str | None = None
) -> ScheduledRun:
    """The next run, according to the current file.

    Args:
        spec: The campaign's YAML file.
        settings: `key=value` settings that override the file's.
        storage: URL of the results database as stored in Prefect, without its password; None if the file or
            WINNOW_STORAGE gives it.
        due: The scheduled time. The campaign is named after it, so that a restarted run finds its own
            campaign.
        name: The campaign's name, instead of one from the time.

    Raises:
        SpecError: If the file cannot be read or understood, or needs more than its user has allowed.
    """
    read = read_settled(spec, settings, storage)
    return ScheduledRun(
        spec=spec,
        settings=settings,
        storage=read.storage,
        series=read.name,
        name=name or f"{read.name}-{due.astimezone(dt.UTC):%Y%m%dT%H%M%SZ}",
        due=due if name is None else None,
    )


def read_settled(spec: str, settings: Sequence[str], storage: str | None) -> CampaignSpec:
    """The definition in a campaign's file, approved, with the database of this process.

    Raises:
        SpecError: If the file is invalid or not allowed, as in `plan_scheduled_run`, or has no database for a
            worker.
    """
    url = url_of_a_worker(storage)
    file = read_spec_file(spec, [*settings, *([] if url is None else [f"storage={url}"])])
    read = parse_spec(file)
    _approving(spec, settings, read.storage)(file, read)
    return read


def _approving(spec: str, settings: Sequence[str], storage: str) -> Approve:
    """The approval of a file by its user's permissions; the trigger of the run adds none."""
    own = os.environ.get("WINNOW_STORAGE")
    trust = Trust(how=how_to_allow(spec, settings, storage))
    return approving(trust, own=lambda key: (key, own) == ("storage", storage))


def how_to_allow(spec: str | None, settings: Sequence[str], storage: str | None) -> str:
    """Clause with the command that gives a run started by Prefect its permissions."""
    if spec is None:
        return "set WINNOW_STORAGE to it for the process that starts the runs"
    database = [] if storage is None or has_secret(storage) else [f"storage={storage}"]
    given = "".join(f" --set {shlex.quote(each)}" for each in [*settings, *database])
    command = f"winnow validate {shlex.quote(spec)}{given} --trust"
    return f"allow it once, as the user who runs it here: cd {shlex.quote(str(Path.cwd()))} && {command}"


def run_scheduled(run: ScheduledRun, interrupts: Interrupts, say: Reporter) -> ScheduledRunResult:
    """Run a scheduled run to its end.

    Unfinished campaigns of the series that no process holds are resumed first, oldest first; an error of one
    of them is reported and does not stop this run.

    Raises:
        SpecError: If the file has become invalid.
        StorageError: If the database cannot be used.
    """
    with closing(open_database(run.storage)) as database:
        ensure_schema(database)
        mark_crashed_runs(database)
        with delivering():
            left, unreadable = unfinished_campaigns(database, run.series)
            others = [name for name in left if name != run.name]
            if not interrupts.asked:
                trust = Trust(how=how_to_allow(run.spec, run.settings, run.storage))
                resume_each(database, run.storage, others, interrupts, say, trust, unreadable)
            return "stopped" if interrupts.asked else _run_own(database, run, interrupts, say)


def _run_own(
    database: Database, run: ScheduledRun, interrupts: Interrupts, say: Reporter
) -> ScheduledRunResult:
    """Run the campaign of the run itself, new or resumed, unless another one replaces it."""
    series = _series(database, run)
    with launching() as launch:
        if run.name in {record.name for record in series}:
            campaign = find_in(database, run.storage, run.name)
        else:
            if (later := _begun_since(series, run.due)) is not None:
                say(
                    f"{run.name}: skipped: {later.name} was begun after this run was due, "
                    "with the file as it was then"
                )
                return "skipped"
            named = [*run.settings, f"name={run.name}", f"storage={run.storage}"]
            approve = _approving(run.spec, run.settings, run.storage)
            checked = check_campaign_file(run.spec, named, approve)
            campaign = launch.store(checked, run.series, lambda _, sentence: say(sentence))
        try:
            if not status_now(campaign).is_settled:
                run_flow(campaign, interrupts)
        except LeaseHeld as held:
            say(f"{run.name}: skipped: {held}")
            return "skipped"
        say(campaign_line(campaign))
        return "done" if status_now(campaign).is_settled else "stopped"


def _series(database: Database, run: ScheduledRun) -> list[CampaignRecord]:
    with database.reading() as session:
        return [
            record
            for record in campaign_records.readable_campaigns(session)[0]
            if record.series == run.series or record.name == run.name
        ]


def _begun_since(series: Sequence[CampaignRecord], due: dt.datetime | None) -> CampaignRecord | None:
    """A campaign of the series that began after the scheduled time, which replaces a late run, or None."""
    if due is None:
        return None
    return next((record for record in reversed(series) if record.created_at >= due), None)


FOLDER_VARIABLE = "WINNOW_WORKING_FOLDER"
"""Holds the folder that the paths of a flow run are relative to, if a worker starts it elsewhere."""

# Prefect imports this module in a process of its own, where nothing of ours has run before.
close_imported()
if FOLDER_VARIABLE in os.environ:
    os.chdir(os.environ[FOLDER_VARIABLE])
logging.getLogger(TALKER).setLevel(logging.CRITICAL)


OF_NO_PREFECT = (signal.SIGHUP,)
"""Signals that stop a flow run at once. Without SIGTERM: Prefect cancels runs by it, which is no crash."""


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
        spec: A campaign's file that names the database; used if `storage` and WINNOW_STORAGE are not set.
        settings: `key=value` settings that override the file's.
        trust: Ignored, as in `scheduled_campaign`.

    Raises:
        SpecError: If that file is invalid, or needs permissions that its user has not given.
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

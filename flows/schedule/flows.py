"""Flows that Prefect starts: runs of a schedule, and the resumption after a crash.

Workers find them by the names `winnow.flows.schedule.flows.scheduled_campaign` and
`winnow.flows.schedule.flows.resume_all`. They return a Prefect state whose message is the text that a
terminal would show. A run of a schedule finishes crashed campaigns of its series, then runs a new one.
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
"""Result of a run: its campaign is settled, was skipped for another campaign, or was stopped on request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledRun:
    """One run of a schedule: its file, time and campaign name."""

    spec: str
    """Path of the campaign's YAML file, which every run reads again."""
    settings: Sequence[str]
    """`key=value` settings that override the file's."""
    storage: str
    """URL of the results database."""
    series: str
    """Name of the series: the name in the campaign's file."""
    name: str
    """Name of this run's campaign."""
    due: dt.datetime | None
    """Scheduled time; None if the campaign was requested by its name."""


def plan_scheduled_run(
    spec: str, settings: Sequence[str], storage: str | None, due: dt.datetime, name: str | None = None
) -> ScheduledRun:
    """Define a run from the current content of its file.

    Args:
        spec: Path of the campaign's YAML file.
        settings: `key=value` settings that override the file's.
        storage: URL of the results database as stored in Prefect, without its password; None if the file or
            WINNOW_STORAGE sets it.
        due: Scheduled time. The campaign's name contains it, so that a restarted run finds its campaign.
        name: Name of the campaign; None makes it from the series and the scheduled time.

    Raises:
        SpecError: If the file cannot be read, is invalid, or needs a permission that its user has not given.
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
    """Read a campaign's file with the database of this process, and check its permissions.

    Raises:
        SpecError: See `plan_scheduled_run`; also if the database needs a password that this process lacks.
    """
    url = url_of_a_worker(storage)
    file = read_spec_file(spec, [*settings, *([] if url is None else [f"storage={url}"])])
    read = parse_spec(file)
    _approving(spec, settings, read.storage)(file, read)
    return read


def _approving(spec: str, settings: Sequence[str], storage: str) -> Approve:
    """A function that checks a file by its user's stored permissions; a run gives no further ones."""
    own = os.environ.get("WINNOW_STORAGE")
    trust = Trust(how=how_to_allow(spec, settings, storage))
    return approving(trust, own=lambda key: (key, own) == ("storage", storage))


def how_to_allow(spec: str | None, settings: Sequence[str], storage: str | None) -> str:
    """Clause on how to give permissions to a run that Prefect started, with the command."""
    if spec is None:
        return "set WINNOW_STORAGE to this database in the environment of the process that starts the runs"
    database = [] if storage is None or has_secret(storage) else [f"storage={storage}"]
    given = "".join(f" --set {shlex.quote(each)}" for each in [*settings, *database])
    command = f"winnow validate {shlex.quote(spec)}{given} --trust"
    return f"allow it once, as the user who runs it here: cd {shlex.quote(str(Path.cwd()))} && {command}"


def run_scheduled(run: ScheduledRun, interrupts: Interrupts, say: Reporter) -> ScheduledRunResult:
    """Resume unfinished campaigns of the series, oldest first, then run the campaign of this run.

    Campaigns that another process runs are left alone. If a resumed campaign fails, the error is reported,
    and this run continues.

    Raises:
        SpecError: If the file is invalid now.
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
    """Run the new or resumed campaign of this run, unless a later campaign of the series has begun."""
    series = _series(database, run)
    with launching() as launch:
        if run.name in {record.name for record in series}:
            campaign = find_in(database, run.storage, run.name)
        else:
            if (later := _begun_since(series, run.due)) is not None:
                say(
                    f"{run.name}: skipped: {later.name} began after this run was due, "
                    "with the file's content at that time"
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
    """The last campaign of a series that began at or after the scheduled time; None if there is none."""
    if due is None:
        return None
    return next((record for record in reversed(series) if record.created_at >= due), None)


FOLDER_VARIABLE = "WINNOW_WORKING_FOLDER"
"""Environment variable with the folder that the paths of a flow run are relative to."""

# Prefect imports this module in a new process, in which no code of Winnow has run before.
close_imported()
if FOLDER_VARIABLE in os.environ:
    os.chdir(os.environ[FOLDER_VARIABLE])
logging.getLogger(TALKER).setLevel(logging.CRITICAL)


OF_NO_PREFECT = (signal.SIGHUP,)
"""Signals that stop a flow run at once; not SIGTERM, by which Prefect cancels runs."""


class RunMessages:
    """Collects the messages of a flow run, and logs them."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    @property
    def message(self) -> str:
        """All messages, one per line, for the final state of the run."""
        return "\n".join(self._lines) or "nothing to do"

    def say(self, line: str) -> None:
        """Add a message, and write it to Prefect's log; print it if that log is off."""
        self._lines.append(line)
        logger = get_run_logger()
        if logger.isEnabledFor(logging.INFO):
            logger.info(line)
        else:
            print(line, flush=True)


@contextmanager
def printing_errors(spec: str) -> Generator[None, None, None]:
    """Print the error that ends a run of a file, if Prefect's log is off and would not show it."""
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
    """Finish crashed campaigns of a series, then run a new campaign of it.

    Args:
        spec: Path of the campaign's YAML file, which is read again each time.
        storage: URL of the results database without its password; None uses WINNOW_STORAGE, or else the
            file's.
        settings: `key=value` settings that override the file's.
        campaign: Name of the new campaign; None makes it from the series and the scheduled time.
        trust: Ignored. Older deployments contain permissions here, but everybody with access to the server
            could add some.

    Raises:
        SpecError: If the file is invalid, or needs a permission that its user has not given.
        StorageError: If the database cannot be used.
    """
    messages, interrupts = RunMessages(), Interrupts()
    with printing_errors(spec), interrupts.caught(OF_NO_PREFECT):
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
    """Resume all unfinished campaigns that no process runs.

    Args:
        storage: URL of the results database without its password; None uses WINNOW_STORAGE.
        spec: Path of a campaign's file that names the database, or None.
        settings: `key=value` settings that override the file's.
        trust: Ignored, as in `scheduled_campaign`.

    Raises:
        SpecError: If the file is invalid, or needs a permission that its user has not given.
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
            "the parameter 'trust' of this deployment is ignored: a run has the permissions that its user "
            "has given on its machine; to remove this message, schedule the campaign again"
        )


def _introduce(name: str) -> FlowRun:
    context = FlowRunContext.get()
    assert context is not None, "only a flow calls this"
    assert context.flow_run is not None, "a flow that runs has a run"
    return introduce_run(context.flow_run, name)

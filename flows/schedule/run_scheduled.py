"""One run of a schedule: finish crashed campaigns, then run a new campaign of the same series."""

import datetime as dt
import os
import shlex
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from winnow.flows.notify.outbox import delivering
from winnow.flows.prefect_support.client import mark_crashed_runs
from winnow.flows.prefect_support.masked_urls import has_secret, url_of_a_worker
from winnow.flows.reports.summary import campaign_line, status_now
from winnow.flows.run.launch import launching
from winnow.flows.run.resume import Reporter, resume_each, run_flow, unfinished_campaigns
from winnow.flows.run.signals import Interrupts
from winnow.flows.run.trust_prompt import Trust, approving
from winnow.storage.admin.schema import ensure_schema
from winnow.storage.engine.database import Database, open_database
from winnow.storage.errors import LeaseHeld
from winnow.storage.records import campaigns as campaign_records
from winnow.storage.records.record_types import CampaignRecord
from winnow.tasks.campaign.campaign import find_in
from winnow.tasks.setup.load import Approve, check_campaign_file
from winnow.tasks.setup.yaml_file import parse_spec, read_spec_file
from winnow.tasks.spec.campaign import CampaignSpec

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
    """Words with the command by which a user allows a run that Prefect started."""
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
        SpecError: If the file is not valid any more.
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

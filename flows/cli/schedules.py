"""schedule: start new campaigns of a file at set times."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import Overrides, SpecPath, SpecStorage, TrustOption, overrides_of
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.stored_spec import LONGEST_NAME

if TYPE_CHECKING:
    from winnow.flows.run.trust_prompt import Trust
    from winnow.flows.schedule.deployments import Scheduled
    from winnow.flows.schedule.trigger import When
    from winnow.tasks.spec.campaign import CampaignSpec

LONGEST_OF_SERIES = LONGEST_NAME - len("-20261121T020000Z")
"""Maximum length of a series name; the rest of a campaign's name is its time."""


def schedule(
    spec: SpecPath,
    cron: Annotated[
        str | None,
        typer.Option(metavar="EXPR", help='When to run, such as "0 2 * * *" for 2:00 every night.'),
    ] = None,
    interval: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Seconds between runs, instead of --cron.")
    ] = None,
    timezone: Annotated[
        str | None,
        typer.Option(metavar="ZONE", help="Time zone of --cron, such as Europe/Berlin; default UTC."),
    ] = None,
    work_pool: Annotated[
        str | None,
        typer.Option(
            metavar="POOL",
            help="Prefect work pool whose workers run the campaigns; the command then returns.",
        ),
    ] = None,
    folder: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="With --work-pool: folder on the workers to which the file's paths are relative.",
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(
            metavar="DEPLOYMENT", help="Name of the deployment in Prefect; default: the campaign's name."
        ),
    ] = None,
    set_: Overrides = None,
    storage: SpecStorage = None,
    trust: TrustOption = False,
) -> None:
    """Run a new campaign of a file at set times, reusing outputs of earlier campaigns.

    Every run reads the file again, finishes crashed campaigns, and starts the campaign NAME-TIME. To see
    changes of the winner, run winnow query --series NAME. Without --work-pool, the schedule ends with this
    command. A run is refused if its file needs a permission that its user has not given. To give permissions
    to the workers of a pool, run winnow validate FILE --trust on their machines.
    """
    from winnow.flows.run.trust_prompt import Trust
    from winnow.flows.schedule.trigger import When

    if folder is not None and work_pool is None:
        raise SpecError("--folder needs --work-pool: add --work-pool POOL, or remove --folder")
    if folder is not None and not Path(folder).is_absolute():
        raise SpecError(
            f"--folder {folder!r} is not an absolute path: give the folder's full path on the workers"
        )
    when = When(cron=cron, interval=interval, timezone=timezone)
    when.next_run()  # raises here, before a server is started or a work pool is contacted
    given = overrides_of(set_, storage=storage)
    begins = Path(folder or Path.cwd())
    read = _check(spec, given, Trust(everything=trust, asks=True), begins, is_here=work_pool is None)
    if len(read.name) > LONGEST_OF_SERIES:
        raise SpecError(
            f"{spec}: name: a scheduled campaign's name has at most {LONGEST_OF_SERIES} characters, "
            f"because the time of each run is appended; this one has {len(read.name)}"
        )
    from winnow.flows.schedule.deployments import Scheduled
    from winnow.storage.engine.database import shown_url

    settings = [each for each in set_ or () if each.partition("=")[0].strip() != "storage"]
    is_named = storage is not None or settings != list(set_ or ())
    if is_named and work_pool is None:
        os.environ["WINNOW_STORAGE"] = read.storage  # for the runs, which are separate processes
    scheduled = Scheduled(
        spec=spec if folder is not None else str(Path(spec).absolute()),
        settings=settings,
        storage=shown_url(read.storage) if is_named else None,
        name=name or read.name,
        when=when,
    )
    if work_pool is None:
        _serve(scheduled, read.name, read.storage)
    else:
        _deploy(scheduled, work_pool, folder or str(Path.cwd()), read.name, read.storage)


def _check(spec: str, given: list[str], trust: "Trust", folder: Path, *, is_here: bool) -> "CampaignSpec":
    """The campaign of a file, with permissions, checked as far as possible on this machine."""
    from winnow.flows.run.trust_prompt import approving
    from winnow.tasks.setup.load import check_campaign_file
    from winnow.tasks.setup.yaml_file import parse_spec, read_spec_file
    from winnow.tasks.spec.selector_traits import refuse_confidence

    approve = approving(trust, folder)
    if is_here:
        return check_campaign_file(spec, given, approve).spec
    # Models and data may exist only on the workers' machines.
    file = read_spec_file(spec, given)
    read = parse_spec(file)
    refuse_confidence(read.stopping.delta, file.locate("stopping.delta"))
    approve(file, read)
    return read


def _serve(scheduled: "Scheduled", series: str, storage: str) -> None:
    from prefect.settings import PREFECT_API_URL

    from winnow.flows.prefect_support.server import prefect_server

    is_ours = not PREFECT_API_URL.value()
    if is_ours:
        print("no PREFECT_API_URL is set: a Prefect server runs until this command ends")
    with prefect_server(schedules=True):
        from winnow.flows.schedule.deployments import require_no_pool
        from winnow.flows.schedule.serve import serve

        require_no_pool(scheduled.name)
        print(f"serving '{scheduled.name}': {_times(scheduled.when)}")
        if not is_ours:
            _print_early_firing(scheduled.when)
        _print_results_command(series, storage)
        print("stop with Ctrl-C; a campaign that is running finishes its round first", flush=True)
        serve(scheduled)
    print("stopped; no campaign starts until the command runs again")


def _deploy(scheduled: "Scheduled", pool: str, folder: str, series: str, storage: str) -> None:
    from winnow.flows.prefect_support.masked_urls import has_secret
    from winnow.flows.schedule.deployments import POOL_TYPE, deploy

    url = deploy(scheduled, pool, folder)
    print(f"'{scheduled.name}' is scheduled on work pool '{pool}' of {url}: {_times(scheduled.when)}")
    _print_early_firing(scheduled.when)
    _print_results_command(series, storage)
    print("on each machine that is to run campaigns, with Winnow and the file's paths, run:")
    secret = "WINNOW_STORAGE=URL " if has_secret(storage) else ""
    print(f"  {secret}PREFECT_API_URL={url} prefect worker start --pool {pool} --type {POOL_TYPE} --limit 1")
    if secret:
        print("  replace URL by the database's URL with its password; Prefect does not receive the password")
    print("if a run crashes, this schedule's automations or the next run resume it")
    print(f"to end the schedule, run: prefect deployment delete 'scheduled-campaign/{scheduled.name}'")


def _times(when: "When") -> str:
    return f"{when}; next run {when.next_run():%Y-%m-%d %H:%M:%S %Z}"


def _print_early_firing(when: "When") -> None:
    if warning := when.early_firing():
        print(warning)


def _print_results_command(series: str, storage: str) -> None:
    from winnow.storage.engine.database import storage_option

    print(f"results: winnow query --series {series} {storage_option(storage)}")

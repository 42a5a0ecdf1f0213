"""validate, run, resume: the commands that need a campaign's files."""

from typing import Annotated

import typer

from flows.commands.options import (
    DEFAULT_STORAGE,
    LogFormatOption,
    LogLevelOption,
    Overrides,
    SpecPath,
    Storage,
)
from flows.log_lines import LogFormat, logged
from tasks.errors import SpecError

Fork = Annotated[
    str | None,
    typer.Option(metavar="NEW_NAME", help="Run under another name; generations made before are reused."),
]


Exhaustive = Annotated[
    bool,
    typer.Option(
        "--exhaustive",
        help="Score every candidate on every example, as the campaign NAME-exhaustive, which reuses all "
        "texts of NAME; `winnow simulate campaign:NAME` then compares selectors on its full table.",
    ),
]


def validate(spec: SpecPath, set_: Overrides = None) -> None:
    """Check a campaign's file and all it refers to; write nothing."""
    from tasks.campaign_files import check_campaign_file

    checked = check_campaign_file(spec, set_ or [])
    print(f"{spec}: campaign '{checked.spec.name}' is sound: {checked.size}")


def run(
    spec: SpecPath,
    set_: Overrides = None,
    fork: Fork = None,
    exhaustive: Exhaustive = False,
    storage: Annotated[
        str | None,
        typer.Option(envvar="WINNOW_STORAGE", help="URL of the results database; overrides the file's."),
    ] = None,
    log_format: LogFormatOption = LogFormat.text,
    log_level: LogLevelOption = None,
) -> None:
    """Run a campaign; one that was begun before goes on where it stopped."""
    from flows.launching import run_stored_campaign, store_campaign
    from tasks.campaign_files import check_campaign_file

    overrides = list(set_ or [])
    if fork is not None:
        overrides.append(f"name={fork}")
    if storage is not None:
        overrides.append(f"storage={storage}")
    with logged(log_format, log_level):
        checked = check_campaign_file(spec, overrides)
        if exhaustive:
            from tasks.exhaustive import exhaustive_campaign

            checked = exhaustive_campaign(checked)
        store_campaign(checked)
        code = run_stored_campaign(checked.spec.storage, checked.spec.name)
    raise typer.Exit(code)


def resume(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="Name of a campaign.")] = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Every campaign that was left unfinished and that nobody runs."),
    ] = False,
    storage: Storage = DEFAULT_STORAGE,
    log_format: LogFormatOption = LogFormat.text,
    log_level: LogLevelOption = None,
) -> None:
    """Go on with a stored campaign, or with all that were left unfinished; their files are not needed."""
    if (name is not None) == all_:
        raise SpecError("name a campaign to go on with, or say --all")

    from flows.launching import run_stored_campaign, run_unfinished_campaigns

    with logged(log_format, log_level):
        code = run_unfinished_campaigns(storage) if name is None else run_stored_campaign(storage, name)
    raise typer.Exit(code)

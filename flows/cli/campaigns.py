"""validate, run, resume: check a campaign's file, and run or resume a campaign."""

import sys
from typing import Annotated

import typer

from winnow.flows.cli.options import (
    DEFAULT_STORAGE,
    AllowAllZero,
    AllowMissing,
    Fork,
    LogFormatOption,
    LogLevelOption,
    OneCampaign,
    Overrides,
    SpecPath,
    SpecStorage,
    Storage,
    TrustOption,
    Verbose,
    overrides_of,
)
from winnow.flows.run.log_format import LogFormat, logged
from winnow.tasks.errors import SpecError

Exhaustive = Annotated[
    bool,
    typer.Option(
        "--exhaustive",
        help="Score every candidate on every example, as a campaign NAME-exhaustive that reuses all outputs "
        "of NAME. To compare selectors on its full table: winnow simulate campaign:NAME-exhaustive.",
    ),
]


def validate(
    spec: SpecPath, set_: Overrides = None, storage: SpecStorage = None, trust: TrustOption = False
) -> None:
    """Check a campaign's file and everything it refers to, without running third-party code.

    Nothing is written, and no request is sent. The permissions that a run needs are listed. With --trust,
    these permissions are granted and stored; the check then runs the file's code and downloads a missing
    dataset.
    """
    from winnow.flows.reports.output import terminal_width
    from winnow.flows.reports.summary import hanging
    from winnow.flows.run.validation import validate as validation_of
    from winnow.tasks.setup.yaml_file import read_spec_file
    from winnow.tasks.text.printable import printable

    width = terminal_width(sys.stdout)
    found = validation_of(read_spec_file(spec, overrides_of(set_, storage=storage)), trust=trust)
    for line in map(printable, found.lines()):
        print(line if "\n" in line else "\n".join(hanging("", line, width)))


def run(
    spec: SpecPath,
    set_: Overrides = None,
    fork: Fork = None,
    exhaustive: Exhaustive = False,
    allow_missing: AllowMissing = False,
    allow_all_zero: AllowAllZero = False,
    storage: SpecStorage = None,
    trust: TrustOption = False,
    verbose: Verbose = False,
    log_format: LogFormatOption = LogFormat.text,
    log_level: LogLevelOption = None,
) -> None:
    """Run a campaign; a campaign that has begun continues where it stopped."""
    from winnow.flows.run.launch import launching, run_stored_campaign
    from winnow.flows.run.trust_prompt import Trust, approving
    from winnow.tasks.setup.load import check_campaign_file

    overrides = overrides_of(
        set_,
        fork=fork,
        storage=storage,
        allow_missing=allow_missing,
        allow_all_zero=allow_all_zero,
    )
    approval = approving(Trust(everything=trust, asks=True))
    with logged(log_format, log_level), launching() as launch:
        checked = check_campaign_file(spec, overrides, approval, launch.recall)
        if exhaustive:
            from winnow.tasks.setup.load import exhaustive_campaign

            checked = exhaustive_campaign(checked)
        code = run_stored_campaign(launch.store(checked), is_brief=not verbose)
    raise typer.Exit(code)


def resume(
    name: OneCampaign = None,
    all_: Annotated[
        bool,
        typer.Option("--all", help="Resume all unfinished campaigns that no process runs."),
    ] = False,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Change a setting that may change later, such as stopping.budget, execution or tags; "
            "repeatable.",
        ),
    ] = None,
    retry_unscored: Annotated[
        bool,
        typer.Option(
            "--retry-unscored",
            help="First request outputs again that are missing because of a time-out, a crash or a server "
            "error.",
        ),
    ] = False,
    reason: Annotated[
        str | None,
        typer.Option(
            metavar="REASON",
            help="With --retry-unscored: only outputs that are missing for this reason, such as timed_out; "
            "`winnow query NAME coverage` lists the reasons.",
        ),
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    trust: TrustOption = False,
    verbose: Verbose = False,
    log_format: LogFormatOption = LogFormat.text,
    log_level: LogLevelOption = None,
) -> None:
    """Resume a stored campaign, or all unfinished campaigns; the campaign's file is not needed.

    To continue after the budget is spent, increase it: winnow resume NAME --set stopping.budget=MORE

    Missing outputs count at their worst. --retry-unscored requests them again, at their usual cost; the
    error probability of the answer does not change.
    """
    if (name is not None) == all_:
        raise SpecError("name a campaign to resume, or give --all")
    if set_ and name is None:
        raise SpecError("--set changes one campaign: name it instead of --all")
    if retry_unscored and name is None:
        raise SpecError("--retry-unscored is for one campaign: name it instead of --all")
    if reason is not None and not retry_unscored:
        raise SpecError("--reason selects what --retry-unscored requests again: give both")

    from winnow.flows.run import launch
    from winnow.flows.run.trust_prompt import Trust
    from winnow.tasks.campaign.campaign import opened_campaign

    allowed = Trust(everything=trust, asks=True)
    with logged(log_format, log_level):
        if name is None:
            code = launch.run_unfinished_campaigns(storage, Trust(everything=trust))
        else:
            with opened_campaign(storage, name) as campaign:
                if set_:
                    launch.change_stored_campaign(campaign, set_, allowed)
                if retry_unscored:
                    launch.retry_unscored(campaign, reason, allowed)
                code = launch.run_stored_campaign(campaign, allowed, is_brief=not verbose)
    raise typer.Exit(code)

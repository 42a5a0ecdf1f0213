"""rescore: judge the stored outputs of a campaign with another judge."""

from typing import Annotated

import typer

from winnow.flows.cli.options import (
    DEFAULT_STORAGE,
    CampaignName,
    LogFormatOption,
    LogLevelOption,
    Overrides,
    Storage,
    TrustOption,
)
from winnow.flows.run.log_format import LogFormat, logged


def rescore(
    name: CampaignName,
    judge: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="YAML file with the content of a campaign's key judge; default: the campaign's own judge.",
        ),
    ] = None,
    new_name: Annotated[
        str | None,
        typer.Option("--name", metavar="NEW_NAME", help="Name of the new campaign; default: NAME-rescored."),
    ] = None,
    set_: Overrides = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Print what would be judged; write, send and run nothing."),
    ] = False,
    storage: Storage = DEFAULT_STORAGE,
    trust: TrustOption = False,
    log_format: LogFormatOption = LogFormat.text,
    log_level: LogLevelOption = None,
) -> None:
    """Judge a campaign's stored outputs with another judge, as a new campaign; generate no outputs.

    Without --judge, the campaign's own judge is used in its current version, whose verdicts may have changed.

    The new campaign has the candidates, examples, selector, seed and budget of the stored campaign, and draws
    examples again. If a candidate has no stored output for an example, that comparison has no outcome. If the
    new campaign is interrupted, run `winnow resume`.
    """
    from winnow.flows.run.launch import launching, run_stored_campaign
    from winnow.flows.run.trust_prompt import Trust, approving
    from winnow.storage.admin.schema import existing
    from winnow.tasks.setup.rescore import rescoring_campaign, texts_of

    approve = approving(Trust(everything=trust, asks=True))
    with logged(log_format, log_level):
        with existing(storage, read_only=True) as database:
            checked = rescoring_campaign(database, name, judge, new_name, set_ or [], approve)
            with database.reading() as session:
                print(texts_of(session, name))
        if dry_run:
            return
        with launching() as launch:
            code = run_stored_campaign(launch.store(checked))
    raise typer.Exit(code)

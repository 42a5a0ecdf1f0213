"""gate: hold candidates against a baseline, for scripts that go on or stop by the exit code."""

import json
from pathlib import Path
from typing import Annotated

import typer

from winnow.flows.cli.options import (
    AllowAllZero,
    AllowMissing,
    Fork,
    LogFormatOption,
    LogLevelOption,
    Overrides,
    SpecPath,
    SpecStorage,
    TrustOption,
    overrides_of,
)
from winnow.flows.run.log_format import LogFormat, logged
from winnow.tasks.spec.selector_traits import GATE


def gate(
    spec: SpecPath,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="CANDIDATE",
            help="Whom the others are held against; needed where the file's selector is another than gate.",
        ),
    ] = None,
    set_: Overrides = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a test report for a pipeline, as JUnit's XML.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a summary for a pull request.")
    ] = None,
    fork: Fork = None,
    allow_missing: AllowMissing = False,
    allow_all_zero: AllowAllZero = False,
    storage: SpecStorage = None,
    trust: TrustOption = False,
    log_format: LogFormatOption = LogFormat.text,
    log_level: LogLevelOption = None,
) -> None:
    """Run a campaign until each candidate is shown to be no worse than a baseline, or to be worse.

    A campaign that was begun before goes on where it stopped. Worse means by more than stopping.epsilon; the
    probability that anything shown is wrong is at most stopping.delta.

    Exit codes: 0 every other candidate is shown to be no worse, 4 some candidate is shown to be worse, 3
    neither: something is open, or a candidate was dropped, or all were, or every score is 0. 1 and 2 are
    errors, after which the command may be run again.
    """
    from winnow.flows.reports.export.gate_files import begin_gate_files, write_gate_files
    from winnow.flows.run.launch import launching, run_stored_campaign
    from winnow.flows.run.trust_prompt import Trust, approving
    from winnow.tasks.errors import SpecError, WinnowError
    from winnow.tasks.queries.status import campaign_status
    from winnow.tasks.setup.load import check_campaign_file

    for path in filter(None, (junit, markdown)):
        if path.is_dir() or not path.parent.is_dir():
            why = "it is a folder" if path.is_dir() else f"there is no folder {path.parent}"
            raise WinnowError(f"{path} cannot be written: {why}; name another file")
    begin_gate_files(str(spec), junit=junit, markdown=markdown)
    overrides = overrides_of(
        set_,
        fork=fork,
        storage=storage,
        allow_missing=allow_missing,
        allow_all_zero=allow_all_zero,
    )
    if baseline is not None:
        selector = {"name": GATE, "params": {"baseline": baseline}}
        overrides.append(f"selector={json.dumps(selector)}")
    approval = approving(Trust(everything=trust, asks=True))
    with logged(log_format, log_level), launching() as launch:
        checked = check_campaign_file(spec, overrides, approval, launch.recall)
        if checked.spec.selector.name != GATE:
            raise SpecError(
                f"the file's selector is {checked.spec.selector.name}; name a candidate by --baseline",
                path="selector.name",
            )
        campaign = launch.store(checked)
        code = run_stored_campaign(campaign)
        with campaign.look() as look:
            status = campaign_status(look, in_full=True)
        write_gate_files(status, junit=junit, markdown=markdown)
        raise typer.Exit(code)

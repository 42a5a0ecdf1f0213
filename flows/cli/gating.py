"""gate: compare candidates with a baseline, for scripts that act on the exit code."""

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


def gate(
    spec: SpecPath,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="CANDIDATE",
            help="Candidate to compare the others with; required unless the file's selector is gate.",
        ),
    ] = None,
    set_: Overrides = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a JUnit XML report for a pipeline.")
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

    A campaign that began before continues where it stopped. Worse means by more than stopping.epsilon; the
    probability that anything shown is wrong is at most stopping.delta.

    Exit codes: 0 every other candidate is shown to be no worse, 4 some candidate is shown to be worse, 3
    neither: something is open, or a candidate was dropped, or all were, or every score is 0. 1 and 2 are
    errors, after which the command may be run again.
    """
    from winnow.flows.api.gates import GateFiles, run_gate
    from winnow.flows.run.launch import run_stored_campaign
    from winnow.flows.run.trust_prompt import Trust, approving
    from winnow.tasks.setup.yaml_file import read_spec_file

    files = GateFiles(source=str(spec), junit=junit, markdown=markdown)
    files.begin()
    overrides = overrides_of(
        set_,
        fork=fork,
        storage=storage,
        allow_missing=allow_missing,
        allow_all_zero=allow_all_zero,
    )
    approval = approving(Trust(everything=trust, asks=True))
    with logged(log_format, log_level):
        file = read_spec_file(spec, overrides)
        code, _ = run_gate(file, baseline, files, approval, run_stored_campaign)
    raise typer.Exit(code)

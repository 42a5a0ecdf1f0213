"""gate: compare candidates with a baseline, for pipelines that act on the exit code."""

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
            help="Candidate that the others are compared with; required unless the file's selector is gate.",
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

    A campaign that has begun continues where it stopped. A candidate counts as worse if its mean is lower by
    more than stopping.epsilon. The probability that any of these results is wrong is at most stopping.delta.

    Exit codes: 0 all other candidates are shown to be no worse. 4 at least one candidate is shown to be
    worse. 3 neither: a candidate is undecided, one or all were dropped, or every score is 0. 1 and 2 are
    errors; fix the cause and run the command again.
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

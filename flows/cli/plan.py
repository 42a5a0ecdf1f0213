"""plan: forecast a campaign before anything is spent."""

import sys
from typing import Annotated

import typer

from winnow.flows.cli.options import Json, Overrides, SpecPath, TrustOption, Workers
from winnow.flows.exit_codes import FORCED


def plan(
    spec: SpecPath,
    set_: Overrides = None,
    assume: Annotated[
        str | None,
        typer.Option(
            metavar="best=M,rest=M|worst=M[,alike=R]",
            help="Mean scores to assume: that of the best candidate, and either rest (the mean of each other "
            "candidate) or worst (others are spread evenly down to this mean). alike in [0, 1) is how much "
            "candidates fail on the same examples. Default: best=0.8,worst=0.4.",
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(
            metavar="TABLE", help="Table of scores to use instead, in a format of `winnow simulate`."
        ),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="CAMPAIGN", help="Stored campaign whose scores to use instead."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(help="Requests per second; default: the rate measured on the models' stored outputs."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(min=1, help="Number of simulated runs; also for each gap that is tried.")
    ] = 20,
    workers: Workers = None,
    trust: TrustOption = False,
    json: Json = False,
) -> None:
    """Forecast a campaign: requests, tokens, price, hours, and the gap in mean that it can detect.

    No request is sent, and nothing is written except the permissions of --trust. The campaign's selector runs
    on assumed scores (--assume) or on existing ones (--table, --like). The forecast is only as good as these
    scores. For other objectives than best-mean, for a gate, and with constraints, it is an upper bound: the
    cost of the whole budget.
    """
    from dataclasses import asdict

    from winnow.flows.api.plans import plan as plan_of
    from winnow.flows.reports.output import print_json
    from winnow.tasks.setup.yaml_file import read_spec_file
    from winnow.tasks.text.printable import printable

    try:
        found = plan_of(
            read_spec_file(spec, set_ or []),
            assume=assume,
            table=table,
            like=like,
            rate=rate,
            seeds=seeds,
            workers=workers,
            trust=trust,
        )
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise typer.Exit(FORCED) from None
    if json:
        print_json(asdict(found))
    else:
        print(printable(str(found)))

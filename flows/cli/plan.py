"""plan: what a campaign would take, before anything is spent."""

import sys
from typing import Annotated

import typer

from winnow.flows.cli.options import Json, Overrides, SpecPath, TrustOption, Workers
from winnow.flows.exit_codes import FORCED
from winnow.tasks.errors import SpecError


def plan(
    spec: SpecPath,
    set_: Overrides = None,
    assume: Annotated[
        str | None,
        typer.Option(
            metavar="best=M,rest=M|worst=M[,alike=R]",
            help="Means of scores of 0 and 1: the best one's, and that of all others (rest) or of the last "
            "of others that are evenly spread (worst); alike in [0, 1) is how far they fail on the same "
            "examples. By default best=0.8,worst=0.4.",
        ),
    ] = None,
    table: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Scores to take instead, as `winnow simulate` reads them."),
    ] = None,
    like: Annotated[
        str | None,
        typer.Option(metavar="CAMPAIGN", help="Take the scores of a campaign of the database instead."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(help="Requests a second; by default as the models' stored texts took.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs, and as many for each gap that is tried.")] = 20,
    workers: Workers = None,
    trust: TrustOption = False,
    json: Json = False,
) -> None:
    """Say what a campaign would take: requests, tokens, price, hours, and the gap in mean it can tell.

    No model is asked anything and nothing is written, except that --trust keeps what it allows. The
    campaign's own selector is run on scores that are assumed (--assume) or known (--table, --like); the plan
    is as good as these scores. For other objectives than best-mean, for a gate, and with constraints, the
    plan is the most that the budget allows.
    """
    from dataclasses import asdict

    from winnow.flows.reports.output import print_json
    from winnow.flows.run.trust_prompt import Trust, approving
    from winnow.flows.simulate.plan_lines import ceiling_lines, plan_lines
    from winnow.tasks.campaign.campaign_tables import load_score_table
    from winnow.tasks.data.score_tables import CAMPAIGN
    from winnow.tasks.objectives.best_mean.objective import BestMean
    from winnow.tasks.setup.load import check_campaign_file, with_stored_labels
    from winnow.tasks.simulation.forecast.assumed import DEFAULT, read_assumption
    from winnow.tasks.simulation.forecast.ceiling import plan_ceiling
    from winnow.tasks.simulation.forecast.plan import plan_campaign

    given = [option for option in (assume, table, like) if option is not None]
    if len(given) > 1:
        raise SpecError("--assume, --table and --like are three ways to say the same; give one")
    if rate is not None and not 0.0 < rate < float("inf"):
        raise SpecError(f"--rate {rate:g}: requests a second are above 0 and finite; give such a number")
    source = table if like is None else f"{CAMPAIGN}{like}"
    assumption = read_assumption(assume or DEFAULT)
    approve = approving(Trust(everything=True)) if trust else None
    checked = check_campaign_file(spec, set_ or [], approve)
    if not isinstance(checked, BestMean) or checked.baseline is not None or checked.constraints:
        if given:
            raise SpecError(
                "--assume, --table and --like stand for the scores of a campaign that looks for the best "
                "mean; leave them out, and plan says the most that this one can take"
            )
        ceiling = plan_ceiling(with_stored_labels(checked, is_allowed=trust), rate=rate)
        if json:
            print_json(asdict(ceiling))
        else:
            print("\n".join(ceiling_lines(ceiling)))
        return
    assumed = assumption if source is None else load_score_table(source, checked.spec.storage)
    try:
        found = plan_campaign(checked, assumed, seeds=seeds, workers=workers, rate=rate)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
        raise typer.Exit(FORCED) from None
    if json:
        print_json(asdict(found))
    else:
        print("\n".join(plan_lines(found)))

"""simulate: compare selectors on a table of scores."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from winnow.flows.cli.options import DEFAULT_STORAGE, Json, Storage, Workers
from winnow.flows.exit_codes import FORCED
from winnow.flows.reports.default_database import to_read
from winnow.flows.simulate.budgets import BUDGETS


class MetricChoice(StrEnum):
    """A metric of each run."""

    accuracy = "accuracy"
    top1_eps = "top1-eps"
    top1_mcnemar = "top1-mcnemar"
    ndcg = "ndcg"
    outscore_the_best = "outscore-the-best"
    optimal_pick_ratio = "optimal-pick-ratio"
    regret = "regret"


def simulate(
    table: Annotated[
        str,
        typer.Argument(
            metavar="TABLE",
            help="FILE.npz[:KEY], FILE.csv, FILE.parquet or campaign:NAME. Rows are candidates; columns are "
            "examples, or for duels also candidates.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for runs.parquet and curve.png.")],
    selector: Annotated[
        list[str],
        typer.Option(
            metavar="NAME[:KEY=VALUE,...]",
            help=(
                "Selector to compare; repeatable. The name of an objective, such as best-mean, stands for "
                "all of Winnow's selectors for it."
            ),
        ),
    ],
    budgets: Annotated[
        str | None,
        typer.Option(
            help="Budgets to report, separated by commas: shares of all pairs (0.05; 1.0 is all) or numbers "
            "of pairs (500; 1 is one pair); for routes, of prompts. Default: "
            f"{BUDGETS['tables of scores']}; for duels {BUDGETS['duels']}; for routes "
            f"{BUDGETS['routes']}."
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Error probability at which every selector may stop, at the latest after all pairs. "
            "stops.png shows when selectors stop and how often they are wrong."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of runs per selector.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    metric: Annotated[
        MetricChoice | None,
        typer.Option(
            metavar="METRIC",
            help=f"Metric, one of {', '.join(MetricChoice)}. Default: accuracy. The last three are for "
            "routes, with default outscore-the-best.",
        ),
    ] = None,
    gap: Annotated[float, typer.Option(help="For top1-eps: tolerance below the best mean.")] = 0.001,
    level: Annotated[float, typer.Option(help="For top1-mcnemar: significance level.")] = 0.01,
    history: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Table of earlier scores on the same examples, used as history."),
    ] = None,
    history_share: Annotated[
        float | None,
        typer.Option(help="Share of the candidates, drawn at random, that is used as history instead."),
    ] = None,
    contexts: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="For routes: file with a vector for each example. It has columns id and vector (.jsonl, "
            ".json, .parquet), or an array in the examples' order (.npy, .npz[:KEY]). campaign:NAME instead "
            "embeds the examples as that campaign does.",
        ),
    ] = None,
    embed: Annotated[
        str | None,
        typer.Option(
            metavar="TEMPLATE",
            help=(
                "For routes, if TABLE is a campaign: template of the texts to embed, such as '{{ input }}'."
            ),
        ),
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|FIELD",
            help="For routes: file with the type of each example, as columns id and type or an array; or, if "
            "TABLE is a campaign, a field of the examples.",
        ),
    ] = None,
    workers: Workers = None,
    storage: Storage = DEFAULT_STORAGE,
    json: Json = False,
) -> None:
    """Compare how soon selectors find the best candidate, on a table of scores or of preferences.

    A campaign that stopped before it scored all pairs gives only a trace: how many of the pairs that a
    selector proposes have a score, and which candidate it picks. Error rates and savings of selectors can
    only be measured on a full table. To get one, run `winnow run SPEC --exhaustive`.

    Selectors for duels (best-duel) need a table of preferences: how often each row is preferred to each
    column. For routing selectors, the examples of a table of scores are the prompts. Each prompt arrives
    once, in an order that depends on the seed. For comparison, the oracle routes every prompt to the
    candidate that is best over all prompts.
    """
    from winnow.flows.api.simulations import simulate as report_of
    from winnow.tasks.data.score_tables import CAMPAIGN

    is_stored = any(each is not None and each.startswith(CAMPAIGN) for each in (table, history, contexts))
    try:
        report = report_of(
            table,
            selector,
            budgets=budgets,
            delta=delta,
            seeds=seeds,
            seed=seed,
            metric=None if metric is None else metric.value,
            gap=gap,
            level=level,
            history=history,
            history_share=history_share,
            contexts=contexts,
            embed=embed,
            types=types,
            workers=workers,
            storage=to_read(storage) if is_stored else storage,
            out=out,
            progress=True,
        )
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(FORCED) from None
    report.print(out, json=json)

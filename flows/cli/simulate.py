"""simulate: selectors compared on a table whose scores are all known."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from winnow.flows.cli.options import DEFAULT_STORAGE, Json, Storage, Workers
from winnow.flows.exit_codes import FORCED
from winnow.flows.reports.open_readonly import to_read
from winnow.storage.objectives import traits_of
from winnow.tasks.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from winnow.algorithms.state.arrays import FloatArray
    from winnow.flows.simulate.report import Subject
    from winnow.tasks.simulation.environments import Environment
    from winnow.tasks.simulation.results import Metric
    from winnow.tasks.simulation.simulate import ComparedSelector, Run


BUDGETS = {
    "tables of scores": "0.05,0.1,0.2,0.4",
    "duels": "500,1000,2000,5000,10000",
    "routes": "0.1,0.2,0.4,0.6,0.8,1.0",
}
"""Default budgets, by `Traits.simulated`."""


class MetricChoice(StrEnum):
    """A measure of every run."""

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
            help="FILE.npz[:KEY], FILE.csv, FILE.parquet or campaign:NAME; rows are candidates, columns "
            "examples, or for duels candidates as well.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where runs.parquet and curve.png go.")],
    selector: Annotated[
        list[str],
        typer.Option(
            metavar="NAME[:KEY=VALUE,...]",
            help="Whom to compare; may be repeated. best-mean stands for all of Winnow's for that question.",
        ),
    ],
    budgets: Annotated[
        str | None,
        typer.Option(
            help="Where to look: shares of all pairs (0.05) or counts (500), by commas; for routes, of "
            "prompts. 1.0 is all of them, and 1 a single one. "
            f"By default {BUDGETS['tables of scores']}; for duels {BUDGETS['duels']}; for routes "
            f"{BUDGETS['routes']}."
        ),
    ] = None,
    delta: Annotated[
        float | None,
        typer.Option(
            help="Let every selector stop once it is sure at this error probability, by default after all "
            "pairs at the latest; stops.png shows when they do, and how often they err."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each selector.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    metric: Annotated[
        MetricChoice | None,
        typer.Option(
            metavar="METRIC",
            help=f"What to measure, one of {', '.join(MetricChoice)}; by default accuracy. The last three "
            "are for routes: outscore-the-best by default.",
        ),
    ] = None,
    gap: Annotated[float, typer.Option(help="Of top1-eps: how far below the best still counts.")] = 0.001,
    level: Annotated[float, typer.Option(help="Of top1-mcnemar: the significance level.")] = 0.01,
    history: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Earlier scores on the same examples, to learn from."),
    ] = None,
    history_share: Annotated[
        float | None, typer.Option(help="Take this share of the candidates, at random, as history instead.")
    ] = None,
    contexts: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Of routes: vectors of the examples, as columns id and vector (.jsonl, .json, .parquet) or "
            "an array in their order (.npy, .npz[:KEY]); or campaign:NAME, which embeds them as it routes.",
        ),
    ] = None,
    embed: Annotated[
        str | None,
        typer.Option(
            metavar="TEMPLATE",
            help="Of routes, where TABLE is a campaign: embed its examples instead, as in '{{ input }}'.",
        ),
    ] = None,
    types: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|FIELD",
            help="Of routes: of which type each example is, as columns id and type or an array; or a field "
            "of the examples, where TABLE is a campaign.",
        ),
    ] = None,
    workers: Workers = None,
    storage: Storage = DEFAULT_STORAGE,
    json: Json = False,
) -> None:
    """Compare selectors on a table of scores, or of preferences: how soon does each find the best candidate?

    A campaign that stopped before it had asked for all scores gives a trace: how many of the pairs that a
    selector asks for have a score, and which candidate it picks. How often selectors are wrong and what they
    save can only be seen on a full table, which `winnow run SPEC --exhaustive` makes.

    Selectors for duels (best-duel) take a table of preferences: how often each row is preferred to each
    column. For selectors that route, the examples of a table of scores are the prompts: each comes once, one
    after another, in an order that depends on the seed. Beside these selectors runs the oracle, which gives
    every prompt to the candidate that is best over all of them.
    """
    from itertools import chain

    from winnow.algorithms.errors import InvalidParameter
    from winnow.flows.simulate.report import SimulationReport
    from winnow.flows.simulate.tables import Given, make_environment
    from winnow.tasks.data.score_tables import CAMPAIGN
    from winnow.tasks.simulation.results import measure_by, metric_for
    from winnow.tasks.simulation.simulate import require_arms
    from winnow.tasks.simulation.simulate import simulate as runs_of

    compared = _compared(_named(selector), delta)
    simulated = traits_of(compared[0].objective).simulated
    if simulated is None:
        raise SpecError(
            f"--selector {compared[0].selector} certifies, which no table of scores can show; "
            "compare selectors for best-mean or best-duel"
        )
    chosen: Metric | None = None if metric is None else metric.value
    measured = metric_for(simulated, chosen)
    is_stored = any(each is not None and each.startswith(CAMPAIGN) for each in (table, history, contexts))
    given = Given(
        table=table,
        storage=to_read(storage) if is_stored else storage,
        history=history,
        history_share=history_share,
        seed=seed,
        contexts=contexts,
        embed=embed,
        types=types,
    )
    environment, subject = make_environment(simulated, compared, given)
    require_arms(compared, len(subject.candidates))
    if subject.is_partial:
        _require_no_metric(chosen, subject)
        measured = "coverage"
    looks = _budgets(budgets or _default_budgets(simulated, delta), subject)
    try:
        measure = measure_by(measured, environment, gap=gap, level=level)
    except InvalidParameter as error:
        raise SpecError(f"--{error.parameter}: {error}") from error
    _make_folder(out)
    picks = _picks_by(environment, looks[-1])
    right = _right_by(environment, compared, measured)
    all_seeds = range(seed, seed + seeds)
    runs = runs_of(environment, compared, budgets=looks, seeds=all_seeds, workers=workers)
    report = SimulationReport(
        subject=subject, metric=measured, budgets=looks, delta=delta, may_stop=_may_stop(compared)
    )
    try:
        oracles = _oracles(environment, looks, all_seeds)
        for run in chain(_with_progress(runs, seeds * len(compared)), oracles):
            values = measure(run)
            report.add(run, values, picks(run), right(run, values))
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(FORCED) from None
    report.write(out)
    report.print(out, json=json)


def _require_no_metric(chosen: str | None, subject: "Subject") -> None:
    """Refuse to measure how good a selector is where that would be biased."""
    from winnow.flows.simulate.report import FILLING

    if chosen is not None:
        raise SpecError(
            f"--metric {chosen}: {subject.source} has {subject.facts['filled']:.0%} of its scores, and a "
            "replay of what one selector asked for is a trace of another and no estimate; leave --metric "
            f"out, or {FILLING}"
        )


def _oracles(environment: "Environment", budgets: "Sequence[int]", seeds: "Sequence[int]") -> "Iterator[Run]":
    """The runs of the one-arm oracle, where prompts are routed: it needs no selector."""
    from winnow.tasks.simulation.route_environments import RouteEnvironment, one_arm_oracle

    if isinstance(environment, RouteEnvironment):
        yield from (one_arm_oracle(environment, budgets=budgets, seed=seed) for seed in seeds)


def _picks_by(environment: "Environment", budget: int) -> "Callable[[Run], FloatArray | None]":
    """The function from a run to the shares of prompts of each type by arm; it gives None without types."""
    from winnow.tasks.simulation.route_environments import RouteEnvironment
    from winnow.tasks.simulation.route_results import picks_by

    found = picks_by(environment, budget) if isinstance(environment, RouteEnvironment) else None
    return found or (lambda _: None)


def _right_by(
    environment: "Environment", compared: "Sequence[ComparedSelector]", measured: "Metric"
) -> "Callable[[Run, FloatArray], bool | None]":
    """The function that tells whether a run that stopped was right: by its claim, or by a chosen measure."""
    from winnow.tasks.simulation.results import claims_truly

    claims = {each.label: claims_truly(each, environment) for each in compared}

    def right(run: "Run", values: "FloatArray") -> bool | None:
        claim = claims.get(run.label)
        if claim is None or measured == "accuracy":
            return None if claim is None else claim(run)
        return bool(values[-1] == 1.0)

    return right


def _may_stop(compared: "Sequence[ComparedSelector]") -> set[str]:
    """The labels of the selectors that stop at an error probability: not of those that route every prompt."""
    asked = (each for each in compared if each.params.get("delta") is not None)
    return {each.label for each in asked if not traits_of(each.objective).is_stream}


def _named(selectors: "Sequence[str]") -> list[str]:
    """The names of the selectors; best-mean stands for all of Winnow's own for it.

    Those of duels cannot all be compared: some need features, which few tables have.
    """
    from winnow.algorithms.registry import SELECTORS

    stand = {each: SELECTORS[each] for each in SELECTORS if traits_of(each).scores_a_benchmark}
    return [name for text in selectors for name in stand.get(text, [text])]


def _default_budgets(simulated: str, delta: float | None) -> str:
    """The budgets to look at: with a delta up to all pairs, so that runs are not cut off before they stop."""
    return BUDGETS[simulated] + (",1.0" if simulated == "tables of scores" and delta is not None else "")


def _compared(selectors: "Sequence[str]", delta: float | None) -> "list[ComparedSelector]":
    from winnow.tasks.simulation.simulate import compared_selector
    from winnow.tasks.spec.selector_traits import refuse_confidence

    refuse_confidence(delta, "--delta")
    common = {} if delta is None else {"delta": delta}
    found = []
    for text in dict.fromkeys(selectors):
        name, _, settings = text.partition(":")
        params = dict(_parameter(text, setting) for setting in settings.split(",") if setting)
        if clash := common.keys() & params.keys():
            raise SpecError(f"--selector {text}: {min(clash)} is said by --delta for all; leave one out")
        refuse_confidence(params.get("delta"), f"--selector {text}")
        found.append(compared_selector(text, name, common | params))
    for other in found:
        if other.objective != found[0].objective:
            raise SpecError(
                f"{other.selector} answers {other.objective} and {found[0].selector} {found[0].objective}: "
                "no table serves both; compare selectors of one kind"
            )
    return found


def _parameter(selector: str, setting: str) -> tuple[str, object]:
    from json import JSONDecodeError, loads

    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise SpecError(f"--selector {selector}: {setting!r} is not key=value; for example ucb-e:a=0.5")
    value = "null" if text.lower() == "none" else text
    try:
        return name, loads(value)
    except JSONDecodeError:
        return name, text


def _budgets(text: str, subject: "Subject") -> list[int]:
    """Counts of comparisons, increasing: a number with a point is a share of the grid, else a count."""
    grid = subject.grid
    found = set()
    parts = [part.strip() for part in text.split(",")]
    if "1" in parts and grid and any("." in part for part in parts):
        raise SpecError(
            f"--budgets: 1 is a single one of {grid} {subject.unit} and stands beside shares; write 1.0 for "
            "all of them, or give counts alone"
        )
    for part in parts:
        try:
            count = round(float(part) * grid) if "." in part and grid else int(part)
        except ValueError:
            example = "0.05,0.1 or 500,1000" if grid else "500,1000: of duels there are no shares"
            raise SpecError(f"--budgets: {part!r} is no number; for example {example}") from None
        if not 1 <= count <= (grid or count):
            raise SpecError(f"--budgets: {part} is {count} {subject.unit}, the table has 1 to {grid}")
        found.add(count)
    return sorted(found)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpecError(f"--out {folder} cannot be made: {error.strerror}; name another folder") from error


def _with_progress(runs: "Iterator[Run]", total: int) -> "Iterator[Run]":
    """The same runs, with a bar on standard error where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        yield from progress.track(runs, total=total)

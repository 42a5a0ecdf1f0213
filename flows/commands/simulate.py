"""simulate: selectors compared on a table whose scores are all known."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from flows.commands.options import DEFAULT_STORAGE, Json, Storage
from flows.exits import FORCED
from tasks.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flows.simulation_report import Subject
    from tasks.score_tables import ScoreTable
    from tasks.simulation import Contestant, Run
    from tasks.worlds import World


SHARES, COUNTS = "0.05,0.1,0.2,0.4", "500,1000,2000,5000,10000"
"""Where to look unless told otherwise, in tables of scores and of preferences."""

MOST_MISSING = 0.5
"""Share of unscored pairs beyond which selectors set a candidate aside, unless told otherwise."""


class MetricChoice(StrEnum):
    """What is measured of every run."""

    accuracy = "accuracy"
    top1_eps = "top1-eps"
    top1_mcnemar = "top1-mcnemar"
    ndcg = "ndcg"


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
        typer.Option(metavar="NAME[:KEY=VALUE,...]", help="Whom to compare; may be repeated."),
    ],
    budgets: Annotated[
        str | None,
        typer.Option(
            help=f"Where to look: shares of all pairs (0.05) or counts (500), by commas; by default "
            f"{SHARES}, for duels {COUNTS}."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each selector.")] = 20,
    seed: Annotated[int, typer.Option(min=0, help="The first seed.")] = 0,
    metric: Annotated[MetricChoice, typer.Option(help="What to measure.")] = MetricChoice.accuracy,
    gap: Annotated[float, typer.Option(help="Of top1-eps: how far below the best still counts.")] = 0.001,
    level: Annotated[float, typer.Option(help="Of top1-mcnemar: the significance level.")] = 0.01,
    history: Annotated[
        str | None,
        typer.Option(metavar="TABLE", help="Other candidates' scores on the same examples, to learn from."),
    ] = None,
    history_share: Annotated[
        float | None, typer.Option(help="Take this share of the candidates, at random, as history instead.")
    ] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; one per core by default.")] = None,
    storage: Storage = DEFAULT_STORAGE,
    json: Json = False,
) -> None:
    """Compare selectors on a table of scores, or of preferences: how soon does each find the best candidate?

    Selectors for duels (best-duel) take a table of preferences: how often each row is preferred to each
    column.
    """
    from algorithms.errors import InvalidParameter
    from flows.simulation_report import SimulationReport
    from tasks.simulation import simulate as runs_of
    from tasks.simulation_results import measure_by

    contestants = _contestants(selector)
    if contestants[0].objective == "certify":
        raise SpecError(
            f"--selector {contestants[0].selector} certifies, which no table of scores can show; "
            "compare selectors for best-mean or best-duel"
        )
    if contestants[0].objective == "best-duel":
        world, subject = _duels(table, storage, metric, history, history_share)
    else:
        world, subject = _scores(table, contestants, history, history_share, storage, seed)
    looks = _budgets(budgets or (SHARES if subject.grid else COUNTS), subject.grid)
    try:
        measure = measure_by(metric.value, world, gap=gap, level=level)
    except InvalidParameter as error:
        raise SpecError(f"--{error.parameter}: {error}") from error
    _make_folder(out)
    runs = runs_of(world, contestants, budgets=looks, seeds=range(seed, seed + seeds), workers=workers)
    report = SimulationReport(subject=subject, metric=metric.value, budgets=looks)
    try:
        for run in _with_progress(runs, seeds * len(contestants)):
            report.add(run, measure(run))
    except KeyboardInterrupt:
        print("stopped; nothing was written", file=sys.stderr)
        raise typer.Exit(FORCED) from None
    report.write(out)
    report.print(out, json=json)


def _duels(
    table: str, storage: str, metric: MetricChoice, history: str | None, share: float | None
) -> "tuple[World, Subject]":
    from flows.simulation_report import preference_subject
    from tasks.preference_tables import load_preference_table
    from tasks.worlds import DuelWorld

    if metric is not MetricChoice.accuracy:
        raise SpecError(f"--metric {metric.value} is for tables of scores; duels have accuracy alone")
    if history is not None or share is not None:
        raise SpecError("duels have no history; leave --history and --history-share out")
    read = load_preference_table(table, storage)
    return DuelWorld(preferences=read.preferences, features=read.features), preference_subject(read)


def _scores(
    table: str,
    contestants: "Sequence[Contestant]",
    history: str | None,
    share: float | None,
    storage: str,
    seed: int,
) -> "tuple[World, Subject]":
    from flows.simulation_report import score_subject
    from tasks.score_tables import load_score_table
    from tasks.worlds import ScoreWorld

    read, past = _with_history(load_score_table(table, storage), history, share, storage, seed)
    _require_use(past, contestants)
    _require_scores(read)
    world = ScoreWorld(scores=read.scores, history=None if past is None else past.scores)
    return world, score_subject(read)


def _contestants(selectors: "Sequence[str]") -> "list[Contestant]":
    from tasks.simulation import contestant

    found = []
    for text in dict.fromkeys(selectors):
        name, _, settings = text.partition(":")
        params = dict(_parameter(text, setting) for setting in settings.split(",") if setting)
        found.append(contestant(text, name, params))
    for other in found:
        if other.objective != found[0].objective:
            raise SpecError(
                f"{other.selector} answers {other.objective} and {found[0].selector} {found[0].objective}: "
                "no table serves both; compare selectors of one kind"
            )
    return found


def _parameter(selector: str, setting: str) -> tuple[str, Any]:
    from json import JSONDecodeError, loads

    name, equals, text = setting.partition("=")
    if not equals or not name:
        raise SpecError(f"--selector {selector}: {setting!r} is not key=value; for example ucb-e:a=0.5")
    value = "null" if text.lower() == "none" else text
    try:
        return name, loads(value)
    except JSONDecodeError:
        return name, text


def _with_history(
    table: "ScoreTable", history: str | None, share: float | None, storage: str, seed: int
) -> "tuple[ScoreTable, ScoreTable | None]":
    """The table to replay, and the history to learn from: another table, or a part of this one."""
    from numpy.random import default_rng

    from tasks.score_tables import load_score_table, require_same_examples

    if history is not None and share is not None:
        raise SpecError("--history and --history-share exclude each other; give one of them")
    if history is not None:
        past = load_score_table(history, storage)
        require_same_examples(table, past)
        return table, past
    if share is None:
        return table, None
    count = len(table.candidates)
    held = round(share * count)
    if not 1 <= held <= count - 2:
        problem = f"leaves {count - held} of {count} candidates to compare and {held} as history"
        raise SpecError(f"--history-share {share:g} {problem}; at least 2 and 1 are needed")
    order = default_rng(seed).permutation(count)
    return table.rows(order[held:]), table.rows(order[:held])


def _require_use(history: "ScoreTable | None", contestants: "Sequence[Contestant]") -> None:
    if history is not None and not any("history" in each.uses for each in contestants):
        raise SpecError("none of the selectors learns from a history; leave it out, or add one such as pulse")


def _require_scores(table: "ScoreTable") -> None:
    if len(table.candidates) < 2:
        raise SpecError(f"{table.source} has one candidate; two are the fewest to compare")
    worst = int(table.missing.argmax())
    if table.missing[worst] > MOST_MISSING:
        raise SpecError(
            f"{table.source}: candidate {table.candidates[worst]!r} lacks {table.missing[worst]:.0%} of its "
            "scores, so that every selector would set it aside; leave it out or complete the table"
        )


def _budgets(text: str, grid: int | None) -> list[int]:
    """Counts of comparisons, increasing: a number with a point is a share of the grid, else a count."""
    found = set()
    for part in text.split(","):
        try:
            count = round(float(part) * grid) if "." in part and grid else int(part)
        except ValueError:
            example = "0.05,0.1 or 500,1000" if grid else "500,1000: of duels there are no shares"
            raise SpecError(f"--budgets: {part!r} is no number; for example {example}") from None
        if not 1 <= count <= (grid or count):
            raise SpecError(f"--budgets: {part.strip()} is {count} pairs, the table has 1 to {grid}")
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

"""Comparisons to a valid stop at delta = 0.05 on real score tables; a run that was stopped goes on.

Campaigns are kept in FOLDER/champion.csv; where that is not there yet, they go on from the file that --keep
writes.

python -m tests.benchmarks.champion --data FOLDER --out .winnow/bench [--seeds 60] [--only WORD]
python -m tests.benchmarks.champion --table demo=campaign:demo-exhaustive --storage URL --entrant "in rounds"
"""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from tests.benchmarks.champion import at_epsilon, speed, with_history
from tests.benchmarks.champion.bounds import Limits, limits_of
from tests.benchmarks.champion.runs import DELTA, ENTRANTS, Run, fill, keep, read, shares
from tests.benchmarks.champion.worlds import PROTOTYPES, Table, named, tables
from tests.benchmarks.errors.runs import begin_with
from tests.benchmarks.tables import Row, told, write

KEPT = Path("tests", "benchmarks", "results", "champion-runs.csv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder with the score tables")
    parser.add_argument(
        "--table",
        action="append",
        default=[],
        metavar="NAME=TABLE",
        help="a table as `winnow simulate` reads them, as in demo=campaign:demo-exhaustive; may be repeated",
    )
    parser.add_argument("--storage", default="sqlite:///winnow.db", help="where campaigns of --table are")
    parser.add_argument("--out", type=Path, default=Path(".winnow/bench"))
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this long")
    parser.add_argument("--keep", action="store_true", help=f"write the campaigns to {KEPT}")
    parser.add_argument("--only", default="", help="tables with this in their name")
    parser.add_argument("--speed", action="store_true", help="measure how long champion itself takes, too")
    parser.add_argument("--histories", type=int, default=0, help="campaigns with a history and without")
    parser.add_argument("--epsilon-seeds", type=int, default=0, help="seeds of few candidates at an epsilon")
    parser.add_argument("--entrant", action="append", help="may be repeated; all by default")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.data is None and (not options.table or options.speed or options.histories):
        parser.error("name a folder with --data, or tables with --table")
    worlds = [] if options.data is None else [*tables(options.data)]
    worlds += [named(each, options.storage) for each in options.table]
    worlds = [table for table in worlds if options.only in table.name]
    entrants = [each for each in ENTRANTS if each.label in (options.entrant or [e.label for e in ENTRANTS])]
    if not worlds and not options.speed:
        parser.error(f"no table has {options.only!r} in its name")
    file = options.out / "champion.csv"
    begin_with(file, KEPT)
    fill(file, worlds, entrants, options.seeds, options.minutes)
    if options.keep:
        keep(file, KEPT)
    runs = read(file)
    found = {}
    if options.speed:
        found = {"speed": told(speed.measure(options.data)), "decisions": told(speed.decisions())}
    if options.histories:
        found["history"] = told(with_history.measure(options.data, options.histories))
    if options.epsilon_seeds:
        found["epsilon"] = told(at_epsilon.measure(worlds, options.epsilon_seeds))
    if worlds:
        limits = {table.name: limits_of(table.scores, DELTA) for table in worlds}
        found["shares"] = told(_of_tables(worlds, runs, limits))
        found["ratios"] = told(_ratios(worlds, runs, limits))
    write("champion", TITLES, found, options.out)


def _of_tables(worlds: list[Table], runs: list[Run], limits: Mapping[str, Limits]) -> Iterator[Row]:
    for table in worlds:
        row = {"table": f"{table.name} {table.scores.shape[0]} x {table.scores.shape[1]}"}
        for entrant in ENTRANTS:
            of_seeds = shares(runs, table.name, entrant.label)
            row[entrant.label] = _mean(of_seeds)
        rounds = [run.rounds for run in runs if (run.table, run.entrant) == (table.name, "in rounds")]
        row["rounds"] = f"{np.mean(rounds):.0f}" if rounds else "-"
        row["oracle"] = f"{limits[table.name].oracle:.2f}"
        row["least"] = f"{limits[table.name].least:.2f}"
        theirs = PROTOTYPES.get(table.name)
        row["prototypes"] = " / ".join(f"{share:g}" for share in theirs) if theirs else "-"
        yield row


def _mean(shares_of_seeds: np.ndarray) -> str:
    n = len(shares_of_seeds)
    if n == 0:
        return "-"
    error = f" ± {shares_of_seeds.std(ddof=1) / np.sqrt(n):.2f}" if n > 1 else ""
    return f"{shares_of_seeds.mean():.2f}{error}"


def _ratios(worlds: list[Table], runs: list[Run], limits: Mapping[str, Limits]) -> Iterator[Row]:
    """Geometric means over tables of the ratio to the design's prototypes, to UCB-E and to the limits."""
    for entrant in ENTRANTS[:-1]:
        means = {
            t.name: shares(runs, t.name, entrant.label).mean() for t in worlds if _has(runs, t, entrant.label)
        }
        plain = {t.name: shares(runs, t.name, "ucb-e").mean() for t in worlds if _has(runs, t, "ucb-e")}
        better = {name: min(theirs[:2]) for name, theirs in PROTOTYPES.items()}
        mine = [run for run in runs if run.entrant == entrant.label]
        yield {
            "entrant": entrant.label,
            "to the better prototype": _geometric(means, better),
            "to ucb-e at 32": _geometric(means, plain),
            "to the oracle": _geometric(means, {name: each.oracle for name, each in limits.items()}),
            "to the least": _geometric(means, {name: each.least for name, each in limits.items()}),
            "wrong": f"{sum(run.is_wrong for run in mine)} of {len(mine)}",
        }


def _has(runs: list[Run], table: Table, entrant: str) -> bool:
    return any((run.table, run.entrant) == (table.name, entrant) for run in runs)


def _geometric(ours: dict[str, float], theirs: dict[str, float]) -> str:
    ratios = {name: ours[name] / theirs[name] for name in ours if name in theirs}
    if not ratios:
        return "-"
    worst = max(ratios, key=lambda name: ratios[name])
    mean = np.exp(np.mean(np.log(list(ratios.values()))))
    return f"{mean:.3f} on {len(ratios)} tables, at most {ratios[worst]:.2f} ({worst})"


TITLES = {
    "speed": "Time and memory of the selector",
    "decisions": "Time of the decisions of 10 000 arms, seconds of the processor",
    "history": "Comparisons to a stop at delta = 0.05, mean over campaigns and its standard error",
    "epsilon": "Percent of the grid to a stop at an epsilon, delta = 0.05, rounds of 64",
    "shares": "Percent of the grid to a stop at delta = 0.05, mean over seeds and its standard error",
    "ratios": "Geometric means of ratios",
}


if __name__ == "__main__":
    main()

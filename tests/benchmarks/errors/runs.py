"""Runs of cells, kept in a file a part at a time, so that a stopped benchmark goes on."""

import csv
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks.errors import best_duel, best_mean, bradley_terry, certify
from tests.benchmarks.errors.cells import Cell, play

RUNS_AT_ONCE = 100
COLUMNS = ("cell", "first", "runs", "claimed", "wrong", "delta")


class Total(NamedTuple):
    """All runs of a cell so far."""

    runs: int = 0
    claimed: int = 0
    wrong: int = 0
    delta: float = 0.0
    """The highest probability of an error that one of them stated."""


def all_cells(runs: int, whole_runs: int) -> list[Cell]:
    """Every cell there is."""
    return [
        *best_mean.cells(runs),
        *best_duel.cells(runs, whole_runs),
        *bradley_terry.cells(whole_runs),
        *certify.cells(runs),
    ]


def fill(file: Path, cells: Sequence[Cell], sizes: tuple[int, int], *, minutes: float, jobs: int) -> None:
    """Run what is missing, a part of each cell at a time, so that all cells grow alike."""
    end = time.monotonic() + 60.0 * minutes
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, context, _remember, sizes) as pool:
        while time.monotonic() < end and (parts := list(_missing(cells, totals(file)))):
            for row in pool.map(_play_part, parts[: 4 * jobs]):
                _append(file, row)


def totals(file: Path) -> dict[str, Total]:
    """What the file holds, by cell; each part counts once, a line that was cut off not at all."""
    found: dict[str, Total] = {}
    seen: set[tuple[str, str]] = set()
    if not file.exists():
        return found
    with file.open(newline="", encoding="utf-8") as opened:
        for row in csv.DictReader(opened):
            part = (row["cell"], row["first"])
            if part in seen or not row["delta"]:
                continue
            seen.add(part)
            old = found.get(row["cell"], Total())
            found[row["cell"]] = Total(
                old.runs + int(row["runs"]),
                old.claimed + int(row["claimed"]),
                old.wrong + int(row["wrong"]),
                max(old.delta, float(row["delta"])),
            )
    return found


def _missing(cells: Sequence[Cell], found: dict[str, Total]) -> Iterator[tuple[str, int, int]]:
    """Parts that are still to be run, of the least complete cells first."""
    have = {cell.name: found.get(cell.name, Total()).runs for cell in cells}
    for cell in sorted(cells, key=lambda each: have[each.name] / each.runs):
        if have[cell.name] < cell.runs:
            yield cell.name, have[cell.name], min(RUNS_AT_ONCE, cell.runs - have[cell.name])


_CELLS: dict[str, Cell] = {}  # of a worker process: cells hold functions, which cannot be sent


def _remember(runs: int, whole_runs: int) -> None:
    _CELLS.update({cell.name: cell for cell in all_cells(runs, whole_runs)})


def _play_part(part: tuple[str, int, int]) -> tuple[str, int, int, int, int, float]:
    name, first, count = part
    runs = [play(_CELLS[name], seed) for seed in range(first, first + count)]
    claimed, wrong = sum(run.is_claimed for run in runs), sum(run.is_wrong for run in runs)
    return name, first, count, claimed, wrong, max(run.delta for run in runs)


def _append(file: Path, row: tuple[object, ...]) -> None:
    is_new = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as opened:
        writer = csv.writer(opened)
        if is_new:
            writer.writerow(COLUMNS)
        writer.writerow(row)

"""Cells of simulated campaigns: each is run as often as wanted, and its row is appended to a table."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
from scipy.stats import beta


class Cell(Protocol):
    """One situation and what is promised in it."""

    @property
    def name(self) -> str: ...

    @property
    def share(self) -> float:
        """Share of the wanted runs that it gets."""
        ...


C = TypeVar("C", bound=Cell)
Counted = tuple[Sequence[object], str]
"""Columns of a row behind the name and the number of runs, and a line that shows them."""


def run_cells(
    cells: Iterable[C],
    count: Callable[[C, Iterator[np.random.Generator], int], Counted],
    *,
    runs: int,
    out: Path,
    names: str,
    columns: Sequence[str],
) -> None:
    """Run the cells whose name contains `names`, and append them to a table.

    Args:
        cells: All cells: run s of cell c has a generator seeded by [c, s].
        count: Runs a cell once with each generator, and counts; the last argument is their number.
        runs: Runs of a cell with share 1.
        out: The table, with a header if it is new.
        names: Part of the names of the cells to run.
        columns: The header.
    """
    is_new = not out.exists()
    with out.open("a", newline="") as file:
        writer = csv.writer(file)
        if is_new:
            writer.writerow(columns)
        for number, cell in enumerate(cells):
            if names not in cell.name:
                continue
            wanted = round(runs * cell.share)
            rngs = (np.random.default_rng([number, seed]) for seed in range(wanted))
            row, line = count(cell, rngs, wanted)
            writer.writerow((cell.name, wanted, *row))
            file.flush()
            print(f"{cell.name}: {line}", flush=True)


def rate(wrong: int, runs: int, promised: float) -> str:
    """Share of wrong runs with its upper limit at 99%, beside what is promised."""
    upper = float(beta.ppf(0.99, wrong + 1, runs - wrong)) if wrong < runs else 1.0
    return f"{wrong / runs:.4f} (below {upper:.4f}) of {promised:g}"

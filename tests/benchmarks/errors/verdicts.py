"""What the runs of a cell say of its promise."""

from typing import Literal

from scipy.stats import binom

from tests.benchmarks.errors.cells import Cell
from tests.benchmarks.errors.runs import Total
from winnow.algorithms.bounds.binomial import proportion_interval

FALSE_ALARM = 1e-3  # that any of all cells is taken to be above its promise though it is not

Verdict = Literal["kept", "ABOVE ITS PROMISE", "seen", "NOT SEEN", "reported", "not run"]
BAD: tuple[Verdict, ...] = ("ABOVE ITS PROMISE", "NOT SEEN")


def promises(cell: Cell, total: Total) -> list[float]:
    """The probability that was asked for, and those that wrong answers stated, 0 for the exact ones."""
    return sorted({cell.delta, *total.wrong})


def is_above(cell: Cell, total: Total, n_cells: int) -> bool:
    """Whether some promise is broken, by an exact binomial test at `FALSE_ALARM` over the number of cells.

    An answer states the bound that holds for it, a higher one where arms were dropped: that it is wrong and
    states d or less has probability at most d, for every d. An exact answer states 0, and may never be wrong.
    """
    runs = total.counts["runs"]
    return any(
        binom.sf(_wrong(total, bound) - 1, runs, bound) < FALSE_ALARM / n_cells
        for bound in promises(cell, total)
        if _wrong(total, bound)
    )


def verdict(cell: Cell, total: Total, n_cells: int) -> Verdict:
    """In one word, given how many cells there are."""
    if total.counts["runs"] == 0:
        return "not run"
    if cell.expected == "reported":
        return "reported"
    if cell.expected == "broken":
        return "seen" if is_above(cell, total, n_cells) else "NOT SEEN"
    return "ABOVE ITS PROMISE" if is_above(cell, total, n_cells) else "kept"


def upper_end(total: Total) -> float:
    """What the probability of a wrong answer is at most, with 95% confidence (Clopper and Pearson)."""
    wrong, runs = sum(total.wrong.values()), total.counts["runs"]
    return proportion_interval(wrong, runs, 0.1)[1]


def _wrong(total: Total, bound: float) -> int:
    return sum(count for stated, count in total.wrong.items() if stated <= bound)

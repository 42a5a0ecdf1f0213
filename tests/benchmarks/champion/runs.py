"""Campaigns on whole tables to their stop, kept in a file, so that a stopped benchmark goes on."""

import csv
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.champion.worlds import Table
from tests.benchmarks.errors.sources import digest_of_selector
from winnow.algorithms.protocols import Selector, round_rng
from winnow.algorithms.registry import create_selector

DELTA = 0.05


class Entrant(NamedTuple):
    label: str
    selector: str
    params: dict[str, object]
    most_seeds: int


ENTRANTS = (
    Entrant("in rounds", "champion", {"batch_size": 64}, 10_000),
    Entrant("one by one", "champion", {"batch_size": 1}, 10_000),
    Entrant("race", "champion", {"batch_size": 1, "start": "race"}, 10_000),
    Entrant("champion", "champion", {"batch_size": 1, "start": "champion"}, 10_000),
    Entrant("ucb-e, mended", "ucb-e", {"batch_size": 32}, 10_000),
    Entrant("ucb-e", "ucb-e", {"batch_size": 32, "variant": "paper"}, 1),
)


class Run(NamedTuple):
    """How one campaign ended."""

    code: str
    """A digest of that of its selector: runs of another one do not count."""
    table: str
    entrant: str
    seed: int
    share: float
    """Comparisons to the stop, of the grid."""
    rounds: int
    is_wrong: bool


def play(table: Table, entrant: Entrant, seed: int) -> Run:
    """One campaign to its stop."""
    scores = table.scores
    n_arms, n_examples = scores.shape
    selector = create_selector(
        entrant.selector, n_arms=n_arms, n_examples=n_examples, delta=DELTA, **entrant.params
    )
    comparisons, rounds = to_stop(selector, scores, seed)
    sums = scores.sum(axis=1)
    is_wrong = bool(sums[selector.decision().best] < sums.max() - 1e-6)
    code = digest_of_selector(entrant.selector)
    return Run(code, table.name, entrant.label, seed, comparisons / scores.size, rounds, is_wrong)


def to_stop(selector: Selector, scores: np.ndarray, seed: int) -> tuple[int, int]:
    """Ask and tell until nothing is asked; how many comparisons and rounds it took."""
    comparisons, rounds = 0, 0
    while len(batch := selector.ask(round_rng(seed, rounds))):
        selector.tell(batch, scores[batch.arms, batch.examples])
        comparisons, rounds = comparisons + len(batch), rounds + 1
    return comparisons, rounds


def fill(
    file: Path, worlds: Sequence[Table], entrants: Sequence[Entrant], seeds: int, minutes: float
) -> None:
    """Run what is missing, one seed of all before the next one."""
    end = time.monotonic() + 60.0 * minutes
    have = {(run.table, run.entrant, run.seed) for run in read(file)}
    for seed in range(seeds):
        for entrant in entrants:
            for table in worlds:
                if seed >= entrant.most_seeds or (table.name, entrant.label, seed) in have:
                    continue
                if time.monotonic() > end:
                    return
                _append(file, play(table, entrant, seed))


def read(file: Path) -> list[Run]:
    """What the file holds of the selectors as they are now, without a line that was cut off."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as opened:
        rows = [row for row in csv.reader(opened) if len(row) == len(Run._fields)]
    codes = {entrant.label: digest_of_selector(entrant.selector) for entrant in ENTRANTS}
    return [
        Run(code, table, entrant, int(seed), float(share), int(rounds), is_wrong == "True")
        for code, table, entrant, seed, share, rounds, is_wrong in rows
        if codes.get(entrant) == code
    ]


def keep(file: Path, kept: Path) -> None:
    """Write what a file holds, in order, to keep it by the page."""
    kept.unlink(missing_ok=True)
    for run in sorted(read(file)):
        _append(kept, run)


def shares(runs: Sequence[Run], table: str, entrant: str) -> np.ndarray:
    """Of the grid in percent, of all seeds there are."""
    return 100.0 * np.array([run.share for run in runs if (run.table, run.entrant) == (table, entrant)])


def _append(file: Path, run: Run) -> None:
    with file.open("a", newline="", encoding="utf-8") as opened:
        csv.writer(opened).writerow(run)

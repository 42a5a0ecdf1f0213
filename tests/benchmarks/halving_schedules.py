"""How often halving names a wrong arm by each schedule: tables of a folder, and smaller ones drawn from them.

python -m tests.benchmarks.halving_schedules --data FOLDER [--runs 40]
"""

import argparse
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.benchmarks.champion.worlds import Table, tables
from winnow.algorithms.best_mean.baselines.halving import Schedule, schedule_for
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector

SCHEDULES: tuple[Schedule, ...] = ("halving", "rejects")
SHARES = (0.05, 0.2, 0.4)
"""Of the grid."""
SIZES = ((5, 300), (10, 300), (20, 300), (40, 300))
MULTIPLES = (0.5, 0.85, 1.0, 1.3)
"""Of the budget from which "auto" rejects."""
ROUNDING = 1e-9


class Cell(NamedTuple):
    """Share of wrong answers and mean regret, by schedule."""

    wrong: np.ndarray
    regret: np.ndarray

    def __str__(self) -> str:
        return " / ".join(f"{each:.3f}" for each in self.wrong)


def named(scores: np.ndarray, budget: int, schedule: Schedule, seed: int) -> int:
    """The arm that is recommended, a phase a round."""
    n_arms, n_examples = scores.shape
    selector = create_selector(
        "halving",
        n_arms=n_arms,
        n_examples=n_examples,
        budget=budget,
        batch_size=scores.size,
        intervals=False,
        schedule=schedule,
    )
    played = 0
    while len(batch := selector.ask(round_rng(seed, played))):
        selector.tell(batch, scores[batch.arms, batch.examples])
        played += 1
    best = selector.decision().best
    assert best is not None
    return best


def measured(worlds: Iterable[tuple[np.ndarray, int]]) -> Cell:
    """Both schedules on tables of scores with a budget each."""
    lost = np.array(
        [
            [np.ptp([scores.mean(axis=1).max(), scores[arm].mean()]) for arm in arms]
            for number, (scores, budget) in enumerate(worlds)
            for arms in [[named(scores, budget, schedule, number) for schedule in SCHEDULES]]
        ]
    )
    return Cell((lost > ROUNDING).mean(axis=0), lost.mean(axis=0))


def shuffled(table: Table, share: float, runs: int) -> Iterator[tuple[np.ndarray, int]]:
    """A table with its arms in other orders, as equal means are told apart by order."""
    for seed in range(runs):
        scores = table.scores[np.random.default_rng(seed).permutation(len(table.scores))]
        yield scores, round(share * scores.size)


def smaller(
    found: list[Table], n_arms: int, n_examples: int, multiple: float, runs: int
) -> Iterator[tuple[np.ndarray, int]]:
    """Tables of some arms and examples of those, and a multiple of the budget from which "auto" rejects."""
    least = least_to_reject(n_arms, n_examples)
    for number, table in enumerate(found):
        if table.scores.shape[0] >= n_arms and table.scores.shape[1] >= n_examples:
            for seed in range(runs):
                rng = np.random.default_rng([number, seed])
                arms, examples = (
                    rng.choice(size, wanted, replace=False)
                    for size, wanted in zip(table.scores.shape, (n_arms, n_examples), strict=True)
                )
                scores = table.scores[np.ix_(arms, examples)]
                yield scores, min(scores.size, round(multiple * least))


def least_to_reject(n_arms: int, n_examples: int) -> int:
    """The smallest budget with which "auto" rejects."""
    budgets = range(n_arms * n_examples + 1)
    low, high = 0, budgets[-1]
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if schedule_for(n_arms, n_examples, middle) == "rejects" else (middle, high)
    return high


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the score tables")
    parser.add_argument("--runs", type=int, default=40, help="runs of each table and budget")
    options = parser.parse_args()
    found = list(tables(options.data))
    print(f"| table | arms x examples | auto rejects from | {' | '.join(f'{each:.0%}' for each in SHARES)} |")
    print("|---|---|---|" + "---|" * len(SHARES))
    cells = []
    for table in found:
        cells.append([measured(shuffled(table, share, options.runs)) for share in SHARES])
        n_arms, n_examples = table.scores.shape
        least = least_to_reject(n_arms, n_examples) / table.scores.size
        row = " | ".join(map(str, cells[-1]))
        print(f"| {table.name} | {n_arms} x {n_examples} | {least:.0%} | {row} |", flush=True)
    means = [Cell(*np.mean([row[k] for row in cells], axis=0)) for k in range(len(SHARES))]
    print(f"| all | | | {' | '.join(map(str, means))} |")
    print(f"\n| arms x examples, drawn | {' | '.join(f'{each:g}' for each in MULTIPLES)} |")
    print("|---|" + "---|" * len(MULTIPLES))
    for n_arms, n_examples in SIZES:
        row = [measured(smaller(found, n_arms, n_examples, each, options.runs // 2)) for each in MULTIPLES]
        print(f"| {n_arms} x {n_examples} | {' | '.join(map(str, row))} |", flush=True)


if __name__ == "__main__":
    main()

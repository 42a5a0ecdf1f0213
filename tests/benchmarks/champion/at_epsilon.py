"""What a large epsilon saves where few candidates are close: the best few of real tables."""

from collections.abc import Iterator, Sequence

import numpy as np

from tests.benchmarks.champion.runs import DELTA, to_stop
from tests.benchmarks.champion.worlds import Table
from tests.benchmarks.tables import Row
from winnow.algorithms.registry import create_selector

BATCH_SIZE = 64
FEWEST_EXAMPLES = 2000
SIZES = 2, 3, 5, 10
EPSILONS = 0.02, 0.05
SELECTORS = "champion", "race", "ucb-e", "row-mean"


def measure(worlds: Sequence[Table], seeds: int) -> Iterator[Row]:
    """Percent of the grid to the stop, of all tables with many examples, for each number of candidates."""
    large = [table.scores for table in worlds if table.scores.shape[1] >= FEWEST_EXAMPLES]
    for size in SIZES:
        best_few = [scores[np.argsort(-scores.sum(axis=1))[:size]] for scores in large]
        for epsilon in EPSILONS:
            row: Row = {"candidates": f"the best {size} of {len(large)} tables", "epsilon": f"{epsilon:g}"}
            row["champion, epsilon 0"], _ = _mean(best_few, "champion", 0.0, seeds)
            n_wrong = 0
            for selector in SELECTORS:
                row[selector], wrong = _mean(best_few, selector, epsilon, seeds)
                n_wrong += wrong
            yield {**row, "wrong": f"{n_wrong} of {len(SELECTORS) * len(large) * seeds}"}


def _mean(tables: Sequence[np.ndarray], selector: str, epsilon: float, seeds: int) -> tuple[str, int]:
    """The mean over tables and seeds with its standard error, and how many answers are wrong."""
    found = [[_share(scores, selector, epsilon, seed) for scores in tables] for seed in range(seeds)]
    shares = 100.0 * np.array([[share for share, _ in of_seed] for of_seed in found])  # (seeds, tables)
    error = shares.mean(axis=1).std(ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
    return f"{shares.mean():.1f} ± {error:.1f}", sum(is_wrong for of_seed in found for _, is_wrong in of_seed)


def _share(scores: np.ndarray, selector: str, epsilon: float, seed: int) -> tuple[float, bool]:
    """Comparisons to the stop, of the grid, and whether the answer is further below the best than epsilon."""
    n_arms, n_examples = scores.shape
    played = create_selector(
        selector,
        n_arms=n_arms,
        n_examples=n_examples,
        batch_size=BATCH_SIZE,
        delta=DELTA,
        epsilon=epsilon,
    )
    comparisons, _ = to_stop(played, scores, seed)
    sums = scores.sum(axis=1)
    is_wrong = bool(sums[played.decision().best] < sums.max() - epsilon * n_examples - 1e-6)
    return comparisons / scores.size, is_wrong

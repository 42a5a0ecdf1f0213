"""What a history saves on 1000 new models that are much alike, and what a misleading one costs."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.benchmarks.champion.runs import DELTA, to_stop
from tests.benchmarks.score_worlds import World, dense_variant, drawn, leaderboard_factors
from tests.benchmarks.tables import Row
from winnow.algorithms.registry import create_selector

BATCH_SIZE = 64


def measure(data: Path, seeds: int) -> Iterator[Row]:
    """Comparisons to the stop: campaigns on the dense table of `bench-best-mean`, and one each on others."""
    u, v = leaderboard_factors(data)
    table = drawn(u, v, np.random.default_rng(1))
    first = dense_variant(u, v, table, np.random.default_rng(2))
    yield _row("one table", [_compared(first, seed) for seed in range(seeds)])
    others = (dense_variant(u, v, table, np.random.default_rng([2, seed])) for seed in range(seeds))
    yield _row("a table for each campaign", [_compared(world, seed) for seed, world in enumerate(others)])


def _compared(world: World, seed: int) -> list[int]:
    """Comparisons with a history, without one, and with its opposite; 0 for a wrong answer."""
    return [_comparisons(world.scores, each, seed) for each in (world.history, None, 1.0 - world.history)]


def _comparisons(scores: np.ndarray, history: np.ndarray | None, seed: int) -> int:
    n_arms, n_examples = scores.shape
    selector = create_selector(
        "champion",
        n_arms=n_arms,
        n_examples=n_examples,
        batch_size=BATCH_SIZE,
        delta=DELTA,
        history=history,
    )
    comparisons, _ = to_stop(selector, scores, seed)
    sums = scores.sum(axis=1, dtype=np.float64)
    return comparisons if sums[selector.decision().best] == sums.max() else 0


def _row(name: str, found: list[list[int]]) -> Row:
    counts = np.array(found)  # (seeds, 3)
    row = {"1000 x 12032, dense": f"{name}, {len(counts)} campaigns"}
    for of_history, label in zip(counts.T, ("with history", "without", "opposite history"), strict=True):
        right = of_history[of_history > 0]
        error = right.std(ddof=1) / np.sqrt(len(right))
        row[label] = f"{right.mean():,.0f} ± {error:,.0f}"
        row[f"{label}: wrong"] = f"{len(counts) - len(right)}"
    return row

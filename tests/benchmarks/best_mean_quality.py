"""The published comparisons, as far as the data at hand and the time given allow."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from tests.benchmarks.score_worlds import (
    MODELS,
    World,
    alpaca,
    dense_variant,
    drawn,
    leaderboard_factors,
    published_subset,
)
from winnow.algorithms.best_mean.metrics import best_arms, budget_to_reach, hits, true_means
from winnow.tasks.simulation.environments import ScoreEnvironment
from winnow.tasks.simulation.results import average, measure_by
from winnow.tasks.simulation.simulate import ComparedSelector, Run, compared_selector, simulate

AS_PUBLISHED = {"variant": "paper"}

SHARES = (0.05, 0.08, 0.1, 0.2)
LONG_SHARES = (*SHARES, 0.3, 0.4)
ACTIVE = ("ucb-e", "ucb-e-lrf", "ucb-e-lrf-score-only", "pulse", "naive-pooling")
UNIFORM = ("row-mean", "filled-subset", "lrf")
"""They need more of the matrix, and are looked at for longer."""

BUDGET, BATCH_SIZE = 540_800, 64
FIRST_BATCHES = MODELS * BATCH_SIZE
"""Calls until every arm has its first batch."""
LOOKS = tuple(range(FIRST_BATCHES, BUDGET + 1, 100 * BATCH_SIZE))
SHORT_LOOKS = tuple(range(FIRST_BATCHES, 160_000, 10 * BATCH_SIZE))
"""For the published subsets: in tables drawn from these factors their best model is found much sooner."""
GAPS = (0.01, 0.02, 0.03)
LEAST_SEEDS = 2


def measure_alpaca(data: Path, names: Sequence[str], seeds: int, seconds: float) -> Iterator[dict[str, str]]:
    """Top-1 precision (gap 0.001) against the share of the matrix; each part has a quarter of the time."""
    for with_null_model in (False, True):
        world = alpaca(data, with_null_model=with_null_model)
        precision = measure_by("top1-eps", ScoreEnvironment(scores=world.scores), gap=0.001, level=0.01)
        for group, shares in ((ACTIVE, SHARES), (UNIFORM, LONG_SHARES)):
            budgets = [round(share * world.scores.size) for share in shares]
            field = [compared_selector(name, name, AS_PUBLISHED) for name in group if name in names]
            runs = _until(
                simulate(ScoreEnvironment(scores=world.scores), field, budgets=budgets, seeds=range(seeds)),
                len(field),
                seconds / 4,
            )
            for each in field:
                values = [precision(run) for run in runs if run.label == each.label]
                curve = average(each.label, values)
                row = {"table": world.name, "selector": each.label, "seeds": str(curve.runs)}
                cells = dict.fromkeys((f"{share:.0%}" for share in LONG_SHARES), "-")
                cells |= {
                    f"{share:.0%}": f"{mean:.2f}" for share, mean in zip(shares, curve.means, strict=True)
                }
                yield {**row, **cells, "1.00 from": _perfect_from(shares, curve.means)}


def measure_leaderboard(
    data: Path, names: Sequence[str], seeds: int, seconds: float
) -> Iterator[dict[str, str]]:
    """Calls to 95% accuracy on tables drawn from the leaderboard; half of the time is the dense one's."""
    u, v = leaderboard_factors(data)
    table = drawn(u, v, np.random.default_rng(1))
    field = _leaderboard_field(names)
    dense = dense_variant(u, v, table, np.random.default_rng(2))
    yield from _calls_to_95(dense, field, LOOKS, seeds, seconds / 2)
    for gap in GAPS:
        world = published_subset(table, gap)
        yield from _calls_to_95(world, field, SHORT_LOOKS, seeds, seconds / 2 / len(GAPS))


def _leaderboard_field(names: Sequence[str]) -> list[ComparedSelector]:
    entries = {
        "ucb-e": ("ucb-e", {}),
        "pulse": ("pulse", {}),
        "pulse without history": ("pulse", {"history": None}),
        "naive-pooling": ("naive-pooling", {}),
    }
    return [
        compared_selector(label, name, {"batch_size": BATCH_SIZE, **AS_PUBLISHED, **params})
        for label, (name, params) in entries.items()
        if name in names
    ]


def _calls_to_95(
    world: World, field: list[ComparedSelector], looks: Sequence[int], seeds: int, seconds: float
) -> Iterator[dict[str, str]]:
    right = best_arms(true_means(world.scores))
    table = ScoreEnvironment(scores=world.scores, history=world.history)
    runs = simulate(table, field, budgets=looks, seeds=range(seeds))
    runs = _until(runs, len(field), seconds)
    needed, accuracy = {}, {}
    for each in field:
        found = np.array([hits(run.best, right) for run in runs if run.label == each.label])  # (R, T)
        accuracy[each.label] = found.mean(axis=0)
        needed[each.label] = budget_to_reach(looks, accuracy[each.label])
    first, beginning = needed["ucb-e"], FIRST_BATCHES
    for label, calls in needed.items():
        in_all = (calls / first - 1.0) if np.isfinite(calls / first) else np.nan
        later = (calls - beginning) / (first - beginning) - 1.0 if first > beginning else np.nan
        yield {
            "table": f"{world.name} (drawn gap {world.gap():.4f})",
            "selector": label,
            "seeds": str(len(runs) // len(field)),
            "calls to 95%": _count(calls),
            "against ucb-e": _percent(in_all),
            "after the first batches": _count(calls - beginning),
            "against ucb-e then": _percent(later),
            "mean accuracy": f"{accuracy[label].mean():.3f}",
            "at the end": f"{accuracy[label][-1]:.2f}",
        }


def _until(runs: Iterable[Run], per_seed: int, seconds: float) -> list[Run]:
    """The runs of whole seeds until the time is up; of two seeds in any case."""
    end = time.monotonic() + seconds
    kept: list[Run] = []
    runs = iter(runs)
    while batch := list(islice(runs, per_seed)):
        kept += batch
        if time.monotonic() > end and len(kept) >= LEAST_SEEDS * per_seed:
            break
    runs.close()
    return kept


def _perfect_from(shares: Sequence[float], precision: np.ndarray) -> str:
    """The share from which on every run was right, as far as it was looked at."""
    wrong = np.flatnonzero(precision < 1.0)
    first = wrong[-1] + 1 if wrong.size else 0
    return f"{shares[first]:.0%}" if first < len(shares) else "later"


def _count(count: float) -> str:
    return f"{count:.0f}" if np.isfinite(count) else "not reached"


def _percent(change: float) -> str:
    return f"{change:+.0%}" if np.isfinite(change) else "-"

"""Rank and ridge that cross-validation chooses on a history, beside the defaults of `pulse`."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.benchmarks.champion.worlds import tables
from tests.benchmarks.tables import Row
from winnow.algorithms.low_rank.cross_validation import cross_validate
from winnow.algorithms.low_rank.joint_fit import weight_of_ridge
from winnow.algorithms.state.arrays import FloatArray

RANKS = (1, 2, 4, 8, 16, 32, 64)
RIDGES = (1 / 9, 1 / 3, 1, 3, 9)
"""Times the one that is derived from how many scores there are."""


def measure(data: Path) -> Iterator[Row]:
    """A history of half of the models of each table."""
    for table in tables(data):
        rng = np.random.default_rng(0)
        models = rng.permutation(len(table.scores))[: len(table.scores) // 2]
        yield {"table": table.name, **_chosen(table.scores[models], rng)}


def _chosen(history: FloatArray, rng: np.random.Generator) -> Row:
    most = min(history.shape)
    derived = weight_of_ridge(None, history.size, *history.shape) * sum(history.shape) / history.size
    found = cross_validate(
        history,
        ranks=sorted({min(rank, most) for rank in RANKS}),
        ridges=[times * derived for times in RIDGES],
        rng=rng,
    )
    losses = dict(zip(found.configurations, found.losses.mean(axis=1), strict=True))
    default = next(
        loss for each, loss in losses.items() if each.rank == min(RANKS[-1], most) and each.ridge == derived
    )
    return {
        "history": f"{history.shape[0]} x {history.shape[1]}",
        "rank": str(found.chosen.rank),
        "ridge / derived": f"{found.chosen.ridge / derived:.2f}",
        "loss": f"{losses[found.chosen]:.4f}",
        "loss of the default": f"{default:.4f}",
        "least loss": f"{min(losses.values()):.4f}",
    }

"""Score tables in which a best-mean campaign could be led astray, and what is true of each.

The truth of an unscored cell is what its output would have scored: the claim must hold whatever that is.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from algorithms.decision import Decision
from algorithms.registry import create_selector
from tests.benchmarks.errors.cells import Cell, Scene

N_ARMS, N_EXAMPLES, BATCH = 4, 24, 4
SELECTORS = ("ucb-e", "pulse", "row-mean")
SAME_SUM = 1e-9


class Table(NamedTuple):
    """Scores as they are and as they are told, both of shape (K, n)."""

    true: np.ndarray
    told: np.ndarray


def near_tie(rng: np.random.Generator) -> Table:
    """The best arm is better on one example alone."""
    scores = np.repeat((rng.random(N_EXAMPLES) < 0.5).astype(float)[np.newaxis], N_ARMS, axis=0)
    scores = np.array([rng.permutation(row) for row in scores])
    wrong = np.flatnonzero(scores[1] == 0.0)
    scores[1, wrong[0]] = 1.0
    return Table(scores, scores)


def one_deviating_example(rng: np.random.Generator) -> Table:
    """All arms agree but on one example, which alone decides."""
    row = (rng.random(N_EXAMPLES) < 0.7).astype(float)
    scores = np.repeat(row[np.newaxis], N_ARMS, axis=0)
    decisive = rng.integers(N_EXAMPLES)
    scores[:, decisive] = 0.0
    scores[2, decisive] = 1.0
    return Table(scores, scores)


def tied(rng: np.random.Generator) -> Table:
    """Two arms have the same sum, and the third is just below."""
    scores = (rng.random((N_ARMS, N_EXAMPLES)) < 0.4).astype(float)
    best = (rng.random(N_EXAMPLES) < 0.6).astype(float)
    scores[0], scores[1], scores[2] = best, rng.permutation(best), rng.permutation(best)
    scores[2, np.flatnonzero(scores[2])[0]] = 0.0
    return Table(scores, scores)


def rare_large(rng: np.random.Generator) -> Table:
    """A few scores of 1 among many near 0 decide."""
    scores = 0.05 * rng.random((N_ARMS, N_EXAMPLES))
    scores[3, rng.choice(N_EXAMPLES, size=3, replace=False)] = 1.0
    return Table(scores, scores)


def missing_where_wrong(share: float) -> Callable[[np.random.Generator], Table]:
    """The worse arm's wrong answers cannot be read: what is told of it looks better than the best."""

    def build(rng: np.random.Generator) -> Table:
        chances = np.array([0.75, 0.6, 0.4, 0.3])[:, np.newaxis]
        scores = (rng.random((N_ARMS, N_EXAMPLES)) < chances).astype(float)
        told = scores.copy()
        wrong = np.flatnonzero(scores[1] == 0.0)
        told[1, rng.choice(wrong, size=min(int(share * N_EXAMPLES), len(wrong)), replace=False)] = np.nan
        return Table(scores, told)

    return build


def best_is_dropped(rng: np.random.Generator) -> Table:
    """The best arm has no outcome on most examples."""
    scores = (rng.random((N_ARMS, N_EXAMPLES)) < np.array([0.9, 0.6, 0.5, 0.5])[:, np.newaxis]).astype(float)
    told = scores.copy()
    told[0, rng.random(N_EXAMPLES) < 0.7] = np.nan
    return Table(scores, told)


TABLES: dict[str, Callable[[np.random.Generator], Table]] = {
    "near tie": near_tie,
    "one deviating example": one_deviating_example,
    "tied": tied,
    "rare large": rare_large,
    **{f"missing where wrong {share:.0%}": missing_where_wrong(share) for share in (0.0, 0.1, 0.2, 0.4)},
    "best is dropped": best_is_dropped,
}


def cells(runs: int) -> Iterator[Cell]:
    """Every table with every selector, with and without epsilon, and tables that contradict the claim."""
    for selector in SELECTORS:
        for table, build in TABLES.items():
            for epsilon in (0.0, 0.06):
                yield Cell(
                    name=f"best-mean, {selector}, {table}, epsilon {epsilon:g}",
                    build=_scenes(selector, build, epsilon, delta=0.2),
                    runs=runs if selector != "pulse" else runs // 10,
                    delta=0.2,
                )
    yield Cell(
        name="best-mean, ucb-e, arms told under the names of others (assumption false)",
        build=_scenes("ucb-e", near_tie, 0.0, delta=0.2, lies=True),
        runs=runs // 10,
        delta=0.2,
        expected="broken",
    )


def _scenes(
    selector: str,
    build: Callable[[np.random.Generator], Table],
    epsilon: float,
    *,
    delta: float,
    lies: bool = False,
) -> Callable[[np.random.Generator], Scene]:
    def scene(rng: np.random.Generator) -> Scene:
        table = build(rng)
        told = table.told[::-1] if lies else table.told
        return Scene(
            create_selector(
                selector, n_arms=N_ARMS, n_examples=N_EXAMPLES, batch_size=BATCH, delta=delta, epsilon=epsilon
            ),
            lambda batch, _: told[batch.arms, batch.examples],
            lambda decision: _is_wrong(decision, table.true, epsilon),
        )

    return scene


def _is_wrong(decision: Decision, true: np.ndarray, epsilon: float) -> bool:
    sums = true.sum(axis=1)
    counted = np.array([status != "dropped" for status in decision.status])
    slack = epsilon * true.shape[1] + SAME_SUM
    named = [arm for arm, status in enumerate(decision.status) if status == "tied"] or [decision.best]
    highest = sums[counted].max()
    return any(sums[arm] < highest - slack for arm in named)

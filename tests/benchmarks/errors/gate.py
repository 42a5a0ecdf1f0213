"""Score tables that could lead a gate astray: arms that lie just on the wrong side of a limit."""

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from tests.benchmarks.errors.best_mean import N_ARMS, N_EXAMPLES, SAME_SUM, Table
from tests.benchmarks.errors.cells import Scene
from winnow.algorithms.decision import Decision
from winnow.algorithms.registry import create_selector

BATCH, DELTA = 8, 0.2
EPSILON = 0.06  # of 24 examples: one fewer is no worse, two are


def shifted(rng: np.random.Generator, more: int) -> Table:
    """All arms are right on so many examples more than the baseline, which ones has nothing to do with it."""
    right = rng.integers(4, N_EXAMPLES - 3)
    rows = np.zeros((N_ARMS, N_EXAMPLES))
    rows[0, :right] = 1.0
    rows[1:, : right + more] = 1.0
    scores = rng.permuted(rows, axis=1)
    return Table(scores, scores)


def deviating(rng: np.random.Generator) -> Table:
    """All arms agree with the baseline but on two examples, where it alone is right."""
    scores = np.repeat((rng.random((1, N_EXAMPLES)) < 0.7).astype(float), N_ARMS, axis=0)
    few = rng.choice(N_EXAMPLES, size=2, replace=False)
    scores[0, few], scores[1:, few] = 1.0, 0.0
    return Table(scores, scores)


def missing_where_wrong(rng: np.random.Generator, share: float) -> Table:
    """Two examples fewer are right, and a share of all outputs, wrong ones each, is unscored."""
    scores = shifted(rng, -2).true
    told = scores.copy()
    for arm in range(1, N_ARMS):
        wrong = np.flatnonzero(scores[arm] == 0.0)
        told[arm, rng.choice(wrong, size=min(round(share * N_EXAMPLES), len(wrong)), replace=False)] = np.nan
    return Table(scores, told)


def wrong_of_the_baseline(rng: np.random.Generator) -> Table:
    """The baseline is as good as all others, and every fifth of its outputs, right ones each, is unscored."""
    scores = shifted(rng, 0).true
    told = scores.copy()
    right = np.flatnonzero(scores[0])
    told[0, rng.choice(right, size=min(N_EXAMPLES // 5, len(right)), replace=False)] = np.nan
    return Table(scores, told)


WORLDS: Mapping[str, Callable[[np.random.Generator], Table]] = {
    "just worse": partial(shifted, more=-2),
    "just no worse": partial(shifted, more=-1),
    "level": partial(shifted, more=0),
    "two deviating examples": deviating,
    "missing where wrong 20%": partial(missing_where_wrong, share=0.2),
    "right ones of the baseline missing": wrong_of_the_baseline,
}


def scene(world: str, until: str, rng: np.random.Generator, *, guessed: bool = False) -> Scene:
    """A table, and a gate at its start, whose baseline is the first arm.

    Args:
        world: A key of `WORLDS`.
        until: See `Gate`.
        rng: Draws the table.
        guessed: Whether unscored outputs are told as right, on purpose.
    """
    table = WORLDS[world](rng)
    told = np.where(np.isnan(table.told), 1.0, table.told) if guessed else table.told
    selector = create_selector(
        "gate",
        n_arms=N_ARMS,
        n_examples=N_EXAMPLES,
        batch_size=BATCH,
        delta=DELTA,
        epsilon=EPSILON,
        until=until,
    )
    return Scene(
        selector,
        lambda batch, _: told[batch.arms, batch.examples],
        lambda decision: _is_wrong(decision, table.true),
    )


def _is_wrong(decision: Decision, true: np.ndarray) -> bool:
    """Whether what is said of any arm is false."""
    sums = true.sum(axis=1)
    more = sums - sums[0]
    limit = -EPSILON * N_EXAMPLES
    is_false = {
        "no-worse": more < limit - SAME_SUM,
        "better": more < SAME_SUM,
        "worse": more > limit - SAME_SUM,
    }
    return any(bool(is_false[said][arm]) for arm, said in enumerate(decision.status) if said in is_false)

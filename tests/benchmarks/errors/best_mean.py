"""Score tables in which a best-mean campaign could be led astray, and what is true of each.

The truth of an unscored pair is what its output would have scored: the claim must hold whatever that is.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.errors.cells import Scene
from winnow.algorithms.best_mean.groups import Groups, groups_of
from winnow.algorithms.best_mean.metrics import true_values
from winnow.algorithms.decision import Decision
from winnow.algorithms.registry import create_selector

N_ARMS, N_EXAMPLES, BATCH, DELTA = 4, 24, 6, 0.2
SAME_SUM = 1e-9


class Table(NamedTuple):
    """Scores as they are and as they are told, both of shape (K, n)."""

    true: np.ndarray
    told: np.ndarray


def near_tie(rng: np.random.Generator) -> Table:
    """All arms are right equally often, but the best one on one example more."""
    row = (rng.random(N_EXAMPLES) < 0.5).astype(float)
    row[:2] = 0.0, 1.0  # so that no row is full or empty
    scores = np.array([rng.permutation(row) for _ in range(N_ARMS)])
    scores[1, np.flatnonzero(scores[1] == 0.0)[0]] = 1.0
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
    """Two arms have the same sum, and a third is right on one example less."""
    scores = (rng.random((N_ARMS, N_EXAMPLES)) < 0.4).astype(float)
    best = (rng.random(N_EXAMPLES) < 0.6).astype(float)
    best[0] = 1.0
    scores[0], scores[1], scores[2] = best, rng.permutation(best), rng.permutation(best)
    scores[2, np.flatnonzero(scores[2])[0]] = 0.0
    return Table(scores, scores)


def rare_large(rng: np.random.Generator) -> Table:
    """A few scores of 1 among many near 0 decide."""
    scores = 0.05 * rng.random((N_ARMS, N_EXAMPLES))
    scores[3, rng.choice(N_EXAMPLES, size=3, replace=False)] = 1.0
    return Table(scores, scores)


def missing_where_wrong(rng: np.random.Generator, share: float) -> Table:
    """A share of all outputs of the second arm, wrong ones each, is unscored: it seems better than it is."""
    chances = np.array([0.75, 0.6, 0.4, 0.3])[:, np.newaxis]
    scores = (rng.random((N_ARMS, N_EXAMPLES)) < chances).astype(float)
    told = scores.copy()
    wrong = np.flatnonzero(scores[1] == 0.0)
    told[1, rng.choice(wrong, size=min(round(share * N_EXAMPLES), len(wrong)), replace=False)] = np.nan
    return Table(scores, told)


def best_is_dropped(rng: np.random.Generator) -> Table:
    """The best arm is unscored on most examples; of the others two are as good but for one example."""
    scores = (rng.random((N_ARMS, N_EXAMPLES)) < np.array([0.9, 0.5, 0.5, 0.5])[:, np.newaxis]).astype(float)
    scores[1, :2] = 0.0, 1.0
    scores[2] = rng.permutation(scores[1])
    scores[2, np.flatnonzero(scores[2] == 0.0)[0]] = 1.0
    told = scores.copy()
    told[0, rng.random(N_EXAMPLES) < 0.7] = np.nan
    return Table(scores, told)


MISSING = (0.0, 0.1, 0.2, 0.4)

WORLDS: Mapping[str, Callable[[np.random.Generator], Table]] = {
    "near tie": near_tie,
    "one deviating example": one_deviating_example,
    "tied": tied,
    "rare large": rare_large,
    **{f"missing where wrong {share:.0%}": partial(missing_where_wrong, share=share) for share in MISSING},
    "best is dropped": best_is_dropped,
}


def scene(
    selector: str,
    world: str,
    epsilon: float,
    rng: np.random.Generator,
    *,
    swapped: bool = False,
    guessed: bool = False,
    opposed: bool = False,
    **params: Any,
) -> Scene:
    """A table, and a selector at its start.

    Args:
        selector: A name of the registry.
        world: A key of `WORLDS`.
        epsilon: See `Setting`.
        rng: Draws the table.
        swapped: Whether scores are told under the names of other arms, on purpose.
        guessed: Whether unscored outputs are told as others of their arm, on purpose: what leaving them out
            comes to.
        opposed: Whether there is a history, in which easy examples are those that are hard for the arms.
        params: Parameters of the selector's own; `top_m` and the groups of them say what is wrong.
    """
    table = WORLDS[world](rng)
    groups = groups_of(params.get("groups"), params.get("group_weights"), N_EXAMPLES)
    told = table.told[::-1] if swapped else table.told
    if guessed:
        told = np.array([np.where(np.isnan(row), rng.choice(row[~np.isnan(row)]), row) for row in told])
    if opposed:
        params["history"] = 1.0 - np.concatenate([table.true, table.true])
    return Scene(
        create_selector(
            selector,
            n_arms=N_ARMS,
            n_examples=N_EXAMPLES,
            batch_size=BATCH,
            delta=DELTA,
            epsilon=epsilon,
            **params,
        ),
        lambda batch, _: told[batch.arms, batch.examples],
        lambda decision: _is_wrong(decision, table.true, epsilon, params.get("top_m", 1), groups),
    )


def _is_wrong(decision: Decision, true: np.ndarray, epsilon: float, top_m: int, groups: Groups) -> bool:
    """Whether an arm that is named is not among the best, or one that is out is."""
    if top_m > 1:
        return _are_wrong(decision, true.sum(axis=1), epsilon * true.shape[1], top_m)
    sums = true_values(true, groups) * true.shape[1]
    highest = sums[[status != "dropped" for status in decision.status]].max()
    least = {
        "best": highest - epsilon * true.shape[1] - SAME_SUM,
        "tied": highest - epsilon * true.shape[1] - SAME_SUM,
    }
    is_named_wrongly = any(
        total < least.get(status, -np.inf) for status, total in zip(decision.status, sums, strict=True)
    )
    is_out_wrongly = any(
        status == "eliminated" and total > highest - SAME_SUM
        for status, total in zip(decision.status, sums, strict=True)
    )
    return is_named_wrongly or is_out_wrongly or not {"best", "tied"} & set(decision.status)


def _are_wrong(decision: Decision, sums: np.ndarray, margin: float, top_m: int) -> bool:
    """Whether an arm that is left out is above one of the m named by more than a margin.

    Of the arms that are tied for the last places so many are named as there are places.
    """
    status = np.array(decision.status)
    top, tied = np.flatnonzero(status == "top"), np.flatnonzero(status == "tied")
    named = np.concatenate([top, tied[: top_m - len(top)]])
    left = np.setdiff1d(np.flatnonzero(status != "dropped"), named)
    return len(named) < top_m or bool(sums[left].max(initial=-np.inf) > sums[named].min() + margin + SAME_SUM)

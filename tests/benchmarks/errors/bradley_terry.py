"""Duels by which a campaign that believes in the Bradley-Terry model could be led astray."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from tests.benchmarks.errors.cells import Scene
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch
from winnow.algorithms.registry import create_selector

DELTA, BATCH, BUDGET = 0.2, 32, 3_000
BARELY = 1e-6  # too little to be seen, and enough for the other one not to be the best


class Instance(NamedTuple):
    """What is told of the arms, what they are worth, and what a judge cannot tell."""

    features: np.ndarray
    """Shape (K, d)."""
    utilities: np.ndarray
    """Shape (K,); duels follow the log-odds of their differences."""
    unread: float = 0.0
    """Share of the best arm's wins that stay unscored."""
    ties: float = 0.0
    """Share of duels that the judge calls a tie. They pull all preferences towards 1/2."""


def unequal_columns(rng: np.random.Generator) -> Instance:
    """Log10 of parameters and of context length; the column that matters is the narrow one."""
    parameters, context = rng.uniform(8.0, 11.5, size=6), rng.uniform(3.3, 3.9, size=6)
    return Instance(np.column_stack([parameters, context]), 2.5 * context)


def published_recipe(rng: np.random.Generator) -> Instance:
    """Hu et al.: b from 0.3 to -0.3 times a direction, and noise; fewer arms, to be fast."""
    direction = rng.standard_normal(4)
    direction /= np.linalg.norm(direction)
    features = np.linspace(0.3, -0.3, 8)[:, np.newaxis] * direction + 0.25 * rng.standard_normal((8, 4))
    return Instance(features, features @ direction)


def near_tie(rng: np.random.Generator) -> Instance:
    """Of four arms with two features, two are level but for one in a million, and ahead of two others."""
    features = np.array([[0.0, 1.0], [0.0, -1.0], [1.0, 0.4], [1.0, -0.4]])
    utilities = features @ np.array([-1.5, BARELY])
    order = rng.permutation(4)
    return Instance(features[order], utilities[order])


def wide_near_tie(rng: np.random.Generator) -> Instance:
    """Of six arms with four features, two are level but for one in a million."""
    top = [[1.0, 1.0, 0.0, 0.0], [1.0, -1.0, 0.0, 0.0]]
    others = [[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0], [-1.0, 0.3, 0.3, -0.3], [0.2, 0.5, -0.5, 0.5]]
    features = np.array(top + others)[rng.permutation(6)]
    return Instance(features, features @ np.array([1.2, BARELY, 0.3, 0.1]))


def unread_wins(rng: np.random.Generator, share: float) -> Instance:
    """The near tie, and so many of the best arm's wins cannot be read."""
    return near_tie(rng)._replace(unread=share)


def best_is_dropped(rng: np.random.Generator) -> Instance:
    """The near tie below an arm that is the best, nine in ten of whose wins cannot be read."""
    near = near_tie(rng)
    features = np.vstack([[-1.0, 0.0], near.features])
    return Instance(features, np.append(1.5, near.utilities), unread=0.9)


def interaction(rng: np.random.Generator) -> Instance:
    """Two choices of two whose worth depends on each other, told as if they added up."""
    features = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]], dtype=float)
    return Instance(features, np.array([1.0, -2.0, 0.8, 0.6]))


def called_ties(rng: np.random.Generator) -> Instance:
    """The near tie of two arms with one feature, half of whose duels are called ties."""
    return Instance(np.array([[0.0], [1.0]]), np.array([0.0, -BARELY]), ties=0.5)


WORLDS: Mapping[str, Callable[[np.random.Generator], Instance]] = {
    "columns of unequal scale": unequal_columns,
    "published recipe, K = 8": published_recipe,
    "near tie": near_tie,
    "near tie, four features": wide_near_tie,
    "near tie, half called ties": called_ties,
    **{f"unread wins {share:.0%}": partial(unread_wins, share=share) for share in (0.1, 0.2, 0.4)},
    "best is dropped": best_is_dropped,
}
INTERACTIONS: Mapping[str, Callable[[np.random.Generator], Instance]] = {"interaction": interaction}
"""Where the model is false."""


def scene(world: str, rng: np.random.Generator, *, left_out: bool = False) -> Scene:
    """Duels of a world, and llm-po-bt at its start.

    Args:
        world: A key of `WORLDS` or `INTERACTIONS`.
        rng: Draws the arms.
        left_out: Whether unscored duels are fought again until they are scored, on purpose: what leaving them
            out comes to.
    """
    instance = {**WORLDS, **INTERACTIONS}[world](rng)
    worth = instance.utilities
    best = int(worth.argmax())

    def outcomes(batch: Batch, rng: np.random.Generator) -> np.ndarray:
        first, second = batch.arms.T
        won = rng.random(len(batch)) < 1.0 / (1.0 + np.exp(worth[second] - worth[first]))
        is_unread = (np.where(won, first, second) == best) & (rng.random(len(batch)) < instance.unread)
        if left_out and is_unread.any():
            again = Batch(batch.arms[is_unread], batch.examples[is_unread])
            scored = won.astype(float)
            scored[is_unread] = outcomes(again, rng)
            return scored
        is_tie = rng.random(len(batch)) < instance.ties
        return np.where(is_unread, np.nan, np.where(is_tie, 0.5, won))

    def is_wrong(decision: Decision) -> bool:
        counted = [arm for arm, status in enumerate(decision.status) if status != "dropped"]
        return "best" not in decision.status or bool(worth[decision.best] < worth[counted].max())

    selector = create_selector(
        "llm-po-bt",
        n_arms=len(worth),
        n_examples=10**6,
        batch_size=BATCH,
        budget=BUDGET,
        delta=DELTA,
        features=instance.features,
    )
    return Scene(selector, outcomes, is_wrong)

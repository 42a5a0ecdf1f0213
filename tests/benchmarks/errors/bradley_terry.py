"""Duels by which a campaign that believes in the Bradley-Terry model could be led astray."""

from collections.abc import Callable, Iterator, Mapping
from typing import Literal, NamedTuple

import numpy as np

from algorithms.decision import Decision
from algorithms.protocols import Batch
from algorithms.registry import create_selector
from tests.benchmarks.errors.cells import Cell, Scene

DELTA = 0.2


class Instance(NamedTuple):
    """What is told of the arms, and what they are worth."""

    features: np.ndarray
    """Shape (K, d)."""
    utilities: np.ndarray
    """Shape (K,); duels follow the log-odds of their differences."""
    unread: float = 0.0
    """Share of the best arm's wins that stay unscored."""


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


def unread_wins(rng: np.random.Generator) -> Instance:
    """The recipe, and the judge cannot read a third of the best arm's wins."""
    return published_recipe(rng)._replace(unread=0.3)


def interaction(rng: np.random.Generator) -> Instance:
    """Two choices of two whose worth depends on each other, told as if they added up."""
    features = np.array([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]], dtype=float)
    return Instance(features, np.array([1.0, -2.0, 0.8, 0.6]))


INSTANCES: Mapping[str, tuple[Callable[[np.random.Generator], Instance], Literal["kept", "reported"]]] = {
    "columns of unequal scale": (unequal_columns, "kept"),
    "published recipe, K = 8": (published_recipe, "kept"),
    "unread wins 30%": (unread_wins, "kept"),
    "interaction (assumption false)": (interaction, "reported"),
}


def cells(runs: int) -> Iterator[Cell]:
    """Whole campaigns of llm-po-bt."""
    for name, (build, expected) in INSTANCES.items():
        yield Cell(
            name=f"best-duel, llm-po-bt, {name}",
            build=_scenes(build),
            runs=runs,
            delta=DELTA,
            expected=expected,
        )


def _scenes(build: Callable[[np.random.Generator], Instance]) -> Callable[[np.random.Generator], Scene]:
    def scene(rng: np.random.Generator) -> Scene:
        instance = build(rng)
        worth = instance.utilities
        best = int(worth.argmax())

        def outcomes(batch: Batch, rng: np.random.Generator) -> np.ndarray:
            first, second = batch.arms.T
            won = rng.random(len(batch)) < 1.0 / (1.0 + np.exp(worth[second] - worth[first]))
            unread = (np.where(won, first, second) == best) & (rng.random(len(batch)) < instance.unread)
            return np.where(unread, np.nan, won.astype(float))

        def is_wrong(decision: Decision) -> bool:
            counted = [arm for arm, status in enumerate(decision.status) if status != "dropped"]
            return bool(worth[decision.best] < worth[counted].max())

        selector = create_selector(
            "llm-po-bt",
            n_arms=len(worth),
            n_examples=10**6,
            batch_size=32,
            budget=3_000,
            delta=DELTA,
            features=instance.features,
        )
        return Scene(selector, outcomes, is_wrong)

    return scene

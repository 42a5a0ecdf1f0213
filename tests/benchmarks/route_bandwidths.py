"""Chosen bandwidths beside the fixed one, in worlds where routing pays much, little and not at all."""

from collections.abc import Callable, Iterator

import numpy as np

from tests.benchmarks.route_experts import OTHERWISE, Stream, rows, stream, uniform
from tests.benchmarks.tables import Row

METHODS: dict[str, tuple[str, dict[str, object]]] = {
    f"{label}, {bandwidth}": (name, {} if bandwidth == "auto" else {"bandwidth": 3.0})
    for label, name in (("PAK-UCB-rbf", "pak-ucb"), ("RFF-UCB-rbf", "rff-ucb"))
    for bandwidth in ("fixed at 3", "auto")
}
ALIKE = np.array([0.7, 0.5, 0.45, 0.4, 0.35])
"""Chance that each arm solves any prompt, where one arm is best everywhere."""
WEAK = 0.65
"""Chance that an expert solves a prompt of its type, where it is little better than others."""
HARDER = 0.3
"""Less of a chance for every arm, where prompts are hard."""


def measure(embeddings: np.ndarray, seeds: int) -> Iterator[Row]:
    """Rows of every world."""
    for label, expected in WORLDS.items():
        worlds = [_world(embeddings, seed, expected) for seed in range(seeds)]
        for row in rows(worlds, METHODS):
            yield {"world": label, **row}


def _world(embeddings: np.ndarray, seed: int, expected: Callable[[np.ndarray], np.ndarray]) -> Stream:
    world = stream(embeddings, uniform(seed), seed)
    chances = expected(world.expected)
    scores = np.random.default_rng([seed, 5]).random(chances.shape) < chances
    return Stream(world.contexts, world.types, chances, scores.astype(float))


def _weak(expected: np.ndarray) -> np.ndarray:
    return np.where(expected > OTHERWISE.max(), WEAK, expected)


WORLDS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "five types, an expert for each": lambda expected: expected,
    "the same, experts little better": _weak,
    "the same, all prompts hard": lambda expected: expected - HARDER,
    "one arm best everywhere": lambda expected: np.tile(ALIKE, (len(expected), 1)),
    "one arm best everywhere, all prompts hard": lambda expected: np.tile(ALIKE - HARDER, (len(expected), 1)),
}

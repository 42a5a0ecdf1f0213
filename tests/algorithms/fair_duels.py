"""Exact probabilities of what single duels of two arms ever show, by summing over all that may happen."""

from collections.abc import Callable

import numpy as np


def crossing_probability(is_crossed: Callable[[int, int], bool], horizon: int, chance: float = 0.5) -> float:
    """The probability that duels won with this chance ever come to gains and losses that are crossed."""
    alive, crossed = np.array([1.0]), 0.0
    for told in range(1, horizon + 1):
        alive = (1.0 - chance) * np.append(alive, 0.0) + chance * np.append(0.0, alive)  # by gains
        for gains in range(told + 1):
            if alive[gains] > 0.0 and is_crossed(gains, told - gains):
                crossed += alive[gains]
                alive[gains] = 0.0
    return crossed

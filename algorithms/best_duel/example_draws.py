"""Draws of examples that a pair of arms has not met."""

from bisect import bisect_left, bisect_right, insort

import numpy as np


class ExampleDraws:
    """The examples that a pair may still meet, drawn uniformly and without replacement.

    Which example a draw gives depends on the generator and on which were taken, not in which order: so a
    resumed campaign draws as the original. Memory grows with the examples taken and not with n.
    """

    def __init__(self, n_examples: int) -> None:
        self._n_examples = n_examples
        self._taken: list[int] = []  # ascending; asked or told
        self._told: set[int] = set()

    def draw(self, rng: np.random.Generator) -> int:
        """Take one of the examples never taken; there must be one."""
        rank = int(rng.integers(self._n_examples - len(self._taken)))
        # Before the i-th taken example there are as many free ones as its number exceeds i by.
        before = bisect_right(range(len(self._taken)), rank, key=lambda place: self._taken[place] - place)
        insort(self._taken, rank + before)
        return rank + before

    def is_told(self, example: int) -> bool:
        """Whether the pair's duel on an example was told."""
        return example in self._told

    def tell(self, example: int) -> None:
        """Take an example, drawn here or not, for good."""
        self._told.add(example)
        place = bisect_left(self._taken, example)
        if place == len(self._taken) or self._taken[place] != example:
            self._taken.insert(place, example)

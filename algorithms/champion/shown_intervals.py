"""Intervals of arms that came in several lists, for showing: nothing is decided by them."""

from collections.abc import Callable

import numpy as np

from winnow.algorithms.bounds.confidence import FinitePopulationIntervals
from winnow.algorithms.state.arrays import FloatArray, IntArray


class ShownIntervals:
    """Those of each list hold for all of its arms at once, at an error probability of the list's own.

    A list may be chosen by all that was told before it: its arms' draws begin after that. So the error
    probabilities of the lists add up.
    """

    def __init__(self, n_examples: int, alpha_of: Callable[[int], float]) -> None:
        self._n_examples, self._alpha_of = n_examples, alpha_of
        self._lists: list[FinitePopulationIntervals] = []
        self._starts = [0]

    def add_arms(self, count: int) -> None:
        """Append a list of arms."""
        alpha = self._alpha_of(len(self._lists))
        self._lists.append(FinitePopulationIntervals(count, self._n_examples, alpha))
        self._starts.append(self._starts[-1] + count)

    def update(self, arms: IntArray, scores: FloatArray) -> None:
        """Absorb scores, shape (B,), NaN where unscored, in the order of their draws."""
        for intervals, start, end in zip(self._lists, self._starts, self._starts[1:], strict=False):
            mine = (arms >= start) & (arms < end)
            if mine.any():
                intervals.update(arms[mine] - start, scores[mine])

    @property
    def estimates(self) -> FloatArray:
        """Shape (K,), each inside its interval; NaN before an arm's first score."""
        return np.concatenate([each.estimates for each in self._lists])

    @property
    def lower(self) -> FloatArray:
        """Lower ends, shape (K,)."""
        return np.concatenate([each.lower for each in self._lists])

    @property
    def upper(self) -> FloatArray:
        """Upper ends, shape (K,)."""
        return np.concatenate([each.upper for each in self._lists])

"""Simultaneous intervals for the differences of all arms' means from that of one arm.

They follow from intervals of the means, which the filled row's scores make narrow as a control, and from bets
on the differences of scores on the common examples of the race. docs/how-differences-are-bounded.md has the
proof.
"""

from typing import NamedTuple

import numpy as np

from winnow.algorithms.bounds.confidence_sequences import FinitePopulationIntervals
from winnow.algorithms.champion.race import Race
from winnow.algorithms.decision import Differences
from winnow.algorithms.state.arrays import FloatArray


class Ends(NamedTuple):
    """Intervals of the differences of K arms' means from that of one arm; NaN if unknown."""

    estimates: FloatArray
    """Shape (K,)."""
    lower: FloatArray
    """Shape (K,)."""
    upper: FloatArray
    """Shape (K,)."""

    def within(self, lower: FloatArray, upper: FloatArray) -> "Ends":
        """Intersect with other ends, NaN if unknown; an end stays unchanged if the intersection is empty."""
        lower, upper = np.fmax(self.lower, lower), np.fmin(self.upper, upper)
        is_empty = lower > upper
        lower, upper = np.where(is_empty, self.lower, lower), np.where(is_empty, self.upper, upper)
        return Ends(np.clip(self.estimates, lower, upper), lower, upper)


def by_means(estimates: FloatArray, lower: FloatArray, upper: FloatArray, best: int) -> Ends:
    """Differences from one arm, from intervals of the means of shape (K,)."""
    return Ends(estimates - estimates[best], lower - upper[best], upper - lower[best])


def by_race(
    race: Race, best: int, n_arms: int, n_examples: int, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends for the differences from one arm, from the common examples of the race.

    The ends for all K (K - 1) / 2 pairs of arms in the race hold simultaneously.

    Args:
        race: The race.
        best: The arm, one of those in the race.
        n_arms: K, the number of arms in the race.
        n_examples: N.
        alpha: The probability that any of these intervals is ever wrong.

    Returns:
        Both of shape (K,), NaN if unknown.
    """
    lower, upper = np.full((2, len(race.columns)), np.nan)
    others = np.delete(np.arange(n_arms), best)
    # K - 1 of all pairs, each with the share 2 / (K (K - 1)).
    intervals = FinitePopulationIntervals(n_arms - 1, n_examples, 2.0 * alpha / n_arms)
    for row, arm in enumerate(others.tolist()):
        scores = race.differences(arm, best)
        if scores.size:
            intervals.update(np.full(scores.size, row), (1.0 + scores) / 2.0)
    lower[others], upper[others] = 2.0 * intervals.lower - 1.0, 2.0 * intervals.upper - 1.0
    return lower, upper


def differences(ends: Ends, best: int, delta: float) -> Differences:
    """Differences from one arm, with NaN for that arm itself."""
    for each in ends:
        each[best] = np.nan
    return Differences(
        against=best, delta=delta, estimates=ends.estimates, lower=ends.lower, upper=ends.upper
    )

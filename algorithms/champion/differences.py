"""How far all arms are from one of them: intervals of differences of means that all hold at once.

They follow from intervals of the means, which the scores of the filled row make narrow as a control, and from
bets on the differences of scores on the common examples of the race.
docs/how-differences-are-bounded.md has the proof.
"""

from typing import NamedTuple

import numpy as np

from winnow.algorithms.bounds.confidence import FinitePopulationIntervals
from winnow.algorithms.champion.race import Race
from winnow.algorithms.decision import Differences
from winnow.algorithms.state.arrays import FloatArray


class Ends(NamedTuple):
    """Of the differences of K arms' means to that of one arm; NaN where nothing is known."""

    estimates: FloatArray
    """Shape (K,)."""
    lower: FloatArray
    """Shape (K,)."""
    upper: FloatArray
    """Shape (K,)."""

    def within(self, other: "Ends") -> "Ends":
        """What both allow; these alone where they contradict each other. The estimates are these."""
        lower, upper = np.fmax(self.lower, other.lower), np.fmin(self.upper, other.upper)
        is_empty = lower > upper
        lower, upper = np.where(is_empty, self.lower, lower), np.where(is_empty, self.upper, upper)
        return Ends(np.clip(self.estimates, lower, upper), lower, upper)


def by_means(estimates: FloatArray, lower: FloatArray, upper: FloatArray, best: int) -> Ends:
    """What intervals of the means, of shape (K,), say of the differences to one of them."""
    return Ends(estimates - estimates[best], lower - upper[best], upper - lower[best])


def by_race(race: Race, best: int, n_arms: int, n_examples: int, alpha: float) -> Ends:
    """What the common examples of the race say of the differences to one arm.

    Those of all K (K - 1) / 2 pairs of arms that were in the race hold at once.

    Args:
        race: The race.
        best: The arm, one of these.
        n_arms: K, the arms that were in the race.
        n_examples: N.
        alpha: The probability that any of these intervals is ever wrong.
    """
    ends = Ends(*np.full((3, len(race.columns)), np.nan))
    others = np.delete(np.arange(n_arms), best)
    # K - 1 of all pairs, each with the share 2 / (K (K - 1)).
    intervals = FinitePopulationIntervals(n_arms - 1, n_examples, 2.0 * alpha / n_arms)
    for row, arm in enumerate(others.tolist()):
        scores = race.differences(arm, best)
        if scores.size:
            intervals.update(np.full(scores.size, row), (1.0 + scores) / 2.0)
    ends.estimates[others] = 2.0 * intervals.estimates - 1.0
    ends.lower[others] = 2.0 * intervals.lower - 1.0
    ends.upper[others] = 2.0 * intervals.upper - 1.0
    return ends


def differences(ends: Ends, best: int, delta: float) -> Differences:
    """The differences to one arm, which has none to itself."""
    for each in ends:
        each[best] = np.nan
    return Differences(
        against=best, delta=delta, estimates=ends.estimates, lower=ends.lower, upper=ends.upper
    )

"""Intervals for reports: means of arms, and differences from one arm's mean.

No decision uses them. Arms can come from several lists. Intervals of differences follow from two sources: the
intervals of the means, which the filled row's scores as controls make narrow, and bets on score differences
on the common examples of the race. docs/how-differences-are-bounded.md has the proof.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from winnow.algorithms.best_mean.groups import Groups
from winnow.algorithms.bounds.confidence_sequences import FinitePopulationIntervals
from winnow.algorithms.bounds.wealth import Control, Wealth
from winnow.algorithms.champion.control_variates import Band
from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.race import Race
from winnow.algorithms.decision import Differences
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


class ControlledWealth(Wealth):
    """Capital of bets on scores minus their control, if a control was announced."""

    announced: Control | None = None

    def bet(
        self,
        arms: int | IntArray,
        scores: FloatArray,
        window: slice,
        is_draw: BoolArray | None = None,
        control: Control | None = None,
    ) -> None:
        """Bet on the next scores of some arms; uses an announced control once."""
        announced, self.announced = self.announced, None
        super().bet(arms, scores, window, is_draw, announced if control is None else control)


class ControlledIntervals(FinitePopulationIntervals):
    """Intervals that hold for all arms, at all times.

    The probability that all hold is at least 1 - alpha. The assumptions are those of
    `FinitePopulationIntervals` and one more: the control of a draw is fixed before its score is known and has
    mean 0 over the examples left. A score minus such a control has the same mean as the score. The estimates
    are means of these differences.
    """

    def __init__(self, n_arms: int, n_examples: int, alpha: float) -> None:
        super().__init__(n_arms, n_examples, alpha)
        self._low_wealth, self._high_wealth = (
            ControlledWealth(n_arms, n_examples, alpha / (2 * n_arms), self._grid) for _ in range(2)
        )
        self._too_low, self._too_high = self._shared = self._low_wealth, self._high_wealth
        self._bands: list[deque[Band | None]] = [deque() for _ in range(n_arms)]

    def tell(self, batch: Grouped, band: Band | None) -> None:
        """Observe draws of some arms, with their controls.

        `band` is None if they have no controls.
        """
        for arm, start, size in zip(batch.arms.tolist(), batch.starts, batch.sizes, strict=True):
            mine = slice(start, start + size)
            self._bands[arm].append(None if band is None else Band(*(each[mine] for each in band)))
        self.update(batch.rows, batch.scores)

    def _settle_draws(self, arms: IntArray, scores: FloatArray) -> None:
        bands = [self._bands[arm].popleft() for arm in arms.tolist()]
        if all(band is None for band in bands):
            super()._settle_draws(arms, scores)
            return
        nothing = Band(*np.zeros((3, scores.shape[1])))
        rows = [nothing if band is None else band for band in bands]
        for arm, of_arm, row in zip(arms.tolist(), scores, rows, strict=True):
            self._draw_sums[arm] -= row.values[~np.isnan(of_arm)].sum()
        values, below, above = (np.stack(each) for each in zip(*rows, strict=True))  # (A, B)
        self._low_wealth.announced = Control(values, above)
        self._high_wealth.announced = Control(-values, below)
        self._settle(arms, scores, np.ones(scores.shape[1], dtype=np.bool_))


class GroupedIntervals:
    """Intervals of arms that are compared by group means.

    They are valid for all arms at all times. The means of each group have intervals that are ever wrong with
    probability at most alpha / G. If all of them hold, computing an arm's value from their lower ends, and
    from their upper ends, gives an interval of the value. Draws have no controls here, because the controls
    have mean 0 over all remaining examples, not over those of a group.

    Args:
        n_arms: K.
        groups: Groups of the examples.
        alpha: In (0, 1).
    """

    def __init__(self, n_arms: int, groups: Groups, alpha: float) -> None:
        self._groups = groups
        self._of_groups = [
            FinitePopulationIntervals(n_arms, size, alpha / groups.n_groups) for size in groups.sizes.tolist()
        ]

    def tell(self, batch: Grouped, band: Band | None) -> None:
        """Observe draws of some arms; `band` is ignored because groups have no controls."""
        of_draw = self._groups.of_example[batch.examples]
        for group in np.unique(of_draw).tolist():
            mine = of_draw == group
            self._of_groups[group].update(batch.rows[mine], batch.scores[mine])

    @property
    def estimates(self) -> FloatArray:
        """Estimates, shape (K,), each inside its interval.

        NaN before an arm's first score.
        """
        found = self._groups.value(np.stack([each.estimates for each in self._of_groups], axis=1))
        return np.clip(found, self.lower, self.upper)

    @property
    def lower(self) -> FloatArray:
        """Lower ends, shape (K,)."""
        return self._groups.value(np.stack([each.lower for each in self._of_groups], axis=1))

    @property
    def upper(self) -> FloatArray:
        """Upper ends, shape (K,)."""
        return self._groups.value(np.stack([each.upper for each in self._of_groups], axis=1))


class ShownIntervals:
    """Intervals by list of arms, simultaneous within a list.

    Each list has its own error probability. A list can depend on all earlier observations, because draws of
    its arms begin later. So the error probabilities of the lists add up.

    Args:
        groups: Groups of the examples.
        alpha_of: Maps the index of a list, counted from 0, to its error probability.
    """

    def __init__(self, groups: Groups, alpha_of: Callable[[int], float]) -> None:
        self._groups, self._alpha_of = groups, alpha_of
        self._lists: list[ControlledIntervals | GroupedIntervals] = []
        self._starts = [0]

    def add_arms(self, count: int) -> None:
        """Append a list of arms."""
        alpha, groups = self._alpha_of(len(self._lists)), self._groups
        if groups.n_groups == 1:
            self._lists.append(ControlledIntervals(count, int(groups.sizes[0]), alpha))
        else:
            self._lists.append(GroupedIntervals(count, groups, alpha))
        self._starts.append(self._starts[-1] + count)

    def tell(self, batch: Grouped, band: Band | None) -> None:
        """Observe draws, in the order of the draws, with their controls.

        `band` is None without controls.
        """
        for intervals, start, end in zip(self._lists, self._starts, self._starts[1:], strict=False):
            first, last = np.searchsorted(batch.arms, [start, end])
            if first < last:
                intervals.tell(*_part(batch, band, slice(int(first), int(last)), start))

    @property
    def estimates(self) -> FloatArray:
        """Estimates, shape (K,), each inside its interval.

        NaN before an arm's first score.
        """
        return np.concatenate([each.estimates for each in self._lists])

    @property
    def lower(self) -> FloatArray:
        """Lower ends, shape (K,).

        Simultaneous within a list, with the error probability of `alpha_of`.
        """
        return np.concatenate([each.lower for each in self._lists])

    @property
    def upper(self) -> FloatArray:
        """Upper ends, shape (K,); see `lower`."""
        return np.concatenate([each.upper for each in self._lists])


def _part(batch: Grouped, band: Band | None, arms: slice, offset: int) -> tuple[Grouped, Band | None]:
    """Draws of some arms of a batch, with arms renumbered from `offset`.

    The arms are the slice `arms` of the batch's arms.
    """
    starts, sizes = batch.starts[arms], batch.sizes[arms]
    pairs = slice(int(starts[0]), int(starts[-1] + sizes[-1]))
    part = Grouped(
        arms=batch.arms[arms] - offset,
        starts=starts - starts[0],
        sizes=sizes,
        group=batch.group[pairs] - arms.start,
        examples=batch.examples[pairs],
        scores=batch.scores[pairs],
    )
    return part, None if band is None else Band(*(each[pairs] for each in band))


class Ends(NamedTuple):
    """Intervals of the differences of K arms' means from the mean of one arm.

    NaN if unknown.
    """

    estimates: FloatArray
    """Shape (K,)."""
    lower: FloatArray
    """Shape (K,)."""
    upper: FloatArray
    """Shape (K,)."""

    def within(self, lower: FloatArray, upper: FloatArray) -> "Ends":
        """Intersect with other ends, NaN if unknown.

        Where the intersection is empty, keep these ends.
        """
        lower, upper = np.fmax(self.lower, lower), np.fmin(self.upper, upper)
        is_empty = lower > upper
        lower, upper = np.where(is_empty, self.lower, lower), np.where(is_empty, self.upper, upper)
        return Ends(np.clip(self.estimates, lower, upper), lower, upper)


def by_means(estimates: FloatArray, lower: FloatArray, upper: FloatArray, best: int) -> Ends:
    """Intervals of the differences from one arm, from intervals of the means.

    All have shape (K,).
    """
    return Ends(estimates - estimates[best], lower - upper[best], upper - lower[best])


def by_race(
    race: Race, best: int, n_arms: int, n_examples: int, alpha: float
) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends of the differences from one arm, from a race.

    They use the common examples of the race. The ends for all K (K - 1) / 2 pairs of arms in the race hold
    simultaneously.

    Args:
        race: The race.
        best: The arm, one of those in the race.
        n_arms: K, the number of arms in the race.
        n_examples: N.
        alpha: The probability that any of these intervals is ever wrong.

    Returns:
        Both of the shape of `race.columns`, NaN if unknown.
    """
    lower, upper = np.full((2, len(race.columns)), np.nan)
    others = np.delete(np.arange(n_arms), best)
    # These are K - 1 of all pairs, and each pair has the share 2 / (K (K - 1)) of alpha.
    intervals = FinitePopulationIntervals(n_arms - 1, n_examples, 2.0 * alpha / n_arms)
    for row, arm in enumerate(others.tolist()):
        scores = race.differences(arm, best)
        if scores.size:
            intervals.update(np.full(scores.size, row), (1.0 + scores) / 2.0)
    lower[others], upper[others] = 2.0 * intervals.lower - 1.0, 2.0 * intervals.upper - 1.0
    return lower, upper


def differences(ends: Ends, best: int, delta: float) -> Differences:
    """Convert ends to differences; NaN for the arm that others are compared with."""
    for each in ends:
        each[best] = np.nan
    return Differences(
        against=best, delta=delta, estimates=ends.estimates, lower=ends.lower, upper=ends.upper
    )

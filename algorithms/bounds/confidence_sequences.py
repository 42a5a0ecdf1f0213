"""Time-uniform confidence intervals for means of finite populations.

The populations are sampled without replacement. Letters as in Waudby-Smith & Ramdas: N examples per arm, t of
them observed so far, x_t the t-th observed score, S_t = x_1 + ... + x_t, m a candidate for the arm's mean; K
arms, G grid points, J bet sizes, B scores at once.

If the mean is m, the examples not observed before the t-th have mean mu_t(m) = (N m - S_{t-1}) / (N - t + 1).
So the capital prod_{s <= t} (1 + lambda_s (x_s - mu_s(m))) is a non-negative martingale that starts at 1
whenever lambda_s depends on the past only and lies in [0, 1 / mu_s(m)]. By Ville's inequality it ever reaches
1 / alpha with probability at most alpha. Every m whose capital reaches 1 / alpha is refuted as too low.

This requires x_t to be a uniform draw from the unobserved examples. For an example chosen in any other way,
by earlier scores or by predictions, the bet is 0: its score only changes t and S. Later draws are uniform on
the remaining examples, whose mean is mu_t(m).

Sources: Waudby-Smith & Ramdas (2020), "Confidence sequences for sampling without replacement", NeurIPS;
Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86(1).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from winnow.algorithms.bounds.wealth import Wealth
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

GRID_POINTS = 1025
MOST_AT_ONCE = 16  # arms whose bets are computed together; more would not fit in the cache


@dataclass(frozen=True, slots=True)
class EndLevels:
    """Error probabilities of single ends, in (0, 1).

    The probability that the lower, or the upper, end ever fails.
    """

    lower: float
    upper: float


class Bets(Protocol):
    """Interface of the betting capital that the intervals use."""

    def bet(
        self, arms: IntArray, scores: FloatArray, window: slice, is_draw: BoolArray | None = None
    ) -> None:
        """Observe the next scores of A arms, and bet on the draws among them.

        Bets are made at some grid points.

        Args:
            arms: Shape (A,), each arm at most once.
            scores: Shape (A, B), the same number for each arm.
            window: Slice of the grid points to bet at.
            is_draw: Shape (B,), which scores are draws, the same for all arms; None if all are draws.
        """
        ...

    def capital(self, arms: IntArray, window: slice) -> FloatArray:
        """Capital of A arms at the grid points of a window, shape (A, G)."""
        ...


class FinitePopulationIntervals:
    """Intervals that hold for all arms and at all times.

    The probability that all hold is at least 1 - alpha. P(lower_i <= mean_i <= upper_i for every arm i after
    every update) >= 1 - alpha: simultaneously over all rounds, so at any stopping time, for any scores in [0,
    1]. The assumptions:

    * Every example that counts as a draw is drawn uniformly from the unobserved ones of its arm.
    * Scores arrive in the order of the draws or, if all are draws, in an order chosen without looking at
      them.
    * No score depends on when it is requested.

    The next arm, and the examples that are chosen instead of drawn, can depend on all past observations.

    Every arm has alpha / K, half of it for each end (union bounds). An unscored pair can have any value in
    [0, 1]: the lower end counts it as 0 and the upper end as 1. So the interval holds for every completion,
    and has width 0 only once every example of the arm is scored.

    The estimates use the same quantities as the intervals. An estimate is the sum of the scores, plus, for
    each unobserved example, the mean of the values that were bet on, divided by the number of examples
    without the unscored ones, and clipped to the interval. If all scores are draws, this is their plain mean.
    If some examples were chosen, only the draws represent the remaining examples, as far as these still
    resemble the population that they were drawn from. Unscored pairs are left out as if missing at random;
    the intervals do not rely on this.

    Single ends come from the same capital. Each holds at all times with probability 1 minus its level;
    several hold together only by a union bound.

    Args:
        n_arms: K.
        n_examples: N.
        alpha: In (0, 1).
        single: Levels of the single ends, for which the bets are then optimised; None to use the ends of the
            intervals.
    """

    def __init__(
        self, n_arms: int, n_examples: int, alpha: float, *, single: EndLevels | None = None
    ) -> None:
        if not 0.0 < alpha < 1.0:
            raise InvalidParameter("alpha", alpha, "in (0, 1)")
        self._n_examples = n_examples
        # Equidistant in arcsin(sqrt(m)): cells are narrow at means with small variance of the scores.
        self._grid = (1.0 - np.cos(np.linspace(0.0, np.pi, GRID_POINTS))) / 2.0  # (G,)
        level = alpha / (2.0 * n_arms)
        self._simultaneous = _Ends(EndLevels(level, level), n_arms)
        self._single = self._simultaneous if single is None else _Ends(single, n_arms)
        self._all_ends = (self._simultaneous,) if single is None else (self._simultaneous, self._single)
        best_for = self._single.levels
        low, high = (
            Wealth(n_arms, n_examples, each, self._grid) for each in (best_for.lower, best_for.upper)
        )
        self._too_low: Bets = low
        self._too_high: Bets = high
        self._shared = (low, high)  # capital in which arms with equal observations share one state
        self._told = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._low_sums = np.zeros(n_arms)  # (K,) sums of the scores, unscored as 0
        self._high_sums = np.zeros(n_arms)  # (K,) sums of the scores, unscored as 1
        self._scored = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._draws = np.zeros(n_arms, dtype=np.int64)  # (K,) scored draws
        self._draw_sums = np.zeros(n_arms)  # (K,) sums of their scores, less the controls
        # (K,) number of the history; equal for arms with the same observations if all are draws
        self._history = np.zeros(n_arms, dtype=np.int64)
        self._n_histories = 1
        self._unsettled: list[tuple[IntArray, FloatArray, BoolArray]] = []

    def update(self, arms: IntArray, scores: FloatArray, is_draw: BoolArray | None = None) -> None:
        """Queue scores in the order of their draws.

        They are processed when the ends are next read.

        Args:
            arms: Shape (B,).
            scores: Shape (B,), in [0, 1], NaN if unscored.
            is_draw: Shape (B,), which scores are uniform draws, on which bets are valid; None if all are
                draws.
        """
        self._unsettled.append((arms, scores, np.ones(len(arms), np.bool_) if is_draw is None else is_draw))

    @property
    def lower(self) -> FloatArray:
        """Lower ends, shape (K,)."""
        self._settle_all()
        return self._means_at(self._simultaneous.first, self._low_sums)

    @property
    def upper(self) -> FloatArray:
        """Upper ends, shape (K,)."""
        self._settle_all()
        return self._means_at(self._simultaneous.last, self._high_sums)

    @property
    def single_lower(self) -> FloatArray:
        """Lower ends that hold individually, not simultaneously, shape (K,)."""
        self._settle_all()
        return self._means_at(self._single.first, self._low_sums)

    @property
    def single_upper(self) -> FloatArray:
        """Upper ends that hold individually, not simultaneously, shape (K,).

        Never below the lower end of the same arm.
        """
        self._settle_all()
        return self._means_at(self._single.last, self._high_sums)

    @property
    def estimates(self) -> FloatArray:
        """Estimates of the means, shape (K,), each inside its interval.

        NaN before an arm's first score.
        """
        self._settle_all()
        means, drawn = np.full(len(self._told), np.nan), np.full(len(self._told), np.nan)
        np.divide(self._low_sums, self._scored, out=means, where=self._scored > 0)
        np.divide(self._draw_sums, self._draws, out=drawn, where=self._draws > 0)
        untold = self._n_examples - self._told
        share = untold / np.maximum(self._scored + untold, 1)
        # In this form, draws without controls give exactly their mean, bit for bit.
        means += np.where(self._draws > 0, share * (drawn - means), 0.0)
        return np.clip(means, self.lower, self.upper)

    def _settle_all(self) -> None:
        for arms, scores, is_draw in self._unsettled:
            for members, places in _by_count(arms):
                is_plain = is_draw[places].all(axis=1)
                if is_plain.any():
                    self._settle_draws(members[is_plain], scores[places[is_plain]])
                for arm, row in zip(members[~is_plain], places[~is_plain], strict=True):
                    self._settle(np.array([arm]), scores[[row]], is_draw[row])
        self._unsettled.clear()

    def _settle_draws(self, arms: IntArray, scores: FloatArray) -> None:
        """Process the same number of draws for each of A arms, shape (A, B).

        Arms with the same scores in the same order are computed once. With many arms and scores of 0 or 1,
        few short histories are unique to one arm.
        """
        told = np.column_stack([self._history[arms], np.ascontiguousarray(scores).view(np.int64)])
        _, firsts, which = np.unique(told, axis=0, return_index=True, return_inverse=True)
        is_draw = np.ones(scores.shape[1], dtype=np.bool_)
        for rows in np.split(firsts, np.arange(MOST_AT_ONCE, len(firsts), MOST_AT_ONCE)):
            self._settle(arms[rows], scores[rows], is_draw)
        if len(firsts) < len(arms):
            models = arms[firsts][which.ravel()]
            self._take_over(arms[arms != models], models[arms != models])

    def _take_over(self, arms: IntArray, models: IntArray) -> None:
        """Copy the state of each arm in `models` to the same place in `arms`.

        Both have shape (A,); the two arms of a place have the same observations.
        """
        ends = [each for of in self._all_ends for each in (of.first, of.last)]
        sums = (self._low_sums, self._high_sums, self._draw_sums)
        for each in (self._history, self._told, self._scored, self._draws, *sums, *ends):
            each[arms] = each[models]
        for wealth in self._shared:
            wealth.take_over(arms, models)

    def _means_at(self, points: IntArray, sums: FloatArray) -> FloatArray:
        # Each unobserved score is between 0 and 1: this is certain, so it is applied last.
        untold = self._n_examples - self._told
        return np.clip(self._grid[points], sums / self._n_examples, (sums + untold) / self._n_examples)

    def _settle(self, arms: IntArray, scores: FloatArray, is_draw: BoolArray) -> None:
        """Process the same number of scores for each of A arms.

        Args:
            arms: Shape (A,).
            scores: Shape (A, B), NaN if unscored.
            is_draw: Shape (B,), which scores are draws.
        """
        low, high = np.nan_to_num(scores, nan=0.0), np.nan_to_num(scores, nan=1.0)
        is_scored = ~np.isnan(scores)
        counted = is_draw & is_scored
        self._history[arms] = self._n_histories + np.arange(len(arms))
        self._n_histories += len(arms)
        self._told[arms] += scores.shape[1]
        self._low_sums[arms] += low.cumsum(axis=1)[:, -1]
        self._high_sums[arms] += high.cumsum(axis=1)[:, -1]
        self._scored[arms] += np.count_nonzero(is_scored, axis=1)
        self._draws[arms] += np.count_nonzero(counted, axis=1)
        self._draw_sums[arms] += np.where(counted, low, 0.0).cumsum(axis=1)[:, -1]
        # A mean refuted by the intervals is refuted by the single ends too: its capital is not needed.
        window = _span(*self._simultaneous.inside(arms))
        self._too_low.bet(arms, low, window, is_draw)
        capital = self._too_low.capital(arms, window)
        for ends in self._all_ends:
            ends.first[arms] += _refuted(capital, window, *ends.inside(arms), ends.levels.lower)
        # The mean m is too high if 1 - m is too low for the scores 1 - x; the grid is symmetric.
        window = _span(*self._simultaneous.mirrored(arms))
        self._too_high.bet(arms, 1.0 - high, window, is_draw)
        capital = self._too_high.capital(arms, window)
        for ends in self._all_ends:
            ends.last[arms] -= _refuted(capital, window, *ends.mirrored(arms), ends.levels.upper)


class _Ends:
    """Grid points at the ends of all intervals, and the levels of the ends."""

    def __init__(self, levels: EndLevels, n_arms: int) -> None:
        self.levels = levels
        self.first = np.zeros(n_arms, dtype=np.int64)  # (K,) at the lower end
        self.last = np.full(n_arms, GRID_POINTS - 1)  # (K,) at the upper end

    def inside(self, arms: IntArray) -> tuple[IntArray, IntArray]:
        """Window of grid points between the ends of each of A arms.

        Returns:
            First point and one past the last, shape (A,) each.
        """
        return self.first[arms] + 1, self.last[arms]

    def mirrored(self, arms: IntArray) -> tuple[IntArray, IntArray]:
        """Same as `inside`, on the reversed grid."""
        end = GRID_POINTS - 1
        return end - self.last[arms] + 1, end - self.first[arms]


def _by_count(arms: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Group arms with the same number of scores.

    Yields:
        The arms, shape (A,), and the indices of their scores in order, shape (A, B).
    """
    order = np.argsort(arms, kind="stable")
    members, starts, counts = np.unique(arms[order], return_index=True, return_counts=True)
    for count in np.unique(counts):
        mine = counts == count
        yield members[mine], order[starts[mine, np.newaxis] + np.arange(count)]


def _span(starts: IntArray, ends: IntArray) -> slice:
    """Smallest slice of grid points that contains the windows of all arms."""
    return slice(int(starts.min()), max(int(starts.min()), int(ends.max())))


def _refuted(capital: FloatArray, window: slice, starts: IntArray, ends: IntArray, level: float) -> IntArray:
    """Number of grid points that each of A arms refutes in its own window, shape (A,).

    A point is refuted if the capital is at least 1 / level. The probability that the arm's mean is ever
    refuted is at most `level`.

    Args:
        capital: Shape (A, G), at the points of `window`.
        window: Slice that contains the windows of all arms.
        starts: Shape (A,), start of each arm's window.
        ends: Shape (A,), end of each arm's window, exclusive.
        level: In (0, 1).
    """
    points = np.arange(window.start, window.stop)
    is_inside = (points >= starts[:, np.newaxis]) & (points < ends[:, np.newaxis])
    return np.asarray(np.count_nonzero(is_inside & (capital >= 1.0 / level), axis=1))

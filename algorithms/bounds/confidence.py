"""Time-uniform confidence intervals for the means of finite populations sampled without replacement.

Letters as in Waudby-Smith & Ramdas: N examples per arm, t of them told so far, x_t the score told t-th,
S_t = x_1 + ... + x_t, m a candidate for the arm's mean; K arms, G grid points, J bet sizes, B scores at once.

If the mean is m, the examples not told before the t-th have mean mu_t(m) = (N m - S_{t-1}) / (N - t + 1). So
the capital prod_{s <= t} (1 + lambda_s (x_s - mu_s(m))) is a non-negative martingale that starts at 1
whenever lambda_s depends on the past only and lies in [0, 1 / mu_s(m)]; by Ville's inequality it ever reaches
1 / alpha with probability at most alpha. A mean under which it does is refuted as too low.

That needs x_t to be a uniform draw from what was untold. A score that was chosen in any other way, by the
scores before it or by predictions, is a bet of 0: it only becomes known, which moves t and S. The draws after
it are uniform on what it left, and mu_t(m) is the mean of that.

Sources: Waudby-Smith & Ramdas (2020), "Confidence sequences for sampling without replacement", NeurIPS;
Waudby-Smith & Ramdas (2024), "Estimating means of bounded random variables by betting", JRSS B 86(1).
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

MOST_STAKED = 0.75  # share of the capital that one draw may cost; below 1, so that capital stays positive
LEAST_MEAN = 1e-12  # a smaller mu caps no bet: no draw below it is left to lose on
MOST_GAINED = 1e300  # in one batch; finite, since infinity times a capital that underflowed is undefined
FIRST_HORIZON, HORIZON_RATIO = 16.0, 4.0  # the bet best for T draws is nearly so from T / 4 to 4 T
GRID_POINTS = 1025


@dataclass(frozen=True, slots=True)
class Control:
    """What is taken off scores before they are bet on: fixed by the past, of mean 0 over what is untold."""

    values: FloatArray
    """Shape (B,)."""
    most: FloatArray
    """Shape (B,), a bound of the controls of all examples untold before each draw, non-negative."""


@dataclass(frozen=True, slots=True)
class EndLevels:
    """The probability with which a single end may ever fail to hold, for each kind of end, in (0, 1)."""

    lower: float
    upper: float


class Bets(Protocol):
    """What intervals ask of a capital."""

    def bet(self, arm: int, scores: FloatArray, window: slice, is_draw: BoolArray | None = None) -> None:
        """Absorb an arm's scores, and bet on the draws at the grid points of a window."""
        ...

    def refuted(self, arm: int, window: slice, level: float) -> int:
        """How many grid points of a window, its first ones, have a capital of at least 1 / level."""
        ...


class FinitePopulationIntervals:
    """Intervals that hold for all arms, at all times, with probability at least 1 - alpha.

    P(lower_i <= mean_i <= upper_i for every arm i after every update) >= 1 - alpha: at every round at once,
    hence at any stopping time, whatever the scores in [0, 1]. It is assumed that every example that counts as
    a draw is drawn uniformly from those of its arm not told before; that scores come in the order of the
    draws, or, if all are draws, in an order chosen without looking at them; and that no score depends on
    when it is asked for. Which arm is drawn from next, and which examples are chosen instead of drawn, may
    depend on all that was told.

    Every arm has alpha / K, half of it for either end (union bounds). An unscored pair may be worth anything
    in [0, 1]: the lower end counts it as 0 and the upper end as 1, so that the interval holds for every
    completion, and has width 0 only once every example of the arm is scored.

    The estimates are made of what the intervals are made of: the sum of the scores, and for each example not
    told the mean of what was bet on, divided by the number of examples but for the unscored ones, and clipped
    into the intervals. Where all scores are draws that is their plain mean. Where some were chosen, draws and
    not the chosen scores speak for what is left, as well as it is still like what they were drawn from.
    Unscored pairs are left out, as if they were missing at random: the intervals do not rely on that.

    Single ends are read off the same capital beside those: each holds at all times with the probability that
    its level leaves, and no two of them together with more than a union bound gives.

    Args:
        n_arms: K.
        n_examples: N.
        alpha: In (0, 1).
        single: The levels of the single ends, at which bets are then the best ones; None for ends that are
            those of the intervals.
    """

    def __init__(
        self, n_arms: int, n_examples: int, alpha: float, *, single: EndLevels | None = None
    ) -> None:
        if not 0.0 < alpha < 1.0:
            raise InvalidParameter("alpha", alpha, "in (0, 1)")
        self._n_examples = n_examples
        # Equidistant in arcsin(sqrt(m)): cells are narrow where scores of that mean vary little.
        self._grid = (1.0 - np.cos(np.linspace(0.0, np.pi, GRID_POINTS))) / 2.0  # (G,)
        level = alpha / (2.0 * n_arms)
        self._simultaneous = _Ends(EndLevels(level, level), n_arms)
        self._single = self._simultaneous if single is None else _Ends(single, n_arms)
        self._all_ends = (self._simultaneous,) if single is None else (self._simultaneous, self._single)
        best_for = self._single.levels
        self._too_low: Bets = Wealth(n_arms, n_examples, best_for.lower, self._grid)
        self._too_high: Bets = Wealth(n_arms, n_examples, best_for.upper, self._grid)
        self._told = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._low_sums = np.zeros(n_arms)  # (K,) sums of the scores, unscored as 0
        self._high_sums = np.zeros(n_arms)  # (K,) sums of the scores, unscored as 1
        self._scored = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._draws = np.zeros(n_arms, dtype=np.int64)  # (K,) scored ones
        self._draw_sums = np.zeros(n_arms)  # (K,) of their scores, less the controls
        self._unsettled: list[tuple[IntArray, FloatArray, BoolArray]] = []

    def update(self, arms: IntArray, scores: FloatArray, is_draw: BoolArray | None = None) -> None:
        """Absorb scores in the order of their draws; the work is done when the ends are next read.

        Args:
            arms: Shape (B,).
            scores: Shape (B,), in [0, 1], NaN where unscored.
            is_draw: Shape (B,), which scores are uniform draws and may be bet on; None when all are.
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
        """Lower ends that hold one by one, shape (K,)."""
        self._settle_all()
        return self._means_at(self._single.first, self._low_sums)

    @property
    def single_upper(self) -> FloatArray:
        """Upper ends that hold one by one, shape (K,), never below the lower one of the same arm."""
        self._settle_all()
        return self._means_at(self._single.last, self._high_sums)

    @property
    def estimates(self) -> FloatArray:
        """Estimates of the means, shape (K,), each inside its interval; NaN before an arm's first score."""
        self._settle_all()
        means, drawn = np.full(len(self._told), np.nan), np.full(len(self._told), np.nan)
        np.divide(self._low_sums, self._scored, out=means, where=self._scored > 0)
        np.divide(self._draw_sums, self._draws, out=drawn, where=self._draws > 0)
        untold = self._n_examples - self._told
        share = untold / np.maximum(self._scored + untold, 1)
        # Written so that draws without controls give the very bits of their mean.
        means += np.where(self._draws > 0, share * (drawn - means), 0.0)
        return np.clip(means, self.lower, self.upper)

    def _settle_all(self) -> None:
        for arms, scores, is_draw in self._unsettled:
            for arm in np.unique(arms):
                mine = arms == arm
                self._settle(arm, scores[mine], is_draw[mine])
        self._unsettled.clear()

    def _means_at(self, points: IntArray, sums: FloatArray) -> FloatArray:
        # What is left to tell is worth at least 0 and at most 1 each: certain, so it has the last word.
        untold = self._n_examples - self._told
        return np.clip(self._grid[points], sums / self._n_examples, (sums + untold) / self._n_examples)

    def _settle(self, arm: int, scores: FloatArray, is_draw: BoolArray) -> None:
        low, high = np.nan_to_num(scores, nan=0.0), np.nan_to_num(scores, nan=1.0)
        counted = is_draw & ~np.isnan(scores)
        self._told[arm] += len(scores)
        self._low_sums[arm] += low.cumsum()[-1]
        self._high_sums[arm] += high.cumsum()[-1]
        self._scored[arm] += np.count_nonzero(~np.isnan(scores))
        self._draws[arm] += np.count_nonzero(counted)
        self._draw_sums[arm] += np.where(counted, low, 0.0).cumsum()[-1]
        # What the intervals refute the single ends refute too: no capital is needed there any more.
        self._too_low.bet(arm, low, self._simultaneous.above_first(arm), is_draw)
        for ends in self._all_ends:
            ends.first[arm] += self._too_low.refuted(arm, ends.above_first(arm), ends.levels.lower)
        # A mean is too high where one minus it is too low, and the grid is its own mirror image.
        self._too_high.bet(arm, 1.0 - high, self._simultaneous.below_last(arm), is_draw)
        for ends in self._all_ends:
            ends.last[arm] -= self._too_high.refuted(arm, ends.below_last(arm), ends.levels.upper)


class _Ends:
    """The grid points at which the ends of all arms are, each end at a level."""

    def __init__(self, levels: EndLevels, n_arms: int) -> None:
        self.levels = levels
        self.first = np.zeros(n_arms, dtype=np.int64)  # (K,) at the lower end
        self.last = np.full(n_arms, GRID_POINTS - 1)  # (K,) at the upper end

    def above_first(self, arm: int) -> slice:
        """The grid points between an arm's ends."""
        return slice(int(self.first[arm]) + 1, int(self.last[arm]))

    def below_last(self, arm: int) -> slice:
        """The same on the mirrored grid."""
        end = GRID_POINTS - 1
        return slice(end - int(self.last[arm]) + 1, end - int(self.first[arm]))


class Wealth:
    """The capital of bets, one per arm and grid point m, that the arm's mean is higher than m.

    It is the average over J bet sizes sqrt(2 log(1/level) / (T v_t)), each the best for its own number of
    draws T, with v_t the variance of the scores before t; capped at c / mu_t(m), c = MOST_STAKED. Where the
    cap binds, a factor is 1 + c x / mu - c, elsewhere 1 + lambda x - lambda mu: neither increases in mu. So
    capital does not increase in m: a grid point refuted refutes all below it, and an end put on that point
    is rounded outward. Capital is kept up only where it is asked for, as refuted points need none.
    """

    def __init__(self, n_arms: int, n_examples: int, level: float, grid: FloatArray) -> None:
        """Start with a capital of 1; `level` is the one for which the bets are best."""
        n_sizes = 1 + max(0, int(np.log(n_examples / FIRST_HORIZON) / np.log(HORIZON_RATIO)))
        horizons = FIRST_HORIZON * HORIZON_RATIO ** np.arange(n_sizes)
        self._scales = np.sqrt(2.0 * np.log(1.0 / level) / horizons)[:, np.newaxis]  # (J, 1)
        self._n_examples = n_examples
        self._totals = n_examples * grid  # (G,) N m
        self._capital = np.ones((n_arms, n_sizes, grid.size))  # (K, J, G)
        self._told = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._sums = np.zeros(n_arms)  # (K,) S_t
        self._value_sums = np.zeros(n_arms)  # (K,) of what was bet on: S_t less the controls
        self._squares = np.zeros(n_arms)  # (K,) squared deviations of that from its running means

    def capital(self, arm: int, window: slice = slice(None)) -> FloatArray:
        """The capital of an arm, shape (G,), at the grid points of a window."""
        with np.errstate(over="ignore"):  # infinite capital refutes as well as any
            average: FloatArray = self._capital[arm, :, window].mean(axis=0)
        return average

    def refuted(self, arm: int, window: slice, level: float) -> int:
        """How many points of a window, its first ones, are refuted: at least 1 / level is their capital.

        The probability that this is ever so of the arm's mean is at most `level`.
        """
        return int(np.count_nonzero(self.capital(arm, window) >= 1.0 / level))

    def bet(
        self,
        arm: int,
        scores: FloatArray,
        window: slice,
        is_draw: BoolArray | None = None,
        control: Control | None = None,
    ) -> None:
        """Absorb the next scores of an arm, shape (B,), and bet on the draws at the grid points of a window.

        With a control, scores less their controls are bet on, and 1 / (mu + most) caps the bets.
        """
        told = self._told[arm] + np.arange(len(scores))  # (B,) t - 1
        sums = self._sums[arm] + _before(scores)  # (B,) S_{t-1}
        # Half a draw of 1/2, and a variance of 1/4, stand in for the draws not yet made.
        values = scores if control is None else scores - control.values  # (B,) what is bet on
        most = np.zeros(len(scores)) if control is None else control.most
        before = self._value_sums[arm] + _before(values)  # (B,)
        means = (0.5 + before + values) / (told + 2)
        squares = (values - means) ** 2
        deviations = np.sqrt((0.25 + self._squares[arm] + _before(squares)) / (told + 1))  # (B,) without x_t
        self._told[arm] += len(scores)
        self._sums[arm] = sums[-1] + scores[-1]
        self._value_sums[arm] = before[-1] + values[-1]
        self._squares[arm] += squares.sum()
        if is_draw is not None:
            told, sums, values, most, deviations = (
                a[is_draw] for a in (told, sums, values, most, deviations)
            )
        left = (self._totals[window] - sums[:, np.newaxis]) / (self._n_examples - told)[
            :, np.newaxis
        ]  # (B, G)
        caps = MOST_STAKED / np.maximum(left + most[:, np.newaxis], LEAST_MEAN)
        factors = np.minimum((self._scales / deviations)[:, :, np.newaxis], caps)  # (J, B, G)
        factors *= values[:, np.newaxis] - left
        factors += 1.0
        capital = self._capital[arm, :, window]  # (J, G), a view
        with np.errstate(over="ignore"):
            capital *= np.minimum(np.multiply.reduce(factors, axis=1), MOST_GAINED)


def _before(values: FloatArray) -> FloatArray:
    """Sums of the values before each one, shape (B,)."""
    return np.concatenate(([0.0], values[:-1].cumsum()))

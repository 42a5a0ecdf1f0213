"""Time-uniform intervals that predicted scores make narrower.

They are valid for any predictions. Letters as in `confidence_sequences`, and: s are the predicted scores,
sbar_t is the mean of s over the examples unobserved before the t-th, w_t a weight in [0, 1], and c_t = w_t
(s_t - sbar_t) the control of a draw.

The draw is uniform, so c_t has mean 0 given the past, and y_t = x_t - c_t has the same mean mu_t(m) as x_t.
The capital of bets on y instead of x is therefore a martingale too, as long as weights and predictions are
fixed by the past. y is never below -a_t, where a_t is the largest control among the unobserved examples, so a
bet in [0, 1 / (mu_t(m) + a_t)] keeps the capital non-negative. If the predictions are good, y varies less
than x, and the capital against a wrong mean grows faster.

Half of the capital is bet on y and half on x. An average of martingales is a martingale, and never less than
half of either: useless predictions cost a factor of 2 in capital, which a few more draws recover. Splitting
alpha between two intervals and intersecting them would cost as much, and gain less if both bets do well.

Sources: Waudby-Smith & Ramdas (2020), "Confidence sequences for sampling without replacement", NeurIPS, for
the betting; Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via Low-Rank
Factorization", Lemma 2, for the best weight, Cov(x, s) / Var(s).
"""

from collections import deque
from dataclasses import dataclass

import numpy as np

from winnow.algorithms.bounds.confidence_sequences import EndLevels, FinitePopulationIntervals
from winnow.algorithms.bounds.wealth import Control, Wealth
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

ROUNDING = 1e-9  # tolerance of sbar, from sums kept over many draws; it keeps the capital non-negative
PRIOR_SQUARES, PRIOR_WEIGHT = 0.25, 0.5  # prior of the weight: 0.5, as strong as a few draws


@dataclass(frozen=True, slots=True)
class PredictedDraws:
    """Predictions for the next draws of an arm, made before their scores are known."""

    values: FloatArray
    """s, shape (B,), in [0, 1], in the order of the draws."""
    means: FloatArray
    """sbar, shape (B,): mean prediction over the examples unobserved before each draw."""
    least: float
    """Lower bound of the predictions over all unobserved examples."""
    most: float
    """Upper bound of the predictions over all unobserved examples."""

    def mirrored(self) -> "PredictedDraws":
        """Predictions of 1 minus the scores."""
        return PredictedDraws(1.0 - self.values, 1.0 - self.means, 1.0 - self.most, 1.0 - self.least)


class PredictionPoweredIntervals(FinitePopulationIntervals):
    """Intervals that use predicted scores.

    They are valid for all arms and times, like those of the base class. They hold with probability at least 1
    - alpha, under the assumptions of `FinitePopulationIntervals` and one more: predictions are announced
    before their scores and depend only on earlier observations. An unscored pair counts as 0 for the lower
    end and as 1 for the upper end.

    The estimates are difference estimates with the same controls: c_t has mean 0 given the past, so a score
    minus its control has the mean of the score, and no predictions can add bias. The weights are those of the
    lower ends.
    """

    def __init__(
        self, n_arms: int, n_examples: int, alpha: float, *, single: EndLevels | None = None
    ) -> None:
        super().__init__(n_arms, n_examples, alpha, single=single)
        best_for = self._single.levels
        self._powered_low = PoweredWealth(n_arms, n_examples, best_for.lower, self._grid)
        self._powered_high = PoweredWealth(n_arms, n_examples, best_for.upper, self._grid)
        self._too_low, self._too_high = self._powered_low, self._powered_high
        self._announced: dict[int, PredictedDraws] = {}
        self._predicted: list[deque[PredictedDraws | None]] = [deque() for _ in range(n_arms)]

    def announce(self, arm: int, predicted: PredictedDraws) -> None:
        """Announce predictions for an arm's draws in the next update.

        Without them, bets use scores alone.
        """
        self._announced[arm] = predicted

    def update(self, arms: IntArray, scores: FloatArray, is_draw: BoolArray | None = None) -> None:
        """Queue scores in the order of their draws.

        They are processed when the ends are next read.

        Args:
            arms: Shape (B,).
            scores: Shape (B,), in [0, 1], NaN if unscored.
            is_draw: Shape (B,), which scores are uniform draws, on which bets are valid; None if all are
                draws.
        """
        for arm in np.unique(arms):
            self._predicted[arm].append(self._announced.pop(int(arm), None))
        super().update(arms, scores, is_draw)

    def _settle_draws(self, arms: IntArray, scores: FloatArray) -> None:
        self._settle(arms, scores, np.ones(scores.shape[1], dtype=np.bool_))

    def _settle(self, arms: IntArray, scores: FloatArray, is_draw: BoolArray) -> None:
        for row, arm in enumerate(arms.tolist()):  # predictions are announced for one arm at a time
            predicted = self._predicted[arm].popleft()
            if predicted is not None:
                controls = self._powered_low.weight(arm) * (predicted.values - predicted.means)
                self._draw_sums[arm] -= controls[is_draw & ~np.isnan(scores[row])].sum()
            self._powered_low.announced = predicted
            self._powered_high.announced = None if predicted is None else predicted.mirrored()
            super()._settle(arms[row : row + 1], scores[row : row + 1], is_draw)


class PoweredWealth:
    """Capital of bets that an arm's mean exceeds m.

    Half of it is bet on scores minus a control. As in `Wealth`, the capital does not increase in m. y_t + a_t
    is never negative, so 1 + lambda (y - mu) does not increase in mu; if the cap binds, neither does 1 - c +
    c (y + a) / (mu + a).
    """

    def __init__(self, n_arms: int, n_examples: int, level: float, grid: FloatArray) -> None:
        self._plain = Wealth(n_arms, n_examples, level, grid)
        self._powered = Wealth(n_arms, n_examples, level, grid)
        self._told = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._sums = np.zeros(n_arms)  # (K,) of scores
        self._squares = np.full(n_arms, PRIOR_SQUARES)  # (K,) of s - sbar
        self._products = np.full(n_arms, PRIOR_SQUARES * PRIOR_WEIGHT)  # (K,) of s - sbar with x - its mean
        self.announced: PredictedDraws | None = None

    def capital(self, arms: int | IntArray, window: slice = slice(None)) -> FloatArray:
        """Capital at the grid points of a window.

        Shape (G,) for one arm, (A, G) for A arms.
        """
        with np.errstate(over="ignore"):
            return 0.5 * self._plain.capital(arms, window) + 0.5 * self._powered.capital(arms, window)

    def weight(self, arm: int) -> float:
        """Weight of an arm's next controls, in [0, 1].

        Cov(x, s) / Var(s) over the observations.
        """
        return float(min(1.0, max(0.0, self._products[arm] / self._squares[arm])))

    def bet(
        self, arms: int | IntArray, scores: FloatArray, window: slice, is_draw: BoolArray | None = None
    ) -> None:
        """Observe the next scores of one arm, and bet on the draws among them.

        Bets are made at the grid points of `window`. The call uses the announced predictions and clears them.

        Args:
            arms: The arm, or shape (1,).
            scores: Shape (B,) or (1, B).
            window: Slice of the grid points to bet at.
            is_draw: Shape (B,), which scores are draws; None if all are draws.
        """
        arm, scores = np.asarray(arms).item(), scores.ravel()
        predicted, self.announced = self.announced, None
        self._plain.bet(arm, scores, window, is_draw)
        if predicted is None:
            self._powered.bet(arm, scores, window, is_draw)
        else:
            weight = self.weight(arm)
            surprises = predicted.values - predicted.means
            most = weight * np.maximum(predicted.most - predicted.means, 0.0) + ROUNDING
            self._powered.bet(arm, scores, window, is_draw, Control(weight * surprises, most))
            mean = (0.5 + self._sums[arm]) / (1 + self._told[arm])
            self._squares[arm] += surprises @ surprises
            self._products[arm] += surprises @ (scores - mean)
        self._told[arm] += len(scores)
        self._sums[arm] += scores.sum()

"""When a best-mean selector stops, what it then says, and how much it may ask until then."""

import numpy as np

from algorithms.arrays import BoolArray, FloatArray
from algorithms.best_mean.score_matrix import ScoreMatrix
from algorithms.best_mean.setting import Setting
from algorithms.confidence import FinitePopulationIntervals
from algorithms.decision import EXACT, HEURISTIC, NOTHING_CLAIMED, Claim, Decision, Reason, statuses
from algorithms.protocols import Batch

INTERVAL_DELTA = 0.05  # for the intervals of a campaign that does not stop by them


def interval_alpha(setting: Setting) -> float:
    """The error probability of a campaign's intervals."""
    return INTERVAL_DELTA if setting.delta is None else setting.delta


class Stopping:
    """The stopping rule over a score matrix.

    With `delta`, it stops as separated when the best arm's lower end reaches every other active arm's upper
    end minus `epsilon`. The probability that it ever does so while the mean of the best arm is more than
    `epsilon` below the highest mean of the arms not set aside is at most `delta`, under the assumptions of
    `FinitePopulationIntervals`. Arms set aside are neither best nor waited for.
    """

    def __init__(
        self, setting: Setting, matrix: ScoreMatrix, intervals: FinitePopulationIntervals | None = None
    ) -> None:
        self._setting = setting
        self._matrix = matrix
        self._intervals = intervals
        if setting.intervals and intervals is None:
            self._intervals = FinitePopulationIntervals(
                setting.n_arms, setting.n_examples, interval_alpha(setting)
            )

    def tell(self, batch: Batch, scores: FloatArray, is_draw: BoolArray | None = None) -> None:
        """Follow the matrix, which has accepted these scores.

        Args:
            batch: The pairs, B of them.
            scores: Shape (B,), in [0, 1], NaN where unscored.
            is_draw: Shape (B,), which examples were drawn uniformly from their arm's untold ones and not
                chosen; None when all were.
        """
        if self._intervals is not None:
            self._intervals.update(batch.arms, scores, is_draw)

    def room(self, estimates: FloatArray, wanted: int) -> int:
        """How many of the pairs wanted may be asked, given the estimates of `decision`; 0 when stopped."""
        if self._reason(estimates) != "running":
            return 0
        if self._setting.budget is None:
            return wanted
        spent = int(self._matrix.told.sum() + self._matrix.pending.sum())
        return min(wanted, max(0, self._setting.budget - spent))

    def decision(self, estimates: FloatArray) -> Decision:
        """The decision when arms are ranked by these estimates, shape (K,), NaN where unknown."""
        reason = self._reason(estimates)
        unknown = np.full(self._setting.n_arms, np.nan)
        return Decision(
            best=self._best(estimates),
            estimates=estimates.copy(),
            lower=unknown if self._intervals is None else self._intervals.lower,
            upper=unknown if self._intervals is None else self._intervals.upper,
            status=statuses(self._setting.n_arms, [("dropped", ~self._matrix.active)]),
            stop=reason != "running",
            reason=reason,
            claim=self._claim(reason),
        )

    def _claim(self, reason: Reason) -> Claim:
        if reason == "confident":
            return Claim(kind="proven", delta=self._setting.delta)
        if reason == "exhausted":
            return EXACT
        return HEURISTIC if reason == "budget" and self._setting.delta is None else NOTHING_CLAIMED

    def _reason(self, estimates: FloatArray) -> Reason:
        matrix, budget = self._matrix, self._setting.budget
        if not matrix.active.any():
            return "all-dropped"
        if self._setting.delta is not None and self._is_separated(self._best(estimates)):
            return "confident"
        if (matrix.told[matrix.active] == matrix.n_examples).all():
            return "exhausted"
        if budget is not None and matrix.told.sum() >= budget:
            return "budget"
        return "running"

    def _best(self, estimates: FloatArray) -> int | None:
        eligible = np.where(self._matrix.active & ~np.isnan(estimates), estimates, -np.inf)
        best = int(eligible.argmax())
        return best if eligible[best] > -np.inf else None

    def _is_separated(self, best: int | None) -> bool:
        if best is None or self._intervals is None:
            return False
        rivals = self._matrix.active.copy()
        rivals[best] = False
        highest = self._intervals.upper.max(initial=-np.inf, where=rivals)
        return bool(self._intervals.lower[best] >= highest - self._setting.epsilon)

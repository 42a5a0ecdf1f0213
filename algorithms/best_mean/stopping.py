"""When a best-mean selector stops, what it then says, and how much it may ask until then."""

import numpy as np

from algorithms.arrays import BoolArray, FloatArray
from algorithms.best_mean.consistency import check_possible
from algorithms.best_mean.score_matrix import ScoreMatrix
from algorithms.best_mean.setting import Setting
from algorithms.best_mean.standing import Standing
from algorithms.confidence import FinitePopulationIntervals
from algorithms.decision import EXACT, HEURISTIC, NOTHING_CLAIMED, Claim, Decision, Reason
from algorithms.protocols import Batch

INTERVAL_DELTA = 0.05  # for the intervals of a campaign that does not stop by them


def interval_alpha(setting: Setting) -> float:
    """The error probability of a campaign's intervals."""
    return INTERVAL_DELTA if setting.delta is None else setting.delta


def intervals_of(setting: Setting) -> FinitePopulationIntervals | None:
    """Intervals of all arms, told nothing yet; None where none are wanted."""
    if not setting.intervals:
        return None
    return FinitePopulationIntervals(setting.n_arms, setting.n_examples, interval_alpha(setting))


def standing_of(matrix: ScoreMatrix, lower: FloatArray, upper: FloatArray, epsilon: float) -> Standing:
    """What bounds of the means, shape (K,) each, say of the arms of a score matrix."""
    return Standing.of(
        lower,
        upper,
        scored=matrix.scored > 0,
        fully_scored=matrix.fully_scored,
        active=matrix.active,
        epsilon=epsilon,
    )


class Stopping:
    """The stopping rule over a score matrix, and the decision that follows.

    With `delta` it stops as soon as an arm is good enough: its lower end reaches every other upper end less
    `epsilon`, of the arms that were not dropped. Ends are those of the intervals, or those of the known
    scores alone, an example without a score counting 0 below and 1 above. Only the latter can make a claim
    exact, so one unscored example that could change the answer is enough for it not to be.

    What is claimed is that no arm, of those that were not dropped, has a mean more than `epsilon` above that
    of the best one, and what the statuses say:

    * exact: it follows from the known scores, whatever is not known. The statuses then follow from them too.
    * proven: it follows from the intervals, which all hold at once with probability at least 1 - alpha, alpha
      being `delta`, or 0.05 without one.

    Dropping an arm leaves alpha as it is, however many are dropped and whatever decides that. Proof: the
    intervals are simultaneous over all K arms, those dropped later included, over both ends and all rounds
    (`FinitePopulationIntervals`), so the event that all of them hold does not depend on which arms are
    dropped. On it, with i the arm named and j any other that is left, mean_i >= lower_i >= upper_j - epsilon
    >= mean_j - epsilon. A method that bets against the one true best arm alone would pay for every drop, as
    which arm is the best of the rest is then chosen by the data. Dropped arms are neither named nor compared
    with, and the claim says nothing of them.

    Which arm is named is free among those that are good enough, so it may be the highest ranked one by
    whatever ranking, a biased one too: no claim rests on a ranking. Means that differ by less than 1e-9 count
    as equal.
    """

    def __init__(
        self, setting: Setting, matrix: ScoreMatrix, intervals: FinitePopulationIntervals | None = None
    ) -> None:
        self._setting = setting
        self._matrix = matrix
        self._intervals = intervals_of(setting) if intervals is None else intervals

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

    def room(self, wanted: int) -> int:
        """How many of the pairs wanted may be asked; 0 when stopped."""
        if self._reason() != "running":
            return 0
        if self._setting.budget is None:
            return wanted
        spent = int(self._matrix.told.sum() + self._matrix.pending.sum())
        return min(wanted, max(0, self._setting.budget - spent))

    def decision(self, ranking: FloatArray | None = None) -> Decision:
        """The decision; the arm recommended is the highest ranked one that `Standing.best` allows.

        Args:
            ranking: Shape (K,), what arms are ranked by, NaN where unknown; None for the estimates.

        Raises:
            ImpossibleState: If what is believed contradicts itself.
        """
        reason, intervals, matrix = self._reason(), self._intervals, self._matrix
        certain = self._by_scores()
        standing = certain if certain.good_enough.any() else self._by_intervals()
        unknown = np.full(self._setting.n_arms, np.nan)
        estimates = matrix.means if intervals is None else intervals.estimates
        best = standing.best(estimates if ranking is None else ranking)
        settled = reason not in ("running", "all-dropped") and bool(standing.good_enough.any())
        decision = Decision(
            best=best,
            estimates=estimates,
            lower=unknown if intervals is None else intervals.lower,
            upper=unknown if intervals is None else intervals.upper,
            status=standing.statuses(best, settled=settled),
            stop=reason != "running",
            reason=reason,
            claim=self._claim(standing is certain) if settled else self._without_proof(reason),
            ranking=None if ranking is None else ranking.copy(),
        )
        check_possible(decision, *matrix.possible_means, matrix.fully_scored)
        return decision

    def _reason(self) -> Reason:
        matrix, budget = self._matrix, self._setting.budget
        if not matrix.active.any():
            return "all-dropped"
        if self._setting.delta is not None and self._by_intervals().good_enough.any():
            return "confident"
        if (matrix.told[matrix.active] == matrix.n_examples).all():
            return "exhausted"
        if budget is not None and matrix.told.sum() >= budget:
            return "budget"
        return "running"

    def _claim(self, is_certain: bool) -> Claim:
        return EXACT if is_certain else Claim(kind="proven", delta=interval_alpha(self._setting))

    def _without_proof(self, reason: Reason) -> Claim:
        return HEURISTIC if reason == "budget" and self._setting.delta is None else NOTHING_CLAIMED

    def _by_scores(self) -> Standing:
        return self._standing(*self._matrix.possible_means)

    def _by_intervals(self) -> Standing:
        intervals = self._intervals
        return self._by_scores() if intervals is None else self._standing(intervals.lower, intervals.upper)

    def _standing(self, lower: FloatArray, upper: FloatArray) -> Standing:
        return standing_of(self._matrix, lower, upper, self._setting.epsilon)

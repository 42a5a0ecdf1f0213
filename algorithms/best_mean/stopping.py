"""Stopping rule and decision of best-mean selectors.

The rule also determines which arms and how many pairs they can still propose.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.arm_status import ROUNDING, Standing
from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.consistency import check_possible
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.bounds.confidence_sequences import EndLevels, FinitePopulationIntervals
from winnow.algorithms.claims import EXACT, HEURISTIC, NOTHING_CLAIMED, Claim, Reason
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray

Variant = Literal["mended", "paper"]
"""Rules by which a selector proposes and stops:

* mended: stops by single ends, which avoid a needless union bound. Arms that these rule out are not proposed
  again, and a round holds several small pulls. docs/how-the-intervals-stop.md has the proof.
* paper: as published, with one pull a round; stops by the reported intervals, which hold simultaneously.
"""

INTERVAL_DELTA = 0.05  # for the intervals of a campaign without delta


def interval_alpha(config: BestMeanConfig) -> float:
    """Error probability of a campaign's intervals: `delta`, or 0.05 if it is None."""
    return INTERVAL_DELTA if config.delta is None else config.delta


def single_levels(config: BestMeanConfig, variant: Variant) -> EndLevels | None:
    """Error levels of the one-sided bounds used for stopping.

    None to stop by the intervals' own ends. A wrong answer requires that the lower end of one of K - 1 wrong
    arms fails, or the upper end of the one best arm.
    """
    if variant == "paper":
        return None
    half = interval_alpha(config) / 2.0
    return EndLevels(lower=half / (config.n_arms - 1), upper=half)


def intervals_of(config: BestMeanConfig, single: EndLevels | None = None) -> FinitePopulationIntervals | None:
    """Create intervals of all arms; None if the config has `intervals` off.

    Args:
        config: The problem and the common parameters.
        single: Levels of the single ends; None to use the ends of the intervals.
    """
    if not config.intervals:
        return None
    alpha = interval_alpha(config)
    return FinitePopulationIntervals(config.n_arms, config.n_examples, alpha, single=single)


def standing_of(matrix: ScoreMatrix, lower: FloatArray, upper: FloatArray, epsilon: float) -> Standing:
    """Status of the arms of a score matrix, given bounds of their means.

    Lower and upper bounds have shape (K,) each.
    """
    return Standing.of(
        lower,
        upper,
        scored=matrix.scored > 0,
        fully_scored=matrix.fully_scored,
        active=matrix.active,
        epsilon=epsilon,
    )


class Stopping:
    """Stopping rule over a score matrix, with the decision that follows.

    With `delta` it stops as soon as an arm is good enough: its lower end is at least every other upper end
    minus `epsilon`, among the arms that were not dropped. The ends are those of the intervals, or those of
    the known scores alone, with a missing score counted as 0 for the lower and 1 for the upper end. Only the
    latter can make a claim exact, so one unscored example that could change the answer prevents an exact
    claim.

    The claim is that no arm that was not dropped has a mean more than `epsilon` above that of the best arm,
    and that the statuses hold:

    * exact: the claim and the statuses follow from the known scores, for any values of the others.
    * proven: the claim follows from the ends, except with the probability that the claim states. Let alpha be
      `delta`, or 0.05 if it is None.

    For "mended", the ends are single ends: upper ends at alpha / 2 each, because only that of the one best
    arm matters, and lower ends at alpha / (2 (K - 1)). With m arms dropped, the best of the rest depends on
    the data, and one of m + 1 upper ends matters: the claim states (1 + m / 2) alpha, and nothing is proven
    if that is 1 or more. The reported intervals differ: they hold simultaneously, and no decision uses them.

    For "paper", the ends are those of the reported intervals, and the claim states alpha, whichever arms are
    dropped. If all intervals hold, with i the named arm and j any other remaining arm, mean_i >= lower_i >=
    upper_j - epsilon >= mean_j - epsilon.

    docs/how-the-intervals-stop.md has both proofs. Dropped arms are neither named nor compared with, and the
    claim does not cover them.

    Any good enough arm can be named, so the claim holds for the highest ranked one by any ranking, even a
    biased one. Means that differ by less than 1e-9 count as equal.
    """

    def __init__(
        self,
        config: BestMeanConfig,
        matrix: ScoreMatrix,
        variant: Variant,
        intervals: FinitePopulationIntervals | None = None,
    ) -> None:
        self._config = config
        self._matrix = matrix
        self._is_mended = variant == "mended"
        single = single_levels(config, variant)
        self._intervals = intervals_of(config, single) if intervals is None else intervals

    def tell(self, batch: Batch, scores: FloatArray, is_draw: BoolArray | None = None) -> None:
        """Update the intervals with scores that the matrix has accepted.

        Args:
            batch: B pairs.
            scores: Shape (B,), in [0, 1], NaN if unscored.
            is_draw: Shape (B,), which examples were drawn uniformly from the unobserved ones of their arm
                rather than chosen; None if all were drawn.
        """
        if self._intervals is not None:
            self._intervals.update(batch.arms, scores, is_draw)

    @property
    def in_question(self) -> BoolArray:
        """Arms that can still be proposed, shape (K,).

        These are the arms not dropped and, for "mended" with `delta`, not eliminated.
        """
        active = self._matrix.active
        return active & ~self._by_ends().eliminated if self._is_followed else active

    @property
    def worth_asking(self) -> BoolArray:
        """Arms to propose next, shape (K,): the arms that prevent stopping.

        These are the arm with the highest lower end and the arms whose upper ends it does not reach, if any
        of them has free pairs; otherwise all arms in question.
        """
        in_question = self.in_question
        if not self._is_followed:
            return in_question
        lower, upper = self._ends
        leader = int(np.where(in_question, lower, -np.inf).argmax())
        hinders = in_question & (upper > lower[leader] + self._config.epsilon + ROUNDING)
        hinders[leader] = in_question[leader]
        return hinders if (self._matrix.free_of_arm[hinders] > 0).any() else in_question

    @property
    def _is_followed(self) -> bool:
        """Whether the stopping rule decides which arms are proposed."""
        return self._is_mended and self._config.delta is not None

    def room(self, wanted: int) -> int:
        """Number of the wanted pairs that can be proposed; 0 if stopped."""
        if self._reason() != "running":
            return 0
        if self._config.budget is None:
            return wanted
        spent = int(self._matrix.told.sum() + self._matrix.pending.sum())
        return min(wanted, max(0, self._config.budget - spent))

    def decision(self, ranking: FloatArray | None = None) -> Decision:
        """The current decision.

        Recommends the highest ranked arm that `Standing.best` allows.

        Args:
            ranking: Shape (K,), values to rank the arms by, NaN if unknown; None for the estimates.

        Raises:
            ImpossibleState: If the decision contradicts itself or the scores.
        """
        reason, intervals, matrix = self._reason(), self._intervals, self._matrix
        certain = self._standing(*matrix.possible_means)
        standing = certain if certain.good_enough.any() else self._by_ends()
        unknown = np.full(self._config.n_arms, np.nan)
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
            claim=self._claim(settled, standing is certain, reason),
            ranking=None if ranking is None else ranking.copy(),
        )
        possible = matrix.possible_means
        check_possible(decision, *possible, matrix.fully_scored, by_intervals=not self._is_mended)
        return decision

    def _reason(self) -> Reason:
        matrix, budget = self._matrix, self._config.budget
        if not matrix.active.any():
            return "all-dropped"
        if self._config.delta is not None and self._by_ends().good_enough.any():
            return "confident"
        if (matrix.told[self.in_question] == matrix.n_examples).all():
            return "exhausted"
        if budget is not None and matrix.told.sum() >= budget:
            return "budget"
        return "running"

    def _claim(self, settled: bool, is_certain: bool, reason: Reason) -> Claim:
        if settled:
            return EXACT if is_certain else Claim(kind="proven", delta=self._stated)
        return HEURISTIC if reason == "budget" and self._config.delta is None else NOTHING_CLAIMED

    @property
    def _stated(self) -> float:
        """Upper bound of the probability that a conclusion from the ends is wrong.

        It can exceed 1.
        """
        n_dropped = int(np.count_nonzero(~self._matrix.active)) if self._is_mended else 0
        return (1.0 + n_dropped / 2.0) * interval_alpha(self._config)

    def _by_ends(self) -> Standing:
        return self._standing(*self._ends)

    @property
    def _ends(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends used for stopping, shape (K,) each."""
        if self._intervals is None or self._stated >= 1.0:
            return self._matrix.possible_means
        return self._intervals.single_lower, self._intervals.single_upper

    def _standing(self, lower: FloatArray, upper: FloatArray) -> Standing:
        return standing_of(self._matrix, lower, upper, self._config.epsilon)


class StoppedSelector:
    """Base class of selectors with a score matrix and a stopping rule.

    The constructor of a subclass creates both.
    """

    _matrix: ScoreMatrix
    _stopping: Stopping

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed and pending."""
        self._matrix.ask(batch.arms, batch.examples)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [0, 1], NaN if unscored."""
        self._stopping.tell(batch, self._matrix.tell(batch, outcomes))

    def decision(self) -> Decision:
        """Recommend the highest ranked arm of those that can be the best."""
        return self._stopping.decision(self._ranking())

    def _ranking(self) -> FloatArray | None:
        """Values to rank the arms by, shape (K,); None to rank by the estimates."""
        return None

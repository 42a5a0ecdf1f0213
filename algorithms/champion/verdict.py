"""What the evidence comes to: whether to stop, who is the best, and what may be claimed."""

from typing import Literal

import numpy as np

from algorithms.arrays import BoolArray, FloatArray
from algorithms.best_mean.consistency import check_possible
from algorithms.best_mean.score_matrix import ScoreMatrix
from algorithms.best_mean.setting import Setting
from algorithms.best_mean.standing import ROUNDING
from algorithms.best_mean.stopping import interval_alpha, intervals_of, standing_of
from algorithms.champion.evidence import Evidence
from algorithms.champion.thrift import Thrift
from algorithms.decision import (
    EXACT,
    HEURISTIC,
    NOTHING_CLAIMED,
    ArmStatus,
    Claim,
    Decision,
    Reason,
    statuses,
)
from algorithms.errors import InvalidParameter
from algorithms.protocols import Batch

Dropping = Literal["stated", "reserved"]
"""What an answer states with arms dropped: a higher probability of an error, or the same at a higher cost."""


class Verdict:
    """The stopping rule over the evidence, and the decision that follows.

    With `delta` it stops as soon as an arm is known that no other one, of those not dropped, beats by more
    than `epsilon`: every other arm is out, or told in full and no better. What is claimed of it is

    * exact: it follows from the known scores, an example without one counting 0 for it and 1 for others.
    * proven: it follows from the tests, with the probability of an error that the claim names.

    Intervals are for showing. They hold for all arms at once at a `delta` of their own, and decide nothing.
    """

    def __init__(self, setting: Setting, matrix: ScoreMatrix, dropping: Dropping, additions: int) -> None:
        if additions < 0:
            raise InvalidParameter("additions", additions, "at least 0")
        self._setting = setting
        self._matrix = matrix
        self._dropping = dropping
        self._lists = additions + 1
        self.thrift: Thrift | None = None
        """The search for a cheaper arm that follows, where there is one."""
        self.delta = interval_alpha(setting)
        """The probability of an error that the tests are made at."""
        self._intervals = intervals_of(setting)

    def tell(self, batch: Batch, scores: FloatArray) -> None:
        """Follow the matrix, which has accepted these scores."""
        if self._intervals is not None:
            self._intervals.update(batch.arms, scores)

    def level(self, n_dropped: int) -> float:
        """The wealth at which an arm is out with so many dropped; infinite where nothing can be proven."""
        if self._stated(n_dropped) >= 1.0:
            return np.inf
        shares = (n_dropped + 1) * (n_dropped + 2) if self._dropping == "reserved" else 1
        return shares / self.delta

    def room(self, evidence: Evidence) -> int:
        """How many pairs may be asked; 0 when stopped."""
        if self._reason(evidence) != "running":
            return 0
        matrix = self._matrix
        budget = self._setting.budget
        most = matrix.n_arms * matrix.n_examples if budget is None else budget
        return max(0, most - int(matrix.told.sum() + matrix.pending.sum()))

    def decision(self, evidence: Evidence) -> Decision:
        """The decision.

        Raises:
            ImpossibleState: If what is believed contradicts itself.
        """
        reason, matrix, intervals = self._reason(evidence), self._matrix, self._intervals
        unknown = np.full(matrix.n_arms, np.nan)
        estimates = matrix.means if intervals is None else intervals.estimates
        best, status, claim = self._answer(evidence, reason, estimates)
        decision = Decision(
            best=best,
            estimates=estimates,
            lower=unknown if intervals is None else intervals.lower,
            upper=unknown if intervals is None else intervals.upper,
            status=status,
            stop=reason != "running",
            reason=reason,
            claim=claim,
        )
        check_possible(decision, *matrix.possible_means, matrix.fully_scored, by_intervals=False)
        return decision

    def _reason(self, evidence: Evidence) -> Reason:
        matrix, setting = self._matrix, self._setting
        if not matrix.active.any():
            return "all-dropped"
        is_spent = setting.budget is not None and matrix.told.sum() >= setting.budget
        if self.thrift is not None and self.thrift.goes_on and evidence.is_decided:
            return "budget" if is_spent else "running"
        if setting.delta is not None and evidence.is_decided:
            return "confident"
        in_question = matrix.active if setting.delta is None else evidence.alive
        if (matrix.told[in_question] == matrix.n_examples).all():
            return "exhausted"
        return "budget" if is_spent else "running"

    def _answer(
        self, evidence: Evidence, reason: Reason, estimates: FloatArray
    ) -> tuple[int | None, tuple[ArmStatus, ...], Claim]:
        """The arm to recommend, what is known of each, and what may be claimed."""
        certain = standing_of(self._matrix, *self._matrix.possible_means, self._setting.epsilon)
        has_begun_again = self.thrift is not None and self.thrift.has_begun
        has_ended = reason not in ("running", "all-dropped") or has_begun_again
        if has_ended and certain.good_enough.any() and not has_begun_again:
            best = certain.best(estimates)
            return best, certain.statuses(best, settled=True), EXACT
        if has_ended and evidence.is_decided:
            stated = self._stated(int(np.count_nonzero(~evidence.active)))
            if self._chosen() is not None and self.thrift is not None:
                stated += self.thrift.delta
            claim = Claim(kind="proven", delta=stated)
            best = evidence.champion if evidence.champion is not None else int(evidence.alive.argmax())
            return best, self._proven(evidence, best), claim
        is_out = evidence.is_out | (certain.eliminated & evidence.alive)
        ranked = np.where(evidence.active & ~is_out & ~np.isnan(estimates), estimates, -np.inf)
        best = int(ranked.argmax()) if ranked.max() > -np.inf else None
        # An arm that is out by epsilon alone may be the best one: in question, until something is proven.
        is_beaten = evidence.is_beaten | (certain.eliminated & evidence.alive)
        status = statuses(len(is_out), [("eliminated", is_beaten), ("dropped", ~evidence.active)])
        is_open = reason == "budget" and self._setting.delta is None
        return best, status, HEURISTIC if is_open else NOTHING_CLAIMED

    def _proven(self, evidence: Evidence, best: int) -> tuple[ArmStatus, ...]:
        """The statuses once all arms but the best are out or told in full."""
        matrix = self._matrix
        least, most = matrix.possible_means
        is_best = np.arange(matrix.n_arms) == best
        is_below = evidence.active & (most < least[best] - ROUNDING)
        # Within epsilon of the best would not do: the best is known to within epsilon of the highest only.
        is_equal = evidence.alive & matrix.fully_scored & (least >= least[best] - ROUNDING)
        is_equal &= np.arange(matrix.n_arms) != self._chosen()
        is_tied = is_equal if is_equal[best] and is_equal.sum() > 1 else np.zeros_like(is_equal)
        groups: list[tuple[ArmStatus, BoolArray]] = [
            ("not-better", ~is_best),
            ("eliminated", is_below | evidence.is_beaten),
            ("best", is_best & ~is_tied),
            ("tied", is_tied),
            ("chosen", np.arange(matrix.n_arms) == self._chosen()),
            ("dropped", ~evidence.active),
        ]
        return statuses(matrix.n_arms, groups)

    def _chosen(self) -> int | None:
        return None if self.thrift is None else self.thrift.chosen

    def _stated(self, n_dropped: int) -> float:
        """The probability of an error that an answer states with so many arms dropped; it may be above 1."""
        costs = 1 if self._dropping == "reserved" else n_dropped + 1
        return costs * self._lists * self.delta

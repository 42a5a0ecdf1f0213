"""Verdict on the evidence: stop or not, which arm is best, what is claimed."""

import math
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.arm_status import ROUNDING, Standing
from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.consistency import check_possible
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import interval_alpha, standing_of
from winnow.algorithms.champion.cheaper_arms import Thrift
from winnow.algorithms.champion.control_variates import Band
from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.shown_intervals import Ends, ShownIntervals, by_means, by_race, differences
from winnow.algorithms.champion.spared import Spared
from winnow.algorithms.champion.switch import Mode
from winnow.algorithms.champion.top_m import TopM, below_the_best, known_best
from winnow.algorithms.claims import EXACT, HEURISTIC, NOTHING_CLAIMED, ArmStatus, Claim, Raise, Reason
from winnow.algorithms.decision import Decision, Differences, statuses
from winnow.algorithms.state.arrays import BoolArray, FloatArray, with_more

Dropping = Literal["stated", "reserved"]
"""Cost of dropped arms.
"stated": a higher stated error probability. "reserved": the same one with more comparisons."""
Additions = Literal["stated", "expected"]
"""What arms added after observations cost: see `Dropping`."""


Ties = Literal["resolve", "open"]
"""What to do with arms that can at most equal the best arm's mean.
"resolve" observes them until this is known, "open" leaves them open."""


class Verdict:
    """Stopping rule over the evidence, with the decision that follows.

    With `delta` it stops as soon as an arm is known that no other arm that was not dropped beats by more than
    `epsilon`. That is: every other arm is eliminated, or fully observed and no better. If ties are open, it
    also suffices that another arm is no better for any values of the unobserved pairs. The claim about it is

    * exact: it follows from the known scores, with a missing score counted as 0 for it and as 1 for others.
    * proven: it follows from the tests, with the error probability that the claim states.

    With constraints the same holds among the arms that meet them: the named arm certainly does. If all arms
    are eliminated, the claim is that no arm meets them, and no arm is named.

    With m arms dropped and J lists of arms added, the best arm of the rest is among the first m + 1 arms of
    its list, whichever list that is, with each list ordered from best to worst. These arms are fixed before
    any of them is drawn from. The wealth of each of them that is at least as good as all remaining arms
    starts at 1 with its list, and ever reaches x with probability at most 1/x. So at a level of 1/delta the
    answer is wrong with probability at most (m + 1)(J + 1) delta. This bound is sharp: adding weak arms where
    the second arm of a list is eliminated, and dropping the first, and adding strong ones elsewhere, gives (m
    + 1) delta for every list.

    Levels that are (m + 1)(m + 2) times higher remove the factor m + 1, because 1/2 + 1/6 + ... is 1 and the
    arm in place k of its list matters only once k - 1 are dropped. Levels that are (j + 1)(j + 2) times
    higher for the arms of list j remove the factor J + 1. If J itself depends on the outcomes, (J + 1) delta
    holds on average: list j exists only if it was added before its arms were drawn from, so its best arm is
    eliminated and J >= j with probability at most delta P(J >= j), and the sum over j is delta E(J + 1). With
    higher levels for later lists, delta holds for any rule that determines J.

    Intervals of means and of differences are for reports, and no decision uses them. They hold
    simultaneously, with a separate `delta` for every list of arms, or `delta` in total if additions are
    "expected"; docs/how-differences-are-bounded.md has the proof.
    """

    def __init__(
        self,
        config: BestMeanConfig,
        matrix: ScoreMatrix,
        mode: Mode,
        dropping: Dropping,
        additions: Additions,
        top_m: int,
        thrift: Thrift | None,
        ties: Ties,
        spared: Spared | None = None,
    ) -> None:
        self._config = config
        self._ties = ties
        self._matrix = matrix
        self._dropping, self._additions = dropping, additions
        self._list_of = np.zeros(config.n_arms, dtype=np.int64)  # (K,) index of each arm's list
        self._thrift = thrift
        self.delta = interval_alpha(config)
        """Error probability of the tests."""
        self._mode, self._top_m = mode, top_m
        # error share of intervals of means, and of those of pairs
        self._share = self.delta / (1 + self._has_pairs)
        self._intervals: ShownIntervals | None = None
        self._spared = spared
        if config.intervals and spared is None:
            self._intervals = ShownIntervals(matrix.groups, self._alpha_of)
            self._intervals.add_arms(config.n_arms)

    @property
    def n_additions(self) -> int:
        """Number J of additions of arms."""
        return int(self._list_of[-1])

    def add_arms(self, count: int) -> None:
        """Register a list of arms that was added to the matrix."""
        self._list_of = with_more(self._list_of, count, self.n_additions + 1)
        if self._intervals is not None:
            self._intervals.add_arms(count)

    def tell(self, batch: Grouped, band: Band | None) -> None:
        """Update the intervals with a batch that the matrix has accepted.

        Args:
            batch: The pairs, grouped by arm.
            band: Controls of the draws; None without controls.
        """
        if self._intervals is not None:
            self._intervals.tell(batch, band)

    def leave_out_intervals(self) -> None:
        """Stop computing intervals."""
        self._intervals = None

    @property
    def levels(self) -> FloatArray:
        """Wealth at which each arm is eliminated, shape (K,).

        Infinite if no elimination can be proven.
        """
        if self.stated >= 1.0:
            return np.full(len(self._list_of), np.inf)
        shares = _divisor(self._n_dropped) if self._dropping == "reserved" else 1.0
        of_lists = _divisor(self._list_of) if self._additions == "expected" else np.ones(len(self._list_of))
        return np.asarray(self._top_m * shares * of_lists / self.delta)

    @property
    def may_choose(self) -> bool:
        """Whether a cheaper arm may be chosen.

        The errors of the best and the cheaper arm must sum to less than 1.
        """
        return self._thrift is not None and self.stated + self._thrift.delta < 1.0

    def room(self, evidence: Evidence) -> int:
        """Number of pairs that can still be proposed; 0 if the selector stopped."""
        if self._reason(evidence) != "running":
            return 0
        matrix = self._matrix
        budget = self._config.budget
        most = matrix.n_arms * matrix.n_examples if budget is None else budget
        return max(0, most - int(matrix.told.sum() + matrix.pending.sum()))

    def decision(self, evidence: Evidence) -> Decision:
        """The current decision, with statuses, intervals and claim.

        Raises:
            ImpossibleState: If the decision contradicts itself or the scores.
        """
        reason, matrix, intervals = self._reason(evidence), self._matrix, self._intervals
        unknown = np.full(matrix.n_arms, np.nan)
        shown = None if intervals is None else self._shown(intervals)
        estimates = matrix.means if shown is None else shown.estimates
        best, status, claim = self._answer(evidence, reason, estimates)
        decision = Decision(
            best=best,
            estimates=estimates,
            lower=unknown if shown is None else shown.lower,
            upper=unknown if shown is None else shown.upper,
            status=status,
            stop=reason != "running",
            reason=reason,
            claim=claim,
            differences=self._differences(evidence, best, status, shown, has_ended=reason != "running"),
        )
        least, most = self._possible_means
        check_possible(decision, np.maximum(least, 0.0), most, matrix.fully_scored, by_intervals=False)
        return decision

    @property
    def _possible_means(self) -> tuple[FloatArray, FloatArray]:
        """Lowest and highest possible mean of each arm, shape (K,) each.

        On spared examples the score that the arms in question share is subtracted. There, the score of an arm
        that was not in question is between -1 and 1.
        """
        least, most = self._matrix.possible_means
        if self._spared is None:
            return least, most
        return least - (self._spared.n_examples - self._spared.of_arm) / self._matrix.n_examples, most

    def _shown(self, intervals: ShownIntervals) -> Ends:
        """Intervals of the arms' means, those with revised scores as the known scores allow.

        The intervals hold for any missing scores, so they hold for those that came later.
        """
        ends, revised = Ends(intervals.estimates, intervals.lower, intervals.upper), self._matrix.revised
        if not revised.any():
            return ends
        least, most = self._possible_means
        lower, upper = np.fmax(ends.lower, least), np.fmin(ends.upper, most)
        is_empty = lower > upper  # the interval is wrong; what is known is not
        lower, upper = np.where(is_empty, least, lower), np.where(is_empty, most, upper)
        estimates = np.clip(np.where(revised, self._matrix.means, ends.estimates), lower, upper)
        return Ends(estimates, np.where(revised, lower, ends.lower), np.where(revised, upper, ends.upper))

    def _differences(
        self,
        evidence: Evidence,
        best: int | None,
        status: tuple[ArmStatus, ...],
        shown: Ends | None,
        *,
        has_ended: bool,
    ) -> Differences | None:
        """Differences of the others from the best arm, or from the last of the m best.

        The pairs of the race are used only once the selector has stopped.
        """
        if self._spared is not None:
            return self._differences_in_race(evidence, best) if has_ended else None
        members = [arm for arm, each in enumerate(status) if each == "top"]
        if members:
            best = min(members, key=lambda arm: (self._matrix.sums[arm], -arm))
        delta = self.delta * (1 if self._additions == "expected" else 1 + self.n_additions)
        if shown is None or best is None or delta >= 1.0:
            return None
        ends = by_means(*shown, best)
        n_first, is_full = self._config.n_arms, self._matrix.fully_scored[best]
        if has_ended and self._has_pairs and best < n_first and not is_full:
            ends = ends.within(*by_race(evidence.race, best, n_first, self._config.n_examples, self._share))
        return differences(ends, best, delta)

    def _differences_in_race(self, evidence: Evidence, best: int | None) -> Differences | None:
        """Differences from the best arm, from pairs of scores in the race.

        None without a best arm.
        """
        n_arms = self._matrix.n_arms
        if best is None:
            return None
        pairs = [evidence.race.differences(arm, best) for arm in range(n_arms)]
        known = [each[~np.isnan(each)] for each in pairs]
        means = np.array([each.mean() if each.size else np.nan for each in known])
        ends = Ends(means, np.full(n_arms, np.nan), np.full(n_arms, np.nan))
        found = by_race(evidence.race, best, n_arms, self._config.n_examples, self._share)
        return differences(ends.within(*found), best, self.delta)

    @property
    def _has_pairs(self) -> bool:
        """Whether to bet also on score differences in a race.

        Depends only on the mode and the groups.
        """
        return self._mode.weight > 0.0 and self._matrix.groups.n_groups == 1

    def _reason(self, evidence: Evidence) -> Reason:
        matrix, config = self._matrix, self._config
        if not matrix.active.any():
            return "all-dropped"
        is_spent = self._is_budget_spent
        if self._thrift is not None and self._thrift.goes_on and evidence.is_decided:
            return "budget" if is_spent else "running"
        if config.delta is not None and (evidence.is_decided or self._is_certain(evidence)):
            return "confident"
        if self._is_exhausted(evidence):
            return "exhausted"
        return "budget" if is_spent else "running"

    def is_spent(self, evidence: Evidence) -> bool:
        """Whether the budget is spent, or no pair of an arm in question is left."""
        return self._is_budget_spent or self._is_exhausted(evidence)

    @property
    def _is_budget_spent(self) -> bool:
        budget = self._config.budget
        return budget is not None and bool(self._matrix.told.sum() >= budget)

    def _is_exhausted(self, evidence: Evidence) -> bool:
        matrix = self._matrix
        in_question = matrix.active if self._config.delta is None else evidence.alive
        return bool((matrix.told[in_question] == matrix.n_examples).all())

    def _is_certain(self, evidence: Evidence) -> bool:
        """Whether ties are open and the known scores show that no arm is better."""
        if self._ties == "resolve" or self._thrift is not None:
            return False
        if self._top_m > 1:
            return known_best(self._matrix, self._top_m, self._config.epsilon) is not None
        return bool(self._certain_of(evidence).good_enough.any())

    def _answer(
        self, evidence: Evidence, reason: Reason, estimates: FloatArray
    ) -> tuple[int | None, tuple[ArmStatus, ...], Claim]:
        """Arm to recommend, status of each arm, and claim."""
        certain = standing_of(self._matrix, *self._possible_means, self._config.epsilon)
        has_begun_again = self._thrift is not None and self._thrift.has_begun
        has_ended = reason not in ("running", "all-dropped") or has_begun_again
        if self._top_m > 1:
            return self._answer_of_many(evidence, estimates, has_ended=has_ended, is_open=reason == "budget")
        if len(evidence.constraints):
            return self._answer_with_constraints(evidence, estimates, has_ended=has_ended)
        if has_ended and certain.good_enough.any() and not has_begun_again:
            best = certain.best(estimates)
            return best, certain.statuses(best, settled=True), EXACT
        if has_ended and evidence.is_decided:
            spent = (
                self._thrift.delta if self._thrift is not None and self._thrift.chosen is not None else 0.0
            )
            claim = self._proven_claim(spent)
            best = evidence.champion if evidence.champion is not None else int(evidence.alive.argmax())
            return best, self._proven_statuses(evidence, best), claim
        best = _highest(estimates, evidence.alive & ~certain.eliminated)
        # An arm eliminated only up to epsilon can be the best: it stays active until the answer is proven.
        is_beaten = evidence.is_beaten | certain.eliminated
        status = statuses(self._matrix.n_arms, [("eliminated", is_beaten), ("dropped", ~evidence.active)])
        is_open = reason == "budget" and self._config.delta is None
        return best, status, HEURISTIC if is_open else NOTHING_CLAIMED

    def _answer_of_many(
        self, evidence: Evidence, estimates: FloatArray, *, has_ended: bool, is_open: bool
    ) -> tuple[int | None, tuple[ArmStatus, ...], Claim]:
        """First of the m best arms, status of each arm, and claim."""
        matrix = self._matrix
        known = known_best(matrix, self._top_m, self._config.epsilon) if has_ended else None
        if known is None and has_ended and evidence.is_decided:
            members, claim, is_beaten = evidence.top, self._proven_claim(), evidence.is_beaten
        elif known is not None:  # a certain answer needs no bets, which can err
            members, claim, is_beaten = known, EXACT, np.zeros(matrix.n_arms, dtype=np.bool_)
        else:
            is_beaten = (evidence.is_beaten | below_the_best(matrix, self._top_m)) & evidence.active
            best = _highest(estimates, evidence.alive & ~is_beaten)
            status = statuses(matrix.n_arms, [("eliminated", is_beaten), ("dropped", ~evidence.active)])
            return best, status, HEURISTIC if is_open and self._config.delta is None else NOTHING_CLAIMED
        groups = TopM.of(matrix, members).groups(is_beaten, evidence.active)
        return int(members[0]), statuses(matrix.n_arms, groups), claim

    def _answer_with_constraints(
        self, evidence: Evidence, estimates: FloatArray, *, has_ended: bool
    ) -> tuple[int | None, tuple[ArmStatus, ...], Claim]:
        """Arm to recommend among those that meet the constraints, statuses, and claim."""
        certain, best = self._certain_of(evidence), evidence.champion
        is_decided = has_ended and evidence.is_decided
        if has_ended and certain.good_enough.any():
            best = certain.best(estimates)
            return best, self._overlay(evidence, certain.statuses(best, settled=True), by_bets=False), EXACT
        if is_decided and best is not None:
            return best, self._overlay(evidence, self._proven_statuses(evidence, best)), self._proven_claim()
        is_beaten = certain.eliminated
        if best is None or is_beaten[best]:
            best = _highest(estimates, evidence.alive & ~is_beaten)
        status = statuses(self._matrix.n_arms, [("eliminated", evidence.is_beaten | is_beaten)])
        claim = NOTHING_CLAIMED
        if is_decided:  # decided without a champion: no arm meets the constraints
            claim = EXACT if certain.dropped.all() else self._proven_claim()
        return best, self._overlay(evidence, status), claim

    def _certain_of(self, evidence: Evidence) -> Standing:
        """Status of the arms by known scores alone.

        Arms that cannot meet the constraints count as dropped.
        """
        matrix, met = self._matrix, evidence.constraints.are_met
        least, most = self._possible_means
        return Standing.of(
            np.where(met, least, -np.inf),  # only an arm that certainly meets them can eliminate others
            most,
            scored=met & (matrix.scored > 0),
            fully_scored=met & matrix.fully_scored,
            active=matrix.active & ~evidence.constraints.are_missed,
            epsilon=self._config.epsilon,
        )

    def _overlay(
        self, evidence: Evidence, status: tuple[ArmStatus, ...], *, by_bets: bool = True
    ) -> tuple[ArmStatus, ...]:
        """Replace the statuses of arms that are unfit, infeasible or dropped.

        Args:
            evidence: The evidence from all observations.
            status: Statuses that ignore the constraints.
            by_bets: Whether bets on constraints can make an arm unfit.
        """
        is_unfit, are_missed = evidence.is_unfit & by_bets, evidence.constraints.are_missed
        over: list[tuple[ArmStatus, BoolArray]] = [
            ("unfit", is_unfit),
            ("infeasible", are_missed),
            ("dropped", ~self._matrix.active),
        ]
        found = statuses(len(status), over)
        is_over = is_unfit | are_missed | ~self._matrix.active
        return tuple(new if over else old for new, old, over in zip(found, status, is_over, strict=True))

    def _proven_claim(self, spent: float = 0.0) -> Claim:
        """Claim of a proven answer.

        Args:
            spent: Error probability of the search for a cheaper arm, added to that of the best arm.
        """
        return Claim(
            kind="proven",
            delta=self.stated + spent,
            raised_by=self._raised_by,
            assumptions=("planned-additions",) if "added" in self._raised_by else (),
        )

    def _proven_statuses(self, evidence: Evidence, best: int) -> tuple[ArmStatus, ...]:
        """Statuses once all arms except the best are eliminated or fully observed."""
        matrix = self._matrix
        least, most = self._possible_means
        is_best = np.arange(matrix.n_arms) == best
        is_below = evidence.active & (most < least[best] - ROUNDING)
        # Ties have no tolerance of epsilon, because the best arm itself is only known to within epsilon.
        is_equal = evidence.alive & matrix.fully_scored & (least >= least[best] - ROUNDING)
        is_equal &= evidence.constraints.are_met & (np.arange(matrix.n_arms) != self._chosen())
        is_tied = is_equal if is_equal[best] and is_equal.sum() > 1 else np.zeros_like(is_equal)
        groups: list[tuple[ArmStatus, BoolArray]] = [
            ("not-better", ~is_best),
            ("eliminated", is_below | evidence.is_beaten),
            ("best", is_best & ~is_tied),
            ("tied", is_tied),
            ("chosen", np.arange(matrix.n_arms) == self._chosen()),
            ("dropped", ~matrix.active),  # also those dropped after the best was known
        ]
        return statuses(matrix.n_arms, groups)

    def _chosen(self) -> int | None:
        return None if self._thrift is None else self._thrift.chosen

    @property
    def _n_dropped(self) -> int:
        if self._thrift is not None and self._thrift.has_begun:
            return self._thrift.n_dropped
        return int(np.count_nonzero(~self._matrix.active))

    @property
    def _raised_by(self) -> tuple[Raise, ...]:
        """Causes that raise the stated error probability above `delta`."""
        dropped: tuple[Raise, ...] = ("dropped",) if self._dropping == "stated" and self._n_dropped else ()
        added: tuple[Raise, ...] = ("added",) if self._additions == "stated" and self.n_additions else ()
        return dropped + added

    @property
    def stated(self) -> float:
        """Error probability that an answer states; it can exceed 1."""
        times: dict[Raise, float] = {
            "dropped": 1.0 + self._n_dropped / self._top_m,
            "added": self.n_additions + 1,
        }
        return math.prod(times[each] for each in self._raised_by) * self.delta

    def _alpha_of(self, number: int) -> float:
        """Error probability of the intervals of the means in a list.

        Lists are counted from 0.
        """
        return self._share / float(_divisor(number)) if self._additions == "expected" else self._share


def _highest(estimates: FloatArray, among: BoolArray) -> int | None:
    """The arm with the highest estimate within a mask.

    None if no arm of the mask has an estimate.
    """
    ranked = np.where(among & ~np.isnan(estimates), estimates, -np.inf)
    return int(ranked.argmax()) if ranked.max() > -np.inf else None


def _divisor(count: ArrayLike) -> FloatArray:
    """Divisor of the error probability of case `count`, an integer from 0 or an array of them.

    The shares 1 / divisor of all cases sum to 1.
    """
    cases = np.asarray(count, dtype=np.float64)
    return (cases + 1.0) * (cases + 2.0)

"""Evidence from counts of duels, with each pair of arms considered separately."""

import math

import numpy as np

from winnow.algorithms.best_duel.config import BestDuelConfig, evidence_delta
from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.best_duel.preference_intervals import PreferenceIntervals
from winnow.algorithms.best_duel.win_tables import Standings
from winnow.algorithms.best_duel.winner_tests import (
    ROUNDING,
    PairWealths,
    error_bound,
    log_e_values,
    own_duels_level,
    product_level,
)
from winnow.algorithms.claims import EXACT, Assumption, Claim, Raise
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray

NOBODY: IntArray = np.empty(0, dtype=np.int64)


class CountEvidence:
    """Preferences by the share of duels won, without a model that relates pairs.

    The best arm is separated by one of the two rules of `winner_tests`, which has the proofs. Either its own
    duels show that it beats every other active arm. Or, if the config assumes a winner, every other active
    arm is ruled out by its e-value and the best arm is not. With `epsilon`, the rules show that the arm is
    good enough instead.

    In the rules and in the intervals, an unscored duel takes its worst case; estimates and the statistic
    leave it out.

    The interval of an estimate goes from the least lower to the least upper end of the arm's pairs against
    active arms. With probability at least 1 - delta all intervals of all arms hold at every look, under any
    stopping rule.

    If two arms are compared at most once on an example, their preference is that over all n examples, and can
    become certain: an arm certainly loses once some active arm has gained more than n / 2 against it. The
    answer is settled once every active arm either certainly loses or certainly beats or ties every other. If
    exactly one arm certainly beats or ties every other, it is the best; if several do, they are tied; if no
    arm does, there is no winner.

    Args:
        config: The problem, without features.
        record: The record of the duels, empty if it has pairs that are compared at most once on an example.
            Call `update` after each tell.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    equation (7) and the proof of Corollary 3.3, for the statistic.
    """

    def __init__(self, config: BestDuelConfig, record: DuelRecord) -> None:
        self._config = config
        self._delta = evidence_delta(config)
        self._record = record
        self._wealths = PairWealths(record, 0.5)
        self._good_enough = PairWealths(record, 0.5 - config.epsilon) if config.epsilon else self._wealths
        self._pair_intervals = PreferenceIntervals(record, self._delta)
        self._rebuild()

    def update(self) -> None:
        """Update from the record.

        O(K) per duel for a few duels, O(K^2) for many duels or after an arm was dropped.
        """
        record = self._record
        self._wealths.update()
        if self._good_enough is not self._wealths:
            self._good_enough.update()
        self._pair_intervals.update()
        if record.pairs is not self._pairs or len(record.scored) > record.n_arms:
            self._rebuild()
            return
        for pair in record.scored:
            for row, column in (pair, pair[::-1]):
                count = record.counts[row, column]
                self.standings.refresh(row, column, record.wins[row, column] / count, count)
        self._follow()

    @property
    def in_force(self) -> "CountEvidence":
        """This evidence itself, because counts assume no model that could be refuted."""
        return self

    @property
    def preferences(self) -> FloatArray:
        """Share of each pair's scored duels that the row won, shape (K, K).

        NaN without a scored duel.
        """
        return self.standings.preferences

    @property
    def estimates(self) -> FloatArray:
        """Values by which the arms are ranked, shape (K,)."""
        return self.standings.estimates

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals of the estimates, shape (K,)."""
        return self._ends()[0]

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals of the estimates, shape (K,)."""
        return self._ends()[1]

    @property
    def statistic(self) -> float:
        """Statistic Z of equation (7) from the scored duels, in nats.

        0 without a best arm or an opponent.
        """
        if self.best is None or self._record.n_active < 2:
            return 0.0
        rivals = self._record.active.copy()
        rivals[self.best] = False
        return float(self.standings.doubts[rivals].min())

    @property
    def beaten(self) -> BoolArray:
        """Active arms shown not to beat every other arm, shape (K,).

        If no arm is dropped, an arm that does beat every other is ever included with probability at most
        delta.
        """
        is_out = self._e_values() >= product_level(self._delta, self._record.n_arms, 0.0)
        return self._record.active & (self.losers | (is_out & (self._config.delta is not None)))

    @property
    def losers(self) -> BoolArray:
        """Active arms that certainly lose to another active arm, shape (K,)."""
        active = self._record.active
        if not self._record.is_once.any():
            return np.zeros(len(active), dtype=np.bool_)
        is_lost = np.isposinf(self._wealths.log_wealths)
        is_loser: BoolArray = active & (is_lost & active).any(axis=1)
        return is_loser

    @property
    def tied(self) -> BoolArray:
        """Arms certainly tied for first place, shape (K,).

        All False until the answer is settled.
        """
        is_first = self._unbeaten()
        return is_first & (self.is_settled and np.count_nonzero(is_first) > 1)

    @property
    def is_settled(self) -> bool:
        """Whether each active arm certainly loses to another, or beats or ties all others.

        False for fewer than two active arms, or if no pair is compared at most once per example.
        """
        active = self._record.active
        if not self._record.is_once.any() or self._record.n_active < 2:
            return False
        return bool((self.losers | self._unbeaten())[active].all())

    @property
    def claim(self) -> Claim:
        """Claim about the best arm, once it is separated.

        Once the answer is settled: claim about all arms.
        """
        if self.is_settled:
            return EXACT
        assumptions: tuple[Assumption, ...] = ("winner-exists",) if self._config.assume_winner else ()
        is_certain = np.isposinf(self._good_enough.log_wealths[self._others(), self.best]).all()
        if is_certain and not assumptions:
            return EXACT
        bound = self._error_bound()
        raised_by: tuple[Raise, ...] = ("dropped",) if bound > self._delta else ()
        return Claim(kind="proven", delta=bound, raised_by=raised_by, assumptions=assumptions)

    def _rebuild(self) -> None:
        record = self._record
        self._pairs = record.pairs
        self.standings = Standings(record.preferences, record.counts, record.active)
        self._follow()

    def _follow(self) -> None:
        self._intervals: tuple[FloatArray, FloatArray] | None = None
        self.best = self.standings.best
        # Arms that are ruled out as winners but not shown to lose to the best arm itself.
        self.unsettled = NOBODY
        self.is_separated = self.is_settled and np.count_nonzero(self._unbeaten()) == 1
        if self.is_separated or not self._may_be_ruled_out():
            return
        level = product_level(self._delta, self._record.n_arms, self._config.epsilon)
        others, e_values = self._others(), self._e_values(self.best)
        if not (e_values[others] >= level).all():
            return
        if self._config.assume_winner:
            # If the best arm is also ruled out, the assumed winner does not exist.
            self.is_separated = bool(self._e_values()[self.best] < -math.log(self._delta))
        else:
            shown = self._good_enough.log_wealths[others, self.best]
            self.unsettled = others[shown < own_duels_level(self._delta, self._record.n_arms)]
            self.is_separated = len(self.unsettled) == 0
        self.is_separated &= self._error_bound() < 1.0

    def _may_be_ruled_out(self) -> bool:
        """Whether the e-values can rule out all arms except the best, by a cheap check.

        They cannot while Z is below their level, because log E(i) is at most Z_i; Z is faster to update. Z is
        not used with epsilon, or if some pairs are compared at most once on an example.
        """
        if self.best is None or self._record.n_active < 2:
            return False
        if self._config.epsilon or self._record.is_once.any():
            return True
        return self.statistic >= -math.log(self._delta)

    def _others(self) -> IntArray:
        """Active arms except the best, in ascending order."""
        is_other = self._record.active.copy()
        is_other[self.best] = False
        return np.flatnonzero(is_other)

    def _e_values(self, named: int | None = None) -> FloatArray:
        """Log E of each arm, shape (K,).

        Factors that involve `named` test whether that arm is good enough.
        """
        shifted = None
        if named is not None and self._config.epsilon:
            shifted = np.full_like(self._wealths.log_wealths, np.nan)
            shifted[:, named] = self._good_enough.log_wealths[:, named]
        return log_e_values(self._wealths.log_wealths, self._record.active, shifted)

    def _error_bound(self) -> float:
        return error_bound(self._delta, self._record.n_dropped, assume_winner=self._config.assume_winner)

    def _unbeaten(self) -> BoolArray:
        """Active arms that certainly beat or tie every other active arm, shape (K,)."""
        record = self._record
        is_safe = record.is_once & (record.wins >= record.n_examples / 2.0 - ROUNDING)
        others = record.active & ~np.eye(record.n_arms, dtype=np.bool_)
        unbeaten: BoolArray = record.active & (is_safe | ~others).all(axis=1)
        return unbeaten

    def _ends(self) -> tuple[FloatArray, FloatArray]:
        if self._intervals is None:
            lower = self._pair_intervals.lower()
            others = self._record.active & ~np.eye(self._record.n_arms, dtype=np.bool_)
            least, most = (np.where(others, ends, 1.0).min(axis=1) for ends in (lower, 1.0 - lower.T))
            # The estimates are inside except for rounding.
            self._intervals = np.fmin(least, self.estimates), np.fmax(most, self.estimates)
        return self._intervals

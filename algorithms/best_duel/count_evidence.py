"""What the duels say when each pair of arms is counted for itself."""

import math

import numpy as np

from algorithms.arrays import FloatArray, IntArray
from algorithms.best_duel.divergence import kl_lower_bounds
from algorithms.best_duel.duel_record import DuelRecord
from algorithms.best_duel.evidence import evidence_delta
from algorithms.best_duel.setting import Setting
from algorithms.best_duel.standings import Standings
from algorithms.best_duel.thresholds import (
    is_shown_to_win,
    practical_threshold,
    proven_levels,
    proven_thresholds,
)

NOBODY: IntArray = np.empty(0, dtype=np.int64)


class CountEvidence:
    """Preferences by the share of duels won, nothing assumed of how pairs hang together.

    The statistic is Z = min over active i other than the best of Z_i, and Z_i the sum of N(i, j) d(mu(j,
    i), 1/2) over the active j with mu(j, i) > 1/2: how hard it is to believe that i beats every other.

    That all others are ruled out makes the best arm the one that beats every other only if there is one. So
    it counts as separated once, besides, `is_shown_to_win` over every other active arm, by their own duels.
    Then the probability that another arm is ever separated is at most delta, with both thresholds and whether
    or not some arm beats every other; arms set aside make it (m + 1) delta after m times.

    The interval of an estimate goes from the least lower to the least upper end of the arm's pairs, and
    that of a pair over all m with N d(mu, m) at most a level, from 0 to 1 without a scored duel. With the
    threshold "proven" all intervals hold at every look with probability at least 1 - delta; with
    "practical" the level is the threshold itself, and how often they hold is not known.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    equation (7) and the proof of Corollary 3.3.
    """

    def __init__(self, setting: Setting, record: DuelRecord) -> None:
        self._is_proven = setting.threshold == "proven"
        self._delta = evidence_delta(setting)
        self._record = record
        self._rebuild()

    def update(self) -> None:
        """Follow the record: O(K) for each of a few duels, O(K^2) for many or when an arm was set aside."""
        record = self._record
        if record.pairs is not self._pairs or len(record.scored) > record.n_arms:
            self._rebuild()
            return
        for pair in record.scored:
            for row, column in (pair, pair[::-1]):
                count = record.counts[row, column]
                self.standings.refresh(row, column, record.wins[row, column] / count, count)
        self._follow()

    @property
    def preferences(self) -> FloatArray:
        """Share of a pair's scored duels that the row won, shape (K, K), NaN where there is none."""
        return self.standings.preferences

    @property
    def estimates(self) -> FloatArray:
        """What each arm is ranked by, shape (K,)."""
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
        """Z of equation (7), in nats; 0 where there is none."""
        if self.best is None or self._record.n_active < 2:
            return 0.0
        rivals = self._record.active.copy()
        rivals[self.best] = False
        return float(self.standings.doubts[rivals].min())

    def _rebuild(self) -> None:
        record = self._record
        self._pairs = record.pairs
        self.standings = Standings(record.preferences, record.counts, record.active)
        self._follow()

    def _follow(self) -> None:
        self._intervals: tuple[FloatArray, FloatArray] | None = None
        self.best = self.standings.best
        self.unsettled = NOBODY  # ruled out by Z, though not shown to lose to the best arm itself
        self.is_separated = False
        if self.best is not None and self._is_above():
            rivals = self._record.active.copy()
            rivals[self.best] = False
            self.unsettled = self._unsettled(self.best, np.flatnonzero(rivals))
            self.is_separated = len(self.unsettled) == 0

    def _is_above(self) -> bool:
        """Whether the best arm beats every other so far and Z is above the threshold."""
        record, standings = self._record, self.standings
        # An estimate above 1/2 beats every other active arm; then there is no evidence against it.
        if record.n_active < 2 or not standings.estimates[self.best] > 0.5:
            return False
        if self._is_proven:
            # No threshold is below log(1 / delta), and all of them take long to work out.
            if self.statistic <= -math.log(self._delta):
                return False
            thresholds: FloatArray | float = proven_thresholds(
                record.wins, record.counts, standings.against, record.active, self._delta
            )
        else:
            thresholds = practical_threshold(self._delta, record.n_scored)
        above = record.active & (standings.doubts > thresholds)
        return int(np.count_nonzero(above)) == record.n_active - 1

    def _unsettled(self, best: int, opponents: IntArray) -> IntArray:
        record = self._record
        wins, counts = record.wins[best, opponents], record.counts[best, opponents]
        return opponents[~is_shown_to_win(wins, counts, self._delta, record.n_arms)]

    def _ends(self) -> tuple[FloatArray, FloatArray]:
        if self._intervals is None:
            record = self._record
            known = record.counts > 0
            means = np.where(known, self.preferences, 0.5)
            lower = np.where(known, kl_lower_bounds(means, np.maximum(record.counts, 1), self._levels()), 0.0)
            others = record.active & ~np.eye(record.n_arms, dtype=np.bool_)
            self._intervals = (
                np.where(others, lower, 1.0).min(axis=1),
                np.where(others, 1.0 - lower.T, 1.0).min(axis=1),
            )
        return self._intervals

    def _levels(self) -> FloatArray | float:
        record = self._record
        if self._is_proven:
            return proven_levels(record.wins, np.maximum(record.counts, 1), self._delta)
        return practical_threshold(self._delta, record.n_scored)

"""What the duels say when each pair of arms is counted for itself."""

import numpy as np

from algorithms.best_duel.divergence import bernoulli_kl, kl_lower_bounds
from algorithms.best_duel.duel_record import DuelRecord
from algorithms.best_duel.evidence import best_arm, evidence_delta, worst_preferences
from algorithms.best_duel.setting import Setting
from algorithms.best_duel.thresholds import practical_threshold, proven_levels, proven_thresholds
from algorithms.protocols import FloatArray


class CountEvidence:
    """Preferences by the share of duels won, nothing assumed of how pairs hang together.

    The statistic is Z = min over active i other than the best of Z_i, and Z_i the sum of N(i, j) d(mu(j,
    i), 1/2) over the active j with mu(j, i) > 1/2: how hard it is to believe that i beats every other.

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
        self.update()

    def update(self) -> None:
        """Follow the record."""
        record = self._record
        self.preferences = record.preferences
        self.estimates = worst_preferences(self.preferences, record.active)
        self.best = best_arm(self.preferences, self.estimates, record.active)
        self._intervals: tuple[FloatArray, FloatArray] | None = None
        self._weigh()

    @property
    def lower(self) -> FloatArray:
        """Lower ends of the intervals of the estimates, shape (K,)."""
        return self._ends()[0]

    @property
    def upper(self) -> FloatArray:
        """Upper ends of the intervals of the estimates, shape (K,)."""
        return self._ends()[1]

    def _weigh(self) -> None:
        self.statistic, self.is_separated = 0.0, False
        active, best = self._record.active, self.best
        if best is None or active.sum() < 2:
            return
        leads = np.where(
            self.preferences < 0.5, self.preferences, 0.5
        )  # (K, K) below 1/2 where the column leads
        against = np.where(active, self._record.counts * bernoulli_kl(leads, 0.5), 0.0)
        rivals = active.copy()
        rivals[best] = False
        totals = against.sum(axis=1)
        self.statistic = float(totals[rivals].min())
        others = self.preferences[best, rivals]
        if self.statistic > 0.0 and (others > 0.5).all():
            self.is_separated = bool((totals > self._thresholds(against))[rivals].all())

    def _thresholds(self, against: FloatArray) -> FloatArray | float:
        record = self._record
        if self._is_proven:
            return proven_thresholds(record.wins, record.counts, against, record.active, self._delta)
        return practical_threshold(self._delta, record.n_scored)

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

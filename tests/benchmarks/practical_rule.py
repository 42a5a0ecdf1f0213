"""The stopping rule of the published experiments, without a proof: what other rules are set beside."""

import math

import numpy as np
from scipy.special import betaln

from winnow.algorithms.best_duel.count_evidence import CountEvidence


def practical_threshold(delta: float, n_duels: int) -> float:
    """The threshold on Z: 2 log((log t + 1) / delta).

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 5.1.
    """
    return 2.0 * math.log((math.log(max(n_duels, 1)) + 1.0) / delta)


class PracticalEvidence(CountEvidence):
    """The best arm is separated when Z is above the threshold and its own duels show it to beat every other.

    They do when a mixture over all preferences, by Krichevsky and Trofimov, reaches K / delta. Unscored duels
    are left out of both.
    """

    def _follow(self) -> None:
        super()._follow()
        record = self._record
        self.unsettled, self.is_separated = self.unsettled[:0], False
        if self.best is None or not self.estimates[self.best] > 0.5:
            return
        if self.statistic <= practical_threshold(self._delta, record.n_scored):
            return
        others = self._others()
        wins, counts = record.wins[self.best, others], record.counts[self.best, others]
        mixtures = counts * np.log(2.0) + betaln(wins + 0.5, counts - wins + 0.5) - np.log(np.pi)
        is_shown = (2.0 * wins > counts) & (mixtures >= math.log(record.n_arms / self._delta))
        self.unsettled = others[~is_shown]
        self.is_separated = bool(is_shown.all())

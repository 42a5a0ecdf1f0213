"""Double Thompson sampling: two draws of the preferences, one for the arm and one for its opponent."""

import numpy as np
from numpy.typing import ArrayLike

from algorithms.best_duel.setting import Setting
from algorithms.best_duel.stopping import Stopping
from algorithms.protocols import EMPTY_BATCH, Batch, Decision, FloatArray


class Thompson:
    """Ask the arm that beats most others in a posterior draw, and who beats it most in a second draw.

    The posterior of a pair is Beta(1 + wins, 1 + losses), a tie half a win for each arm; with features, the
    Bradley-Terry model's preference times the pair's duels stands for the wins. Every duel of a batch has
    draws of its own, so batches spread by themselves. An arm is not set against itself, as that would tell
    nothing of which arm is best; the published method, which keeps regret low, may do so.

    Args:
        setting: The problem and the common parameters.

    Source: Wu and Liu (2016), "Double Thompson Sampling for Dueling Bandits", Algorithm 1, without the bounds
    that prune its candidates, as in Hu et al. (2026), Section 5 (Thompson Sampling).
    """

    def __init__(self, setting: Setting) -> None:
        self._stopping = Stopping(setting)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch of duels drawn one by one from the posterior."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record = self._stopping.record
        firsts, seconds = self._draws(room, rng), self._draws(room, rng)
        beaten = (firsts > 0.5).sum(axis=2) + rng.random((room, record.n_arms))  # equals in random order
        arms = np.where(record.active, beaten, -1.0).argmax(axis=1)
        against = seconds[np.arange(room), :, arms]  # (B, K) preference of each arm over the chosen one
        against[~np.broadcast_to(record.active, against.shape)] = -1.0
        against[np.arange(room), arms] = -1.0
        return record.ask(np.stack([arms, against.argmax(axis=1)], axis=1), rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb outcomes in [0, 1] in favour of the first arm, NaN where unscored."""
        self._stopping.tell(batch, outcomes)

    def decision(self) -> Decision:
        """Recommend the arm whose worst preference is highest."""
        return self._stopping.decision()

    def _draws(self, size: int, rng: np.random.Generator) -> FloatArray:
        """Draws from the posterior, shape (size, K, K); 0 on the diagonal and at arms set aside."""
        record = self._stopping.record
        rows, columns = record.pairs.T
        counts = record.counts[rows, columns]
        shares = self._stopping.evidence.preferences[rows, columns]
        wins = np.where(np.isnan(shares), 0.5, shares) * counts
        drawn = rng.beta(1.0 + wins, 1.0 + counts - wins, size=(size, len(counts)))
        draws = np.zeros((size, record.n_arms, record.n_arms))
        draws[:, rows, columns] = drawn
        draws[:, columns, rows] = 1.0 - drawn
        return draws

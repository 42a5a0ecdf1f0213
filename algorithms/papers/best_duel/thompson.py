"""Double Thompson sampling: two posterior draws of the preferences, for the arm and for its opponent."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.counts.evidence import CountEvidence
from winnow.algorithms.best_duel.stopping import Stopping
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import FloatArray, IntArray


class Thompson:
    """Propose the arm that beats most others in a posterior draw, and its top opponent in another draw.

    The posterior of a pair is Beta(1 + wins, 1 + losses), a tie half a win for each arm; with features, the
    wins are the Bradley-Terry model's preference times the pair's duels. The first draw matters only for
    which arm of a pair wins, so this is drawn, with its posterior probability, rather than the preference.
    The top opponent is the arm with the highest preference over the first arm. Every duel of a batch has its
    own draws, so batches are spread over pairs. An arm is never compared with itself, because that gives no
    information on the best arm; the published method, which minimises regret, can do so.

    Args:
        config: The problem and the common parameters.

    Source: Wu and Liu (2016), "Double Thompson Sampling for Dueling Bandits", Algorithm 1, without the bounds
    that prune its candidates, as in Hu et al. (2026), Section 5 (Thompson Sampling).
    """

    def __init__(self, config: BestDuelConfig) -> None:
        self._stopping = Stopping(config)
        self._follow_all()

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch of duels drawn one by one from the posterior."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        arms = self._arms(room, rng)
        return self._stopping.record.ask(np.column_stack([arms, self._opponents(arms, rng)]), rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb outcomes in [0, 1] in favour of the first arm, NaN if unscored."""
        self._stopping.tell(batch, outcomes)
        record = self._stopping.record
        is_as_before = record.pairs is self._pairs and isinstance(self._stopping.evidence, CountEvidence)
        if is_as_before and len(record.scored) <= record.n_arms:
            for pair in record.scored:
                self._follow(min(pair), max(pair))
        else:
            self._follow_all()

    def decision(self) -> Decision:
        """Recommend the arm whose worst preference is highest."""
        return self._stopping.decision()

    def _follow(self, row: int, column: int) -> None:
        """Update the posterior of a pair of active arms, the lower one first."""
        if self._chances[row, column] < 0.0:
            return
        count = self._stopping.record.counts[row, column]
        wins = self._stopping.evidence.preferences[row, column] * count
        self._chances[row, column] = betainc(1.0 + count - wins, 1.0 + wins, 0.5)

    def _follow_all(self) -> None:
        record = self._stopping.record
        self._pairs = record.pairs
        rows, columns = record.pairs.T
        counts = record.counts[rows, columns]
        shares = self._stopping.evidence.preferences[rows, columns]
        wins = np.where(np.isnan(shares), 0.5, shares) * counts
        # (K, K) probability that the row's preference over the column is above 1/2, for pairs of active arms,
        # the lower one first; negative elsewhere, so that no draw is below it.
        self._chances: FloatArray = np.full((record.n_arms, record.n_arms), -1.0)
        self._chances[rows, columns] = betainc(1.0 + counts - wins, 1.0 + wins, 0.5)
        # (K,) number of active arms with a lower index
        self._n_before: IntArray = np.cumsum(record.active) - record.active

    def _arms(self, size: int, rng: np.random.Generator) -> IntArray:
        """Arms that beat most others in one draw each, ties broken at random, shape (size,)."""
        record = self._stopping.record
        is_won = rng.random((size, record.n_arms, record.n_arms)) < self._chances  # (B, K, K)
        n_beaten = is_won.sum(axis=2) + (self._n_before - is_won.sum(axis=1))  # (B, K)
        ranked = np.where(record.active, n_beaten + rng.random(n_beaten.shape), -1.0)
        arms: IntArray = ranked.argmax(axis=1)
        return arms

    def _opponents(self, arms: IntArray, rng: np.random.Generator) -> IntArray:
        """Opponents with the highest drawn preference over each of the arms, shape (B,)."""
        record = self._stopping.record
        counts = record.counts[arms]  # (B, K)
        shares = self._stopping.evidence.preferences[arms]
        wins = np.where(np.isnan(shares), 0.5, shares) * counts
        drawn = np.where(record.active, rng.beta(1.0 + counts - wins, 1.0 + wins), -1.0)
        drawn[np.arange(len(arms)), arms] = -1.0
        opponents: IntArray = drawn.argmax(axis=1)
        return opponents

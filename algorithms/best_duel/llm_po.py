"""LLM-PO: duels in the proportions that rule out every arm but the best equally fast."""

import numpy as np
from numpy.typing import ArrayLike

from algorithms.best_duel.setting import Setting
from algorithms.best_duel.stopping import Stopping
from algorithms.best_duel.unstructured_allocation import likeliest_best, optimal_shares
from algorithms.errors import InvalidParameter
from algorithms.protocols import EMPTY_BATCH, Batch, Decision, FloatArray, IntArray


class LlmPo:
    """Follow the optimal shares of the preferences seen so far, with a floor under every pair's duels.

    A pair with fewer duels than `n0` or than `exploration` times the root of all duels so far comes first,
    the least asked one; else the pair that is furthest behind its share. Equals are drawn from at random.
    Within a batch, and while others are in flight, the duels asked count as if they were told and the
    preferences stay, so a batch of B spreads over pairs as B single duels in flight would. A tie is half a
    win for each arm, and unscored duels count as asked. With features the Bradley-Terry model gives the
    preferences and the statistic, while the shares still take each pair for itself.

    A batch of 1 is the published method with two departures that vanish as duels go on. A pair's share is of
    the duels of the pairs that have one, not of all t duels: the duels of others, of the floor and of earlier
    beliefs, would leave every share behind by the same number, and so the small ones without duels for long.
    And while no arm beats every other, shares are those of `likeliest_best`, with the open pairs in them. On
    the 16 arms of the paper's Section 5.1, at delta = 0.05 and in batches of 32, thirty seeded runs all
    stopped with the best arm, after 11 530 duels on average; with shares of all t duels, none of fifteen had
    stopped after 30 000.

    Args:
        setting: The problem and the common parameters.
        exploration: c' of the paper, which names no value, positive.
        n0: Duels of every pair before anything is believed, at least 1.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 4.2, equations (6) and (7), unstructured policy space.
    """

    def __init__(self, setting: Setting, *, exploration: float = 0.1, n0: int = 1) -> None:
        if not 0.0 < exploration < np.inf:
            raise InvalidParameter("exploration", exploration, "positive and finite")
        if n0 < 1:
            raise InvalidParameter("n0", n0, "at least 1")
        self._exploration = exploration
        self._n0 = n0
        self._stopping = Stopping(setting)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch over the pairs that are furthest behind."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record, evidence = self._stopping.record, self._stopping.evidence
        pairs = record.pairs
        cells = (pairs[:, 0], pairs[:, 1])
        if evidence.best is None:
            shares = np.zeros(len(pairs))
        else:
            preferences, active = evidence.preferences, record.active
            leader = likeliest_best(preferences, record.counts, evidence.best, active)
            shares = optimal_shares(preferences, leader, active)[cells]
        asked = (record.told + record.pending)[cells]
        chosen = self._track(shares, asked, record.n_told + record.n_pending, room, rng)
        return record.ask(pairs[chosen], rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb outcomes in [0, 1] in favour of the first arm, NaN where unscored."""
        self._stopping.tell(batch, outcomes)

    def decision(self) -> Decision:
        """Recommend the arm whose worst preference is highest."""
        return self._stopping.decision()

    def _track(
        self, shares: FloatArray, asked: IntArray, t: int, size: int, rng: np.random.Generator
    ) -> IntArray:
        """Choose pairs one after the other, by the shares and the duels asked of each, both of shape (P,).

        Returns:
            Shape (size,), places in `shares`.
        """
        asked = asked.copy()
        chosen = np.empty(size, dtype=np.int64)
        is_wanted = shares > 0.0
        for place in range(size):
            now = t + place
            least = asked.min()
            if least < max(self._n0, self._exploration * np.sqrt(now)):
                equals = np.flatnonzero(asked == least)
            else:
                behind = asked[is_wanted].sum() * shares - asked
                behind = np.where(is_wanted, behind, -np.inf)
                equals = np.flatnonzero(behind == behind.max())
            pick = equals[0] if equals.size == 1 else equals[rng.integers(equals.size)]
            asked[pick] += 1
            chosen[place] = pick
        return chosen

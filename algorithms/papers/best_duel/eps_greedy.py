"""Epsilon-greedy: the best arm against its strongest opponent, with random pairs at a fixed rate."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.duel_record import integers
from winnow.algorithms.best_duel.stopping import Stopping
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import IntArray


class EpsGreedy:
    """Propose a random pair with probability `exploration`, else the best arm against its top opponent.

    An opponent without duels counts as even. Ties go to the opponent with the fewest proposed duels, then to
    a random one. Within a batch the preferences stay as they are. A tie is half a win for each arm.

    Args:
        config: The problem and the common parameters.
        exploration: Share of random pairs, the method's epsilon, in [0, 1]; the paper gives no value.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 5 (EpsGreedy).
    """

    def __init__(self, config: BestDuelConfig, *, exploration: float = 0.1) -> None:
        if not 0.0 <= exploration <= 1.0:
            raise InvalidParameter("exploration", exploration, "in [0, 1]")
        self._exploration = exploration
        self._stopping = Stopping(config)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch, each duel random or greedy."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record, best = self._stopping.record, self._stopping.evidence.best
        chosen = record.pairs[integers(rng, len(record.pairs), room)]
        if best is not None:
            is_greedy = rng.random(room) >= self._exploration
            chosen[is_greedy] = self._greedy(best, int(is_greedy.sum()), rng)
        return record.ask(chosen, rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb outcomes in [0, 1] in favour of the first arm, NaN if unscored."""
        self._stopping.tell(batch, outcomes)

    def decision(self) -> Decision:
        """Recommend the arm whose worst preference is highest."""
        return self._stopping.decision()

    def _greedy(self, best: int, size: int, rng: np.random.Generator) -> IntArray:
        """Pair the best arm with its strongest opponents, shape (size, 2)."""
        record = self._stopping.record
        preferences = self._stopping.evidence.preferences[best]
        even = np.where(np.isnan(preferences), 0.5, preferences)
        even[best] = np.inf
        worst = np.where(record.active, even, np.inf)
        strongest = np.flatnonzero(worst == worst.min())
        opponents = np.full(size, strongest[0])
        if len(strongest) > 1:
            asked = record.told[best, strongest] + record.pending[best, strongest]
            for place in range(size):
                least = np.flatnonzero(asked == asked.min())
                pick = least[rng.integers(least.size)]
                asked[pick] += 1
                opponents[place] = strongest[pick]
        return np.stack([np.full(size, best), opponents], axis=1)

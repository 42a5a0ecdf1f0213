"""Round robin: every pair in turn."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.stopping import Stopping
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import EMPTY_BATCH, Batch


class RoundRobin:
    """Propose the pairs in a fixed order, over and over: a baseline that does not adapt.

    The next pair is the first of those with the fewest proposed duels, so the order also holds if arms are
    dropped or duels come from elsewhere. A tie is half a win for each arm.

    Args:
        config: The problem and the common parameters.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 5 (RoundRobin).
    """

    def __init__(self, config: BestDuelConfig) -> None:
        self._stopping = Stopping(config)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose the next pairs in the order."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record = self._stopping.record
        asked, chosen = record.asked(), []
        for _ in range(room):
            place = asked[record.cells].argmin()
            record.count(asked, record.cells[place])
            chosen.append(place)
        return record.ask(record.pairs[chosen], rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb outcomes in [0, 1] in favour of the first arm, NaN if unscored."""
        self._stopping.tell(batch, outcomes)

    def decision(self) -> Decision:
        """Recommend the arm whose worst preference is highest."""
        return self._stopping.decision()

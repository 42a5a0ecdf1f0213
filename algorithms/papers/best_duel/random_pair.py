"""Random pairs: every duel between two arms drawn at random."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.duel_record import integers
from winnow.algorithms.best_duel.stopping import Stopping
from winnow.algorithms.decision import Decision
from winnow.algorithms.protocols import EMPTY_BATCH, Batch


class RandomPair:
    """Propose pairs drawn uniformly and independently: a baseline that does not adapt.

    A tie is half a win for each arm.

    Args:
        config: The problem and the common parameters.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 5 (RandomPair).
    """

    def __init__(self, config: BestDuelConfig) -> None:
        self._stopping = Stopping(config)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch of random pairs."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record = self._stopping.record
        return record.ask(record.pairs[integers(rng, len(record.pairs), room)], rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb outcomes in [0, 1] in favour of the first arm, NaN if unscored."""
        self._stopping.tell(batch, outcomes)

    def decision(self) -> Decision:
        """Recommend the arm whose worst preference is highest."""
        return self._stopping.decision()

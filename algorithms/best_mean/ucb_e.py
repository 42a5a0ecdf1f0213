"""UCB-E: the arm with the highest upper confidence bound, on random examples."""

import numpy as np
from numpy.typing import ArrayLike

from algorithms.best_mean.score_matrix import ScoreMatrix
from algorithms.best_mean.setting import Setting
from algorithms.best_mean.stopping import Stopping
from algorithms.decision import Decision
from algorithms.errors import InvalidParameter
from algorithms.protocols import EMPTY_BATCH, Batch


class UcbE:
    """Ask the arm whose mean plus sqrt(a / pairs told) is highest, on examples drawn uniformly.

    An arm without a score has an infinite bound. Ties are broken uniformly at random, among the arms with
    the fewest pending pairs: with several batches in flight, untried arms come before those being tried.

    Args:
        setting: The problem and the common parameters.
        a: How much uncertainty is worth, non-negative. The paper's theorem would have it near 25/36 of the
            budget over the hardness H1; in its experiments 1 did best throughout.

    Source: Zhou et al. (2024), "On Speeding Up Language Model Evaluation", Algorithm 1 (there eta for a).
    """

    def __init__(self, setting: Setting, *, a: float = 1.0) -> None:
        if not 0.0 <= a < np.inf:
            raise InvalidParameter("a", a, "non-negative and finite")
        self._a = a
        self._batch_size = setting.batch_size
        self._matrix = ScoreMatrix(setting)
        self._stopping = Stopping(setting, self._matrix)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch of one arm."""
        matrix = self._matrix
        bonus = np.sqrt(self._a / np.maximum(matrix.told, 1))
        bounds = np.where(matrix.scored == 0, np.inf, matrix.means + bonus)
        room = self._stopping.room(self._batch_size)
        arm = matrix.pick(bounds, rng)
        if room == 0 or arm is None:
            return EMPTY_BATCH
        return matrix.ask(arm, matrix.draw(arm, room, rng))

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb scores in [0, 1], NaN where unscored."""
        self._stopping.tell(batch, self._matrix.tell(batch, outcomes))

    def decision(self) -> Decision:
        """Recommend the arm with the highest mean of those that can be the best."""
        return self._stopping.decision()

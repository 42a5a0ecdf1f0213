"""Row Mean Imputation: random pairs, arms ranked by their mean observed score."""

import numpy as np

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import StoppedSelector, Stopping, Variant
from winnow.algorithms.protocols import Batch


class RowMean(StoppedSelector):
    """Propose pairs drawn uniformly from all free ones: the baseline that does not adapt.

    The "mended" variant adapts in one way: with `delta`, eliminated arms are not proposed again.

    Args:
        config: The problem and the common parameters.
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" proposes and
            stops as published.

    Source: Zhou et al. (2024), "On Speeding Up Language Model Evaluation", Algorithm 3 (Row Mean Imputation).
    """

    def __init__(self, config: BestMeanConfig, *, variant: Variant = "mended") -> None:
        self._batch_size = config.batch_size
        self._matrix = ScoreMatrix(config)
        self._stopping = Stopping(config, self._matrix, variant)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch of random pairs, grouped by arm."""
        room = self._stopping.room(self._batch_size)
        return self._matrix.ask_uniformly(room, rng, self._stopping.worth_asking)

"""LRF: random pairs, arms ranked by the mean of their row completed by low-rank factorisations."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import Stopping, Variant
from winnow.algorithms.decision import Decision
from winnow.algorithms.papers.best_mean.als import EnsembleAls
from winnow.algorithms.papers.best_mean.predictions.completion import Completion
from winnow.algorithms.protocols import Batch


class Lrf:
    """Propose pairs drawn uniformly from all free ones, and predict the rest: completion without adaptation.

    The paper's listing draws distinct arms and distinct examples in every batch, so that a batch has at most
    one pair of each; its text specifies random pairs, which this follows.

    Args:
        config: The problem and the common parameters.
        rank: Rank of the factorisations, at least 1.
        members: Number of fitted factorisations, at least 1.
        ridge: Penalty on the factors, positive.
        sweeps: Number of improvements of each factorisation, at least 1.
        drop: Share of the scores that each factorisation omits, in [0, 1).
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" as
            published.

    Source: Zhou et al. (2024), "On Speeding Up Language Model Evaluation", Algorithm 5 (LRF).
    """

    def __init__(
        self,
        config: BestMeanConfig,
        *,
        rank: int = 1,
        members: int = 64,
        ridge: float = 0.1,
        sweeps: int = 10,
        drop: float = 0.05,
        variant: Variant = "mended",
    ) -> None:
        self._batch_size = config.batch_size
        self._matrix = ScoreMatrix(config)
        self._stopping = Stopping(config, self._matrix, variant)
        als = EnsembleAls(rank=rank, members=members, ridge=ridge, sweeps=sweeps, drop=drop)
        self._completion = Completion(self._matrix, als)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch over all arms, grouped by arm."""
        room = self._stopping.room(self._batch_size)
        return self._matrix.ask_uniformly(room, rng, self._stopping.worth_asking)

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed and pending."""
        self._matrix.ask(batch.arms, batch.examples)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb scores in [0, 1], NaN if unscored."""
        scores = self._matrix.tell(batch, outcomes)
        self._completion.tell(batch, scores)
        self._stopping.tell(batch, scores)

    def decision(self) -> Decision:
        """Recommend the arm with the highest completed mean of those that can be the best."""
        return self._stopping.decision(self._completion.means)

"""Baselines that do not adapt.

A smaller benchmark, and random pairs completed by low-rank models.
"""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import StoppedSelector, Stopping, Variant
from winnow.algorithms.papers.best_mean.completion import Completion, EnsembleAls
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import FloatArray


class FilledSubset(StoppedSelector):
    """Propose all arms on the same random examples: the baseline that evaluates a smaller benchmark.

    A batch has as many whole examples as fit in `batch_size`, at least one. It is larger than `batch_size` if
    there are more than `batch_size` arms. Only the budget can leave an example incomplete.

    With variant "mended" and `delta`, eliminated arms get no further examples.

    Args:
        config: The problem and the common parameters.
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" proposes and
            stops as published.

    Source: Zhou et al. (2024), "On Speeding Up Language Model Evaluation", Algorithm 4 (Filled Subset).
    """

    def __init__(self, config: BestMeanConfig, *, variant: Variant = "mended") -> None:
        self._batch_size = config.batch_size
        self._matrix = ScoreMatrix(config)
        self._stopping = Stopping(config, self._matrix, variant)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose all free pairs of one or more examples, grouped by example."""
        matrix, room = self._matrix, self._stopping.room(max(self._batch_size, self._matrix.n_arms))
        # If the budget excludes arms from the last example, choose them before the example is drawn.
        # Otherwise an arm would get it only if earlier arms have no free pair on it, and the arm's examples
        # would not be uniform draws.
        arms = np.flatnonzero(self._stopping.worth_asking & (matrix.free_of_arm > 0))[:room]
        if arms.size == 0:
            return EMPTY_BATCH
        examples = matrix.open_examples(arms)
        whole = max(1, min(self._batch_size, room) // len(arms))
        chosen = rng.choice(examples, size=min(whole, examples.size), replace=False)
        columns, places = np.nonzero(matrix.is_free(arms, chosen[:, np.newaxis]))
        return matrix.ask(arms[places], chosen[columns])


class Lrf(StoppedSelector):
    """Propose pairs drawn uniformly from all free pairs, and predict the rest: completion without adaptation.

    The paper's listing draws distinct arms and distinct examples in every batch, so that a batch contains
    each arm and each example at most once. Its text specifies random pairs, which this class proposes.

    Args:
        config: The problem and the common parameters.
        rank: Rank of the factorisations, at least 1.
        members: Number of fitted factorisations, at least 1.
        ridge: Penalty on the factors, positive.
        sweeps: Number of improvements of each factorisation, at least 1.
        drop: Share of the scores that each factorisation omits, in [0, 1).
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" proposes and
            stops as published.

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
        """Propose a batch of random pairs, grouped by arm."""
        room = self._stopping.room(self._batch_size)
        return self._matrix.ask_uniformly(room, rng, self._stopping.worth_asking)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [0, 1], NaN if unscored."""
        scores = self._matrix.tell(batch, outcomes)
        self._completion.tell(batch, scores)
        self._stopping.tell(batch, scores)

    def _ranking(self) -> FloatArray:
        return self._completion.means

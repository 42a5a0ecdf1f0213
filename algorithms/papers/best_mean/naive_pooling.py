"""Naive-Pooling: UCB-E that treats predicted scores as real ones."""

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import Stopping, Variant
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.best_mean.predictions.base import LowRankPredictions
from winnow.algorithms.papers.best_mean.pulls import Pulls
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import FloatArray, IntArray


class NaivePooling:
    """Propose the arm with the highest completed mean plus sqrt(a / observed pairs), on random examples.

    The observed scores and the predictions of all others are averaged as if both were scores: the baseline
    that shows the bias that PULSE corrects. The ranking is as biased as the predictions; estimates and
    intervals do not use them, and stay valid. Before the first fit arms are ranked by the mean of their
    scores. Unscored pairs are left out of the ranking.

    Args:
        config: The problem and the common parameters.
        history: Scores of other models on the same examples, shape (M, n), in [0, 1], NaN if missing; None to
            learn from this campaign's scores alone.
        rank: Factors of the low-rank model, at least 1, reduced to the number of arms or of rows of the
            history if above it; None for 64 with a history and 4 without.
        ridge: lambda in loss (1), positive, for fits of examples' factors; `low_rank.cross_validation`
            chooses one. None for a weight derived from the number of scores.
        tau: Rounds from one fit to the next, at least 1; see `LowRankPredictions` for the part that is
            refitted.
        a: Weight of uncertainty, non-negative.
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" as
            published.
        first_pull: Examples of the first pull of an arm, at least 1; None for 8. Not with "paper", where a
            round is one pull.
        pull: Examples of each later one, at least 1; None for 8. Not with "paper".

    Source: Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via Low-Rank
    Factorization", Section 4 (Naive-Pooling).
    """

    def __init__(
        self,
        config: BestMeanConfig,
        *,
        history: FloatArray | None = None,
        rank: int | None = None,
        ridge: float | None = None,
        tau: int = 1000,
        a: float = 1.0,
        variant: Variant = "mended",
        first_pull: int | None = None,
        pull: int | None = None,
    ) -> None:
        if not 0.0 <= a < np.inf:
            raise InvalidParameter("a", a, "non-negative and finite")
        self._a = a
        self._n_examples = config.n_examples
        self._matrix = ScoreMatrix(config)
        self._predictions = LowRankPredictions(config, history=history, rank=rank, ridge=ridge, tau=tau)
        self._predicted_sums: FloatArray | None = None  # (K,) over the unobserved examples
        self._stopping = Stopping(config, self._matrix, variant)
        self._pulls = Pulls(config, self._matrix, self._stopping, variant, first_pull, pull)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a round of pulls."""
        ranking = self._ranking()

        def bounds(asked: IntArray) -> FloatArray:
            return np.where(np.isnan(ranking), np.inf, ranking + np.sqrt(self._a / np.maximum(asked, 1)))

        return self._pulls.ask(bounds, rng)

    def take_up(self, batch: Batch) -> None:
        """Register a batch as proposed and pending."""
        self._matrix.ask(batch.arms, batch.examples)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Absorb scores in [0, 1], NaN if unscored."""
        scores = self._matrix.tell(batch, outcomes)
        for arm in map(int, np.unique(batch.arms)):
            examples = batch.examples[batch.arms == arm]
            self._predictions.tell(arm, examples, scores[batch.arms == arm])
            if self._predicted_sums is not None:
                self._predicted_sums[arm] -= self._predictions.of_pairs(arm, examples).sum()
        self._stopping.tell(batch, scores)
        if self._predictions.end_round(bool((self._matrix.told[self._matrix.active] > 0).all())):
            self._predicted_sums = self._predictions.sums_of_untold()

    def decision(self) -> Decision:
        """Recommend the arm with the highest completed mean of those that can be the best."""
        return self._stopping.decision(self._ranking())

    def _ranking(self) -> FloatArray:
        matrix = self._matrix
        if self._predicted_sums is None:
            return matrix.means
        left = self._n_examples - matrix.told
        completed = np.full(matrix.n_arms, np.nan)
        np.divide(
            matrix.sums + np.where(left > 0, self._predicted_sums, 0.0),
            matrix.scored + left,
            out=completed,
            where=matrix.scored > 0,
        )
        return completed

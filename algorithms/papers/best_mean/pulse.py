"""UCB-E on predicted scores.

They are used as control variates (PULSE) or as if observed (Naive-Pooling).
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import (
    StoppedSelector,
    Stopping,
    Variant,
    interval_alpha,
    single_levels,
)
from winnow.algorithms.bounds.prediction_powered import PredictionPoweredIntervals
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.best_mean.low_rank_predictions import LowRankPredictions
from winnow.algorithms.papers.best_mean.prediction_means import DifferenceMeans, OneStepMeans
from winnow.algorithms.papers.best_mean.ucb_e import Pulls
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import FloatArray

Estimate = Literal["difference", "one-step"]
"""Estimate by which arms are ranked: see `DifferenceMeans` and `OneStepMeans`."""


class Pulse(StoppedSelector):
    """Propose the arm whose estimate plus sqrt(a / observed pairs) is highest, on random examples.

    A low-rank model predicts the scores of all pairs. It is fitted when every arm has an observed batch, and
    again every `tau` rounds for parts whose scores have grown by a quarter. The estimates that rank the arms,
    and the intervals, use its predictions as control variates: they are valid for any predictions, and better
    predictions make them narrower. An arm without a score has an infinite bound; ties are broken as in UCB-E.

    The published one-step estimate of an arm is the mean over its pulls, the first ones included, so it is
    only a ranking score: it often lies outside the interval, and errors of the first pulls persist in it. The
    estimates of a decision are the difference estimates of `PredictionPoweredIntervals`.

    Departures from the paper: a fully observed arm is ranked by its mean, which is then known. The control
    weight of a batch and unscored pairs are as described in `prediction_means`, the weight of the ridge as in
    `factor_model`. The first batch of an arm, drawn before there are predictions, is the first of its
    one-step estimates.

    Args:
        config: The problem and the common parameters.
        history: Scores of other models on the same examples, shape (M, n), in [0, 1], NaN if missing; None to
            learn from this campaign's scores alone.
        rank: Number of factors of the low-rank model, at least 1, reduced to the number of arms, or of rows
            of the history, if it is larger. None for 64 with a history and 4 without.
        ridge: lambda in loss (1), positive, for fits of examples' factors; `low_rank.cross_validation`
            chooses one. None for a weight derived from the number of scores.
        tau: Number of rounds from one fit to the next, at least 1; see `LowRankPredictions` for the part that
            is refitted.
        a: Weight of uncertainty, non-negative.
        estimate: The estimate that ranks the arms: "difference", or "one-step" as published; None for
            "difference", and for "one-step" with variant "paper".
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" proposes and
            stops as published.
        first_pull: Number of examples of the first pull of an arm, at least 1; None for 8. Not with "paper",
            where a round is one pull.
        pull: Number of examples of each later pull, at least 1; None for 8. Not with "paper".

    Source: Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via Low-Rank
    Factorization", Algorithm 1 (PULSE).
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
        estimate: Estimate | None = None,
        variant: Variant = "mended",
        first_pull: int | None = None,
        pull: int | None = None,
    ) -> None:
        if not 0.0 <= a < np.inf:
            raise InvalidParameter("a", a, "non-negative and finite")
        self._a = a
        self._matrix = ScoreMatrix(config)
        is_one_step = (estimate or ("one-step" if variant == "paper" else "difference")) == "one-step"
        means = OneStepMeans if is_one_step else DifferenceMeans
        self._means = means(config.n_arms, config.n_examples)
        self._predictions = LowRankPredictions(config, history=history, rank=rank, ridge=ridge, tau=tau)
        self._intervals = (
            PredictionPoweredIntervals(
                config.n_arms,
                config.n_examples,
                interval_alpha(config),
                single=single_levels(config, variant),
            )
            if config.intervals
            else None
        )
        self._stopping = Stopping(config, self._matrix, variant, self._intervals)
        self._pulls = Pulls(config, self._matrix, self._stopping, variant, first_pull, pull)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a round of pulls."""
        return self._pulls.ask(self._ranking(), self._a, rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [0, 1], NaN if unscored."""
        scores = self._matrix.tell(batch, outcomes)
        for arm in map(int, np.unique(batch.arms)):
            examples, of_arm = batch.examples[batch.arms == arm], scores[batch.arms == arm]
            predicted = self._predictions.of_arm(arm)
            if predicted is not None and self._intervals is not None:
                self._intervals.announce(arm, predicted.draws(examples))
            self._means.pull(arm, examples, of_arm, predicted)
            self._predictions.tell(arm, examples, of_arm)
        self._stopping.tell(batch, scores)
        self._predictions.end_round(bool((self._matrix.told[self._matrix.active] > 0).all()))

    def _ranking(self) -> FloatArray:
        return self._means.estimates


class NaivePooling(StoppedSelector):
    """Propose the arm with the highest completed mean plus sqrt(a / observed pairs), on random examples.

    The observed scores and the predictions of all other pairs are averaged as if both were scores: the
    baseline that shows the bias that PULSE corrects. The ranking is as biased as the predictions; estimates
    and intervals do not use them, and stay valid. Before the first fit arms are ranked by the mean of their
    scores. Unscored pairs are left out of the ranking.

    Args:
        config: The problem and the common parameters.
        history: Scores of other models on the same examples, shape (M, n), in [0, 1], NaN if missing; None to
            learn from this campaign's scores alone.
        rank: Number of factors of the low-rank model, at least 1, reduced to the number of arms, or of rows
            of the history, if it is larger. None for 64 with a history and 4 without.
        ridge: lambda in loss (1), positive, for fits of examples' factors; `low_rank.cross_validation`
            chooses one. None for a weight derived from the number of scores.
        tau: Number of rounds from one fit to the next, at least 1; see `LowRankPredictions` for the part that
            is refitted.
        a: Weight of uncertainty, non-negative.
        variant: "mended" proposes and stops as docs/how-the-intervals-stop.md describes; "paper" proposes and
            stops as published.
        first_pull: Number of examples of the first pull of an arm, at least 1; None for 8. Not with "paper",
            where a round is one pull.
        pull: Number of examples of each later pull, at least 1; None for 8. Not with "paper".

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
        return self._pulls.ask(self._ranking(), self._a, rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe scores in [0, 1], NaN if unscored."""
        scores = self._matrix.tell(batch, outcomes)
        for arm in map(int, np.unique(batch.arms)):
            examples = batch.examples[batch.arms == arm]
            self._predictions.tell(arm, examples, scores[batch.arms == arm])
            if self._predicted_sums is not None:
                self._predicted_sums[arm] -= self._predictions.of_pairs(arm, examples).sum()
        self._stopping.tell(batch, scores)
        if self._predictions.end_round(bool((self._matrix.told[self._matrix.active] > 0).all())):
            self._predicted_sums = self._predictions.sums_of_untold()

    def _ranking(self) -> FloatArray:
        """Mean of each arm's scores and predictions together.

        Before the first fit, the mean of its scores.
        """
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

"""Difference estimates of the arms' means: predictions remove part of the sampling noise.

Letters as in `prediction_powered`. Before the t-th draw of an arm, S_{t-1} is the sum of the observed scores,
u_t the number of examples left and sbar_t the mean of their predicted scores s; w_t is a weight in [0, 1].
Then

    theta_t = (S_{t-1} + u_t (x_t - w_t (s_t - sbar_t))) / n

has the mean of the arm as its expectation given the past, for any predictions and weight that are fixed by
the past, because the draw is uniform. So has any average of thetas whose weights depend only on t. Given the
past the deviation of theta_t is proportional to u_t, and two thetas are uncorrelated, so the best weights are
1 / u_t^2. Without predictions this is as accurate as the plain mean of the draws; the equal weights of
`one_step` are not, because errors of the first draws persist in them.

w_t is Cov(x, s) / Var(s) in the earlier draws, which minimises the variance of x - w s: uninformative
predictions get a weight near 0.

Source for the weight w: Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via
Low-Rank Factorization", Lemma 2.
"""

import numpy as np

from winnow.algorithms.bounds.prediction_powered import PRIOR_SQUARES, PRIOR_WEIGHT
from winnow.algorithms.papers.best_mean.predictions.base import ArmPredictions
from winnow.algorithms.state.arrays import FloatArray, IntArray


class DifferenceMeans:
    """Running difference estimates of all arms.

    An unscored pair leaves the population, as in `OneStepMeans`. Once an arm is fully observed, its estimate
    is its known mean.
    """

    def __init__(self, n_arms: int, n_examples: int) -> None:
        self._n_examples = n_examples
        self._told = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._scored = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._sums = np.zeros(n_arms)  # (K,) of the scores
        self._step_sums = np.zeros(n_arms)  # (K,) of theta / u^2
        self._step_weights = np.zeros(n_arms)  # (K,) of 1 / u^2
        self._squares = np.full(n_arms, PRIOR_SQUARES)  # (K,) of s - sbar
        self._products = np.full(n_arms, PRIOR_SQUARES * PRIOR_WEIGHT)  # (K,) of s - sbar with x - its mean

    @property
    def estimates(self) -> FloatArray:
        """Estimates, shape (K,); NaN before an arm's first score."""
        estimates = np.full(len(self._told), np.nan)
        has_score = self._scored > 0
        np.divide(self._step_sums, self._step_weights, out=estimates, where=has_score)
        is_known = has_score & (self._told == self._n_examples)
        np.divide(self._sums, self._scored, out=estimates, where=is_known)
        return estimates

    def weight(self, arm: int) -> float:
        """Weight w for an arm's next pull, in [0, 1]."""
        return float(np.clip(self._products[arm] / self._squares[arm], 0.0, 1.0))

    def pull(
        self, arm: int, examples: IntArray, scores: FloatArray, predicted: ArmPredictions | None
    ) -> None:
        """Absorb a pull, drawn uniformly from the arm's unobserved examples.

        Args:
            arm: The arm.
            examples: Shape (B,), in the order they were drawn.
            scores: Shape (B,), in [0, 1], NaN if unscored.
            predicted: Predictions from before the pull, which is then removed from them; None without
                predictions.
        """
        controls = np.zeros(len(scores))  # (B,)
        if predicted is not None:
            draws = predicted.draws(examples)
            surprises = draws.values - draws.means
            controls = self.weight(arm) * surprises
            self._learn(arm, surprises, scores)
            predicted.remove(examples)
        self._add_steps(arm, scores, controls)
        is_scored = ~np.isnan(scores)
        self._told[arm] += len(scores)
        self._scored[arm] += np.count_nonzero(is_scored)
        self._sums[arm] += scores[is_scored].sum()

    def _add_steps(self, arm: int, scores: FloatArray, controls: FloatArray) -> None:
        is_scored = ~np.isnan(scores)
        known = np.where(is_scored, scores, 0.0)
        before = self._sums[arm] + known.cumsum() - known  # S_{t-1}
        left = self._n_examples - self._told[arm] - np.arange(len(scores))  # u_t
        population = self._scored[arm] + is_scored.cumsum() - is_scored + left
        steps = (before + left * (known - controls)) / population
        weights = np.where(is_scored, 1.0 / np.square(left, dtype=np.float64), 0.0)
        self._step_sums[arm] += steps @ weights
        self._step_weights[arm] += weights.sum()

    def _learn(self, arm: int, surprises: FloatArray, scores: FloatArray) -> None:
        is_scored = ~np.isnan(scores)
        mean = (0.5 + self._sums[arm]) / (1 + self._scored[arm])
        self._squares[arm] += surprises[is_scored] @ surprises[is_scored]
        self._products[arm] += surprises[is_scored] @ (scores[is_scored] - mean)

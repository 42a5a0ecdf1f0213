"""Estimates of the arms' means that predictions make less variable but never bias.

**Difference.** Letters as in `prediction_powered`. Before the t-th draw of an arm, S_{t-1} is the sum of the
observed scores, u_t the number of examples left, and sbar_t the mean of their predicted scores s; w_t is a
weight in [0, 1]. Then

    theta_t = (S_{t-1} + u_t (x_t - w_t (s_t - sbar_t))) / n

has the mean of the arm as its expectation given the past, for any predictions and weight that are fixed by
the past, because the draw is uniform. So has any average of thetas whose weights depend only on t. Given the
past, the deviation of theta_t is proportional to u_t, and two thetas are uncorrelated, so the best weights
are 1 / u_t^2. Without predictions this is as accurate as the plain mean of the draws. The equal weights of
the one-step estimate are less accurate, because errors of the first draws persist in them.

w_t is Cov(x, s) / Var(s) in the earlier draws, which minimises the variance of x - w s: uninformative
predictions get a weight near 0.

Source for the weight w: Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via
Low-Rank Factorization", Lemma 2.

**One-step.** Letters as in Tolochinsky et al. (2026): n examples. For one arm, O is the set of examples
observed before a pull, U the rest, B the size of the pull, pi = B/|U|. S are the scores, S^ the predicted
scores, lambda the control weight; F is the sum of S^ over U, Phi the sum of S^ squared over U, Z the sum over
the pull of (S - lambda S^)/pi, and Zbar the mean of Z over past pulls.

    theta = (sum over O of S + lambda F + Z) / n            one step
    mu    = mean of theta over the arm's pulls              ranks the arms

For any lambda and S^ that are fixed by the past, E[theta | past] is the arm's mean (Lemma 1), if the pull is
a uniform draw from U. So the weight and the predictions used for a pull are those from before its scores were
observed. With several batches in flight, the past consists of the observations: pending batches are uniform
draws on which nothing depended.
"""

import numpy as np

from winnow.algorithms.bounds.prediction_powered import PRIOR_SQUARES, PRIOR_WEIGHT
from winnow.algorithms.papers.best_mean.low_rank_predictions import ArmPredictions
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


class DifferenceMeans:
    """Running difference estimates of the means of all arms.

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
        """Update an arm with a pull, drawn uniformly from its unobserved examples.

        Args:
            arm: The arm.
            examples: Shape (B,), in the order of the draws.
            scores: Shape (B,), in [0, 1], NaN if unscored.
            predicted: Predictions from before the pull, from which the pull is then removed; None without
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


def control_weight(predicted: ArmPredictions, size: int, mean_residual: float) -> float:
    """Control weight lambda for a pull, from the past only.

    1 - lambda minimises a proxy of E[(Z - Zbar)^2] in which the predictions replace the unknown scores:
    (1 - lambda)^2 D - 2 (1 - lambda) F Zbar. D is the variance of a sum of B predictions drawn from U and
    divided by pi, plus F^2.

    Args:
        predicted: Predictions of the arm over U.
        size: B, in [1, |U|].
        mean_residual: Zbar, NaN before the first pull.

    Returns:
        clip(1 - F Zbar / D, 0, 1); 1 if Zbar is NaN.

    Source: Tolochinsky et al. (2026), Step 3 and Appendix A.5, where B = 1 and D = |U| Phi. Departure: for B
    > 1 the paper keeps that D, which overstates the variance of a batch. D here uses the finite-population
    variance of a mean of B, and equals |U| Phi at B = 1.
    """
    left, total = predicted.left, predicted.total
    if np.isnan(mean_residual):
        return 1.0
    deviations = max(0.0, predicted.squares - total**2 / left)
    variance = left**2 * (1.0 / size - 1.0 / left) * deviations / (left - 1) if left > 1 else 0.0
    proxy = variance + total**2
    if proxy <= 0.0:
        return 1.0  # every prediction is 0, so the weight has no effect
    return min(1.0, max(0.0, 1.0 - total * mean_residual / proxy))


class OneStepMeans:
    """Running one-step estimates of the means of all arms.

    An unscored pair leaves the population: it counts neither in O, nor in n, nor in the divisor B. If pairs
    are unscored independently of their scores and predictions, this causes no bias. Without unscored pairs
    the formulas of this module hold unchanged.
    """

    def __init__(self, n_arms: int, n_examples: int) -> None:
        self._n_examples = n_examples
        self._told = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._scored = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._sums = np.zeros(n_arms)  # (K,) of the scores
        self._step_sums = np.zeros(n_arms)  # (K,) of theta
        self._steps = np.zeros(n_arms, dtype=np.int64)  # (K,) pulls with a theta
        self._residual_sums = np.zeros(n_arms)  # (K,) of Z
        self._residuals = np.zeros(n_arms, dtype=np.int64)  # (K,) pulls with a Z

    @property
    def estimates(self) -> FloatArray:
        """mu, shape (K,); NaN before an arm's first score.

        Departure: once an arm is fully observed, its estimate is its known mean. The mean of the one-step
        estimates is unbiased, but does not equal the known mean even then.
        """
        estimates = np.full(len(self._told), np.nan)
        np.divide(self._step_sums, self._steps, out=estimates, where=self._steps > 0)
        is_known = (self._told == self._n_examples) & (self._scored > 0)
        np.divide(self._sums, self._scored, out=estimates, where=is_known)
        return estimates

    def weight(self, arm: int, size: int, predicted: ArmPredictions | None) -> float:
        """Control weight for an arm's next pull of this size; 0 without predictions."""
        if predicted is None:
            return 0.0
        pulls = self._residuals[arm]
        return control_weight(predicted, size, self._residual_sums[arm] / pulls if pulls else np.nan)

    def pull(
        self, arm: int, examples: IntArray, scores: FloatArray, predicted: ArmPredictions | None
    ) -> float:
        """Update an arm with a pull, drawn uniformly from its unobserved examples.

        Args:
            arm: The arm.
            examples: Shape (B,).
            scores: Shape (B,), in [0, 1], NaN if unscored.
            predicted: Predictions from before the pull, from which the pull is then removed; None without
                predictions.

        Returns:
            theta; NaN if no pair was scored.
        """
        is_scored = ~np.isnan(scores)
        step = self._step(arm, examples, scores, is_scored, predicted) if is_scored.any() else np.nan
        self._told[arm] += len(scores)
        self._scored[arm] += np.count_nonzero(is_scored)
        self._sums[arm] += scores[is_scored].sum()
        if predicted is not None:
            predicted.remove(examples)
        return step

    def _step(
        self,
        arm: int,
        examples: IntArray,
        scores: FloatArray,
        is_scored: BoolArray,
        predicted: ArmPredictions | None,
    ) -> float:
        weight = self.weight(arm, len(scores), predicted)
        left = self._n_examples - self._told[arm]
        surprises, expected = scores[is_scored], 0.0
        if predicted is not None:
            surprises = surprises - weight * predicted.of(examples[is_scored])
            expected = weight * predicted.total
        residual = left * surprises.mean()
        step = float((self._sums[arm] + expected + residual) / (self._scored[arm] + left))
        self._step_sums[arm] += step
        self._steps[arm] += 1
        if predicted is not None:
            self._residual_sums[arm] += residual
            self._residuals[arm] += 1
        return step

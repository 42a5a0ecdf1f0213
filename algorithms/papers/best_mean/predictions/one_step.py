"""One-step estimates of the arms' means: less variable by predicted scores, and never biased.

Letters as in Tolochinsky et al. (2026): n examples; of one arm, O those observed before a pull, U the rest, B
the size of the pull, pi = B/|U|; S the scores, S^ the predicted ones, lambda the control weight; F the sum of
S^ over U, Phi that of S^ squared, Z = sum over the pull of (S - lambda S^)/pi, Zbar its mean over past pulls.

    theta = (sum over O of S + lambda F + Z) / n            one step mu    = mean of theta over the arm's
    pulls              ranks the arms

For any lambda and S^ that are fixed by the past, E[theta | past] is the arm's mean (Lemma 1), if the pull is
a uniform draw from U. So the weight and the predictions used for a pull are those from before its scores were
observed. With several batches in flight the past is the observations: pending batches are themselves uniform
draws that nothing depended on.
"""

import numpy as np

from winnow.algorithms.papers.best_mean.predictions.base import ArmPredictions
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


def control_weight(predicted: ArmPredictions, size: int, mean_residual: float) -> float:
    """Compute the control weight lambda for a pull, from the past only.

    1 - lambda minimises a proxy of E[(Z - Zbar)^2], in which the predictions stand in for the unknown scores:
    (1 - lambda)^2 D - 2 (1 - lambda) F Zbar, with D the variance of a sum of B predictions drawn from U and
    divided by pi, plus F^2.

    Args:
        predicted: Predictions of the arm over U.
        size: B, in [1, |U|].
        mean_residual: Zbar, NaN before the first pull.

    Returns:
        clip(1 - F Zbar / D, 0, 1), and 1 without Zbar.

    Source: Tolochinsky et al. (2026), Step 3 and Appendix A.5, where B = 1 and D = |U| Phi. Departure: for B
    > 1 the paper keeps that D, which overstates the variance of a batch; ours takes the finite-population
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
    """Running one-step estimates of all arms.

    An unscored pair leaves the population: it counts neither in O, nor in n, nor in the divisor B. If pairs
    go unscored independently of their scores and predictions, this causes no bias. Without unscored pairs the
    formulas above hold unchanged.
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
        estimates is unbiased, but stays uncertain even then.
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
        """Absorb a pull, drawn uniformly from the arm's unobserved examples.

        Args:
            arm: The arm.
            examples: Shape (B,).
            scores: Shape (B,), in [0, 1], NaN if unscored.
            predicted: Predictions from before the pull, which is then removed from them; None without
                predictions.

        Returns:
            theta, NaN if nothing was scored.
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

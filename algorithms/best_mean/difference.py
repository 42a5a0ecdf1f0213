"""Difference estimates of the means: what predictions explain of the luck of the draw is taken off.

Letters as in `prediction_powered`. The t-th draw of an arm has the score x_t and the control
c_t = w_t (s_t - sbar_t), s the predicted scores, sbar_t their mean over what was untold; predictions and
weight are fixed by what was told before the draw, so c_t has mean 0 given that, whatever they are.

    estimate = (sum of x + untold * mean of (x - c)) / (told + untold)

So after a given number of draws its expectation is the mean of the arm. Each draw has one vote, where a mean
of one-step estimates never forgets the first ones. The weight is Cov(x, s - sbar) / Var(s - sbar) of the
draws before, the best one of a linear control: predictions that say nothing get a weight near 0.

Source for the weight: Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via
Low-Rank Factorization", Lemma 2.
"""

import numpy as np

from algorithms.arrays import FloatArray, IntArray
from algorithms.best_mean.arm_predictions import ArmPredictions
from algorithms.prediction_powered import PRIOR_SQUARES, PRIOR_WEIGHT


class DifferenceMeans:
    """The running difference estimates of all arms.

    An unscored pair leaves the population, as in `OneStepMeans`.
    """

    def __init__(self, n_arms: int, n_examples: int) -> None:
        self._n_examples = n_examples
        self._told = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._scored = np.zeros(n_arms, dtype=np.int64)  # (K,)
        self._sums = np.zeros(n_arms)  # (K,) of x
        self._controls = np.zeros(n_arms)  # (K,) of c
        self._squares = np.full(n_arms, PRIOR_SQUARES)  # (K,) of s - sbar
        self._products = np.full(n_arms, PRIOR_SQUARES * PRIOR_WEIGHT)  # (K,) of s - sbar with x - its mean

    @property
    def estimates(self) -> FloatArray:
        """Shape (K,); NaN before an arm's first score. Once all of an arm is told, its mean."""
        estimates = np.full(len(self._told), np.nan)
        untold = self._n_examples - self._told
        share = untold / np.maximum(self._scored + untold, 1)
        np.divide(self._sums - share * self._controls, self._scored, out=estimates, where=self._scored > 0)
        return estimates

    def weight(self, arm: int) -> float:
        """The weight of the controls of an arm's next pull, in [0, 1]."""
        return float(np.clip(self._products[arm] / self._squares[arm], 0.0, 1.0))

    def pull(
        self, arm: int, examples: IntArray, scores: FloatArray, predicted: ArmPredictions | None
    ) -> None:
        """Absorb a pull, drawn uniformly from the arm's examples not told before.

        Args:
            arm: The arm.
            examples: Shape (B,).
            scores: Shape (B,), in [0, 1], NaN where unscored.
            predicted: The predictions from before the pull, which is then removed from them; None if there
                are none.
        """
        is_scored = ~np.isnan(scores)
        known = scores[is_scored]
        if predicted is not None:
            draws = predicted.draws(examples)
            surprises = (draws.values - draws.means)[is_scored]
            self._controls[arm] += self.weight(arm) * surprises.sum()
            mean = (0.5 + self._sums[arm]) / (1 + self._scored[arm])
            self._squares[arm] += surprises @ surprises
            self._products[arm] += surprises @ (known - mean)
            predicted.remove(examples)
        self._told[arm] += len(scores)
        self._scored[arm] += len(known)
        self._sums[arm] += known.sum()

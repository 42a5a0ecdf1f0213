"""The predicted scores of one arm, and what they add up to over the examples not told yet."""

from dataclasses import dataclass

import numpy as np

from winnow.algorithms.bounds.prediction_powered import PredictedDraws
from winnow.algorithms.low_rank.factor_model import Floats
from winnow.algorithms.state.arrays import FloatArray, IntArray


@dataclass(slots=True)
class ArmPredictions:
    """Predictions with their running sums; letters as in `one_step`.

    Single precision is enough for the predictions: any prediction leaves an estimate unbiased, and the sums
    are those of the very numbers that stand here.
    """

    scores: Floats
    """S^, shape (n,), in [0, 1]."""
    left: int
    """|U|."""
    total: float
    """F."""
    squares: float
    """Phi."""
    least: float
    """A lower bound of S^ over U."""
    most: float
    """An upper bound of S^ over U."""

    @classmethod
    def untold(cls, scores: Floats, told: IntArray) -> "ArmPredictions":
        """Sum up predictions, shape (n,), over all examples but those told, shape (|O|,)."""
        rest = np.delete(scores, told).astype(np.float64)
        least, most = (float(rest.min()), float(rest.max())) if rest.size else (0.0, 0.0)
        return cls(scores, rest.size, float(rest.sum()), float((rest * rest).sum()), least, most)

    def of(self, examples: IntArray) -> FloatArray:
        """The predictions of some examples, shape (B,)."""
        return self.scores[examples].astype(np.float64)

    def draws(self, examples: IntArray) -> PredictedDraws:
        """What is predicted for a pull of these examples in this order, shape (B,)."""
        values = self.of(examples)
        before = values.cumsum() - values
        means = (self.total - before) / (self.left - np.arange(len(values)))
        return PredictedDraws(values, means, self.least, self.most)

    def remove(self, examples: IntArray) -> None:
        """Take a pull out of U and of the sums; it costs O(B), where summing up anew would cost O(n)."""
        values = self.of(examples)
        self.left -= len(examples)
        self.total -= float(values.sum())
        self.squares -= float(values @ values)

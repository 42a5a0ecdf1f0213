"""The score matrix with its unobserved pairs predicted by an ensemble of low-rank factorisations."""

import numpy as np

from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.best_mean.als import EnsembleAls
from winnow.algorithms.protocols import Batch
from winnow.algorithms.state.arrays import FloatArray

FIT_SEED = 0x5C0E5  # for the entries that fits drop, together with the number of observed pairs


class Completion:
    """Observed scores, with predictions for the rest.

    Nothing is predicted during the warm-up, until the share `warm_up` of all K n pairs was observed.
    Afterwards, the ensemble is fitted when it is next read, and only then: the fit is a function of the
    observed scores, so reading it in between, or resuming, changes nothing.

    Unscored pairs are unknown to the fit, and no mean includes them, because they stay unknown.
    """

    def __init__(self, matrix: ScoreMatrix, als: EnsembleAls, warm_up: float = 0.0) -> None:
        if not 0.0 <= warm_up <= 1.0:
            raise InvalidParameter("warm_up", warm_up, "in [0, 1]")
        self._matrix = matrix
        self._als = als
        shape = (matrix.n_arms, matrix.n_examples)
        self._warm_up = round(warm_up * matrix.n_arms * matrix.n_examples)
        self._scores = np.zeros(shape)  # (K, n), 0 if unknown
        self._observed = np.zeros(shape, dtype=np.bool_)  # (K, n)
        self._untold = np.ones(shape, dtype=np.bool_)  # (K, n)
        self._fit: tuple[FloatArray, FloatArray] | None = None

    def tell(self, batch: Batch, scores: FloatArray) -> None:
        """Update with scores that the matrix has accepted."""
        is_scored = ~np.isnan(scores)
        arms, examples = batch.arms[is_scored], batch.examples[is_scored]
        self._scores[arms, examples] = scores[is_scored]
        self._observed[arms, examples] = True
        self._untold[batch.arms, batch.examples] = False
        self._fit = None

    @property
    def is_warm(self) -> bool:
        """Whether the warm-up is complete."""
        return bool(self._matrix.told.sum() >= self._warm_up)

    @property
    def warm_up_left(self) -> int:
        """Number of pairs of the warm-up not proposed yet."""
        return max(0, self._warm_up - int(self._matrix.told.sum() + self._matrix.pending.sum()))

    @property
    def means(self) -> FloatArray:
        """Mean of each row, predictions included, shape (K,); NaN if the arm has no score.

        During the warm-up it is the mean of the scores.
        """
        if not self.is_warm:
            return self._matrix.means
        predicted, _ = self._predictions()
        return self._row_means(self._matrix.sums + predicted.sum(axis=1))

    @property
    def deviations(self) -> FloatArray:
        """Standard deviation of the members' predictions, shape (K, n); 0 if observed."""
        return self._predictions()[1]

    @property
    def mean_deviations(self) -> FloatArray:
        """Mean of each row's deviations, shape (K,); NaN if the arm has no score."""
        return self._row_means(self.deviations.sum(axis=1))

    def _row_means(self, sums: FloatArray) -> FloatArray:
        matrix = self._matrix
        means = np.full(matrix.n_arms, np.nan)
        counted = matrix.n_examples - (matrix.told - matrix.scored)
        np.divide(sums, counted, out=means, where=matrix.scored > 0)
        return means

    def _predictions(self) -> tuple[FloatArray, FloatArray]:
        if self._fit is None:
            rng = np.random.default_rng([FIT_SEED, int(self._matrix.told.sum())])
            mean, std = self._als.fit(self._scores, self._observed, rng).mean_and_std()
            self._fit = mean * self._untold, std * self._untold
        return self._fit

"""Predicted scores of all pairs, by a low-rank model.

The model is fitted to the observations and to earlier tables.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import csr_array

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.bounds.prediction_powered import PredictedDraws
from winnow.algorithms.errors import check_parameters
from winnow.algorithms.low_rank.factor_model import LOGISTIC, FactorModel, Floats, Row, fit_rows, safe_shares
from winnow.algorithms.low_rank.history import History, example_factors, model_for
from winnow.algorithms.low_rank.joint_fit import leading_factors, weight_of_ridge
from winnow.algorithms.state.arrays import FloatArray, IntArray

SWEEPS = 10  # suffices, because the next fit follows soon and starts from this one


def fit_observations(
    model: FactorModel,
    scores: csr_array,
    rank: int,
    ridge_weight: float,
    start: tuple[Floats, Floats] | None = None,
) -> tuple[Floats, Floats]:
    """Fit a sparsely observed table by alternating Newton steps for U and V.

    A sweep costs O(r^2) per observed entry and O(r^3) per row and column.

    Args:
        model: The loss.
        scores: Shape (M, n); the stored entries, including zeros, are the observed ones.
        rank: r, at most min(M, n).
        ridge_weight: w, positive.
        start: Initial U and V; None to start from the leading singular vectors.

    Returns:
        U of shape (M, r) and V of shape (n, r), in the precision of the scores.
    """
    turned = csr_array(scores.T.tocsr())
    if start is None:
        centred = scores.copy()
        centred.data = scores.data - model.mean(np.zeros(1, dtype=scores.dtype))
        share = scores.nnz / (scores.shape[0] * scores.shape[1])
        start = leading_factors(centred, rank, model.most_curvature * share, ridge_weight)
    u, v = start
    for _ in range(SWEEPS):
        u = u + _newton_step(model, scores, u, v, ridge_weight)
        v = v + _newton_step(model, turned, v, u, ridge_weight)
    return u, v


def _newton_step(
    model: FactorModel, scores: csr_array, moving: Floats, frozen: Floats, weight: float
) -> Floats:
    """Newton step of all rows at once; no row's step increases the loss."""
    rank = frozen.shape[1]
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    regressors = frozen[scores.indices]  # (observed, r)
    means = model.mean(np.einsum("or,or->o", moving[rows], regressors))

    def total(values: Floats, of_columns: Floats) -> Floats:
        """Sum a value times its column's entry over each row's observed entries."""
        entries = csr_array((values, scores.indices, scores.indptr), shape=scores.shape)
        sums: Floats = np.asarray(entries @ of_columns)
        return sums

    squares = np.einsum("nr,ns->nrs", frozen, frozen).reshape(-1, rank * rank)
    hessians = total(model.curvature(means), squares).reshape(-1, rank, rank)
    hessians = hessians + weight * np.eye(rank, dtype=frozen.dtype)
    slopes = total(scores.data - means, frozen) - weight * moving
    steps = np.linalg.solve(hessians, slopes[:, :, np.newaxis])[:, :, 0]
    bends = np.zeros(len(moving), dtype=frozen.dtype)
    np.maximum.at(bends, rows, model.bend * np.abs(np.einsum("or,or->o", steps[rows], regressors)))
    scaled: Floats = steps * safe_shares(bends)[:, np.newaxis]
    return scaled


@dataclass(slots=True)
class ArmPredictions:
    """Predictions for an arm, with their running sums.

    Letters as in `prediction_means`. Single precision suffices for the predictions: any prediction leaves an
    estimate unbiased, and the sums are those of exactly the stored numbers.
    """

    scores: Floats
    """S^, shape (n,), in [0, 1]."""
    left: int
    """|U|, the number of unobserved examples."""
    total: float
    """F, the sum of S^ over U."""
    squares: float
    """Phi, the sum of squares of S^ over U."""
    least: float
    """Lower bound on the predictions S^ over U."""
    most: float
    """Upper bound on the predictions S^ over U."""

    @classmethod
    def untold(cls, scores: Floats, told: IntArray) -> "ArmPredictions":
        """Create the sums of predictions over all unobserved examples.

        Args:
            scores: Shape (n,), predictions of all examples.
            told: Shape (|O|,), the observed examples.
        """
        rest = np.delete(scores, told).astype(np.float64)
        least, most = (float(rest.min()), float(rest.max())) if rest.size else (0.0, 0.0)
        return cls(scores, rest.size, float(rest.sum()), float((rest * rest).sum()), least, most)

    def of(self, examples: IntArray) -> FloatArray:
        """Predictions of some examples, shape (B,)."""
        return self.scores[examples].astype(np.float64)

    def draws(self, examples: IntArray) -> PredictedDraws:
        """Predictions for a pull of these examples in this order, shape (B,)."""
        values = self.of(examples)
        before = values.cumsum() - values
        means = (self.total - before) / (self.left - np.arange(len(values)))
        return PredictedDraws(values, means, self.least, self.most)

    def remove(self, examples: IntArray) -> None:
        """Remove a pull from U and from the sums, in O(B); summing again would cost O(n)."""
        values = self.of(examples)
        self.left -= len(examples)
        self.total -= float(values.sum())
        self.squares -= float(values @ values)


RANK_WITH_HISTORY, RANK_WITHOUT_HISTORY = 64, 4  # few scores distinguish only a few kinds of examples
RIDGE_OF_ROWS = 1.0  # the factors from a history are scaled for this value
BLOCK = 1 << 20  # predictions computed together when all are needed
GROWTH = 1.25  # factor by which the scores of a fit must grow before the fit is repeated


class LowRankPredictions:
    """Low-rank model of the arms, refitted every tau rounds.

    The first fit is made once every arm has an observation. With a history the factors of the examples are
    those fitted to the history, and fixed; the factors of the arms are refitted. Without a history, both are
    fitted to the observations. A fit starts from the previous one. There are no predictions before the first
    fit.

    A part is refitted only if its scores have grown by a quarter since its last fit. With a history, each arm
    is a part; without one, all scores together are one part. So all fits of a campaign together cost a few
    times the last fit, in proportion to the number of scores. Refitting everything every tau rounds would
    cost its square.
    """

    def __init__(
        self,
        config: BestMeanConfig,
        *,
        history: FloatArray | None,
        rank: int | None,
        ridge: float | None,
        tau: int,
    ) -> None:
        check_parameters(
            ("rank", rank, rank is None or rank >= 1, "at least 1 or None"),
            ("ridge", ridge, ridge is None or 0.0 < ridge < np.inf, "positive and finite or None"),
            ("tau", tau, tau >= 1, "at least 1"),
        )
        self._history = None if history is None else History.checked(history, config.n_examples)
        self._n_arms, self._n_examples = config.n_arms, config.n_examples
        self._rank = rank or (RANK_WITHOUT_HISTORY if history is None else RANK_WITH_HISTORY)
        self._ridge, self._tau = ridge, tau
        self._rounds = 0  # since the last fit
        self._told: list[list[IntArray]] = [[] for _ in range(config.n_arms)]
        self._scored: list[list[Row]] = [[] for _ in range(config.n_arms)]
        self._counts = np.zeros(config.n_arms, dtype=np.int64)  # (K,) scores
        self._fitted = np.zeros(config.n_arms, dtype=np.int64)  # (K,) scores in the last fit
        self._all_binary = True
        self._model: FactorModel = LOGISTIC
        self._factors: tuple[Floats, Floats] | None = None  # U (K, r) and V (n, r)
        self._arms: dict[int, ArmPredictions] = {}

    def tell(self, arm: int, examples: IntArray, scores: FloatArray) -> None:
        """Store scores of an arm, NaN if unscored, for the next fit."""
        is_scored = ~np.isnan(scores)
        self._told[arm].append(examples)
        if is_scored.any():
            self._scored[arm].append((examples[is_scored], scores[is_scored]))
            self._counts[arm] += np.count_nonzero(is_scored)
            self._all_binary &= bool(((scores == 0.0) | (scores == 1.0))[is_scored].all())

    def end_round(self, every_arm_told: bool) -> bool:
        """Count an observed round, and fit if a fit is due.

        Return whether predictions have changed.

        Args:
            every_arm_told: Whether every active arm has an observation.
        """
        self._rounds += 1
        is_due = every_arm_told if self._factors is None else self._rounds >= self._tau
        if not is_due:
            return False
        self._rounds = 0
        return self._fit_both() if self._history is None else self._fit_arms(self._history)

    def of_arm(self, arm: int) -> ArmPredictions | None:
        """Predictions of an arm, with their sums over its unobserved examples.

        None before the first fit. When examples of the arm are observed, the caller must remove them from the
        returned object.
        """
        if self._factors is None:
            return None
        if arm not in self._arms:
            u, v = self._factors
            told = np.concatenate([*self._told[arm], np.empty(0, dtype=np.int64)])
            # Such a small product is faster without BLAS threads, and einsum uses none.
            predicted = self._model.predict(np.einsum("nr,r->n", v, u[arm]))
            self._arms[arm] = ArmPredictions.untold(predicted, told)
        return self._arms[arm]

    def sums_of_untold(self) -> FloatArray:
        """Sums of predictions over each arm's unobserved examples, shape (K,).

        NaN before the first fit.
        """
        if self._factors is None:
            return np.full(self._n_arms, np.nan)
        u, v = self._factors
        sums = np.empty(self._n_arms)
        height = max(1, BLOCK // self._n_examples)
        for first in range(0, self._n_arms, height):
            predictions = self._model.predict(u[first : first + height] @ v.T)
            for row, arm in zip(predictions, range(first, first + height), strict=False):
                row[np.concatenate([*self._told[arm], np.empty(0, dtype=np.int64)])] = 0.0
            sums[first : first + height] = predictions.sum(axis=1, dtype=np.float64)
        return sums

    def of_pairs(self, arm: int, examples: IntArray) -> FloatArray:
        """Predictions of some pairs of an arm, shape (B,). Requires a fit."""
        assert self._factors is not None
        u, v = self._factors
        return self._model.predict(v[examples] @ u[arm]).astype(np.float64)

    def _rows(self, arms: IntArray) -> list[Row]:
        """Scored examples of some arms, with their scores."""
        nothing = (np.empty(0, dtype=np.int64), np.empty(0))
        rows = [list(zip(nothing, *self._scored[arm], strict=True)) for arm in arms]
        return [(np.concatenate(examples), np.concatenate(scores)) for examples, scores in rows]

    def _fit_arms(self, history: History) -> bool:
        """Fit the arms with enough new scores; return whether any arm was fitted."""
        arms = np.flatnonzero((self._counts > 0) & (self._counts >= GROWTH * self._fitted))
        if arms.size == 0:
            return False
        if self._factors is None:
            self._model, v = example_factors(history, self._rank, self._ridge)
            self._factors = (np.zeros((self._n_arms, v.shape[1]), dtype=v.dtype), v)
        u, v = self._factors
        u[arms] = fit_rows(self._model, v, self._rows(arms), u[arms], ridge_weight=RIDGE_OF_ROWS)
        self._fitted[arms] = self._counts[arms]
        for arm in arms:
            self._arms.pop(arm, None)
        return True

    def _fit_both(self) -> bool:
        """Refit arms and examples if there are enough new scores.

        Return whether a fit was made.
        """
        n_scores = int(self._counts.sum())
        if n_scores == 0 or n_scores < GROWTH * self._fitted.sum():
            return False
        model = model_for(self._all_binary)
        start = self._factors if model is self._model else None
        rows = self._rows(np.arange(self._n_arms))
        examples, scores = (np.concatenate(parts) for parts in zip(*rows, strict=True))
        ends = np.cumsum([0, *(len(of_arm) for _, of_arm in rows)])
        shape = (self._n_arms, self._n_examples)
        table = csr_array((scores.astype(np.float32), examples, ends), shape=shape)
        weight = weight_of_ridge(self._ridge, n_scores, *shape)
        self._factors = fit_observations(model, table, min(self._rank, *shape), weight, start)
        self._model = model
        self._fitted[:] = self._counts
        self._arms.clear()
        return True

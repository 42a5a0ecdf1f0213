"""Low-rank models of a table of scores.

S_ij is near mean(u_i . v_j) with r factors per row and column. Letters: M rows, n columns, r factors, U (M,
r), V (n, r), Z = U V^T the linear predictors, w the weight of the ridge. The loss is the sum over the
observed entries of loss(S_ij, Z_ij), plus w/2 (|U|^2 + |V|^2).

A model defines a loss by its derivatives; `LOGISTIC` and `LEAST_SQUARES` are the two models. Everything is
computed in the precision of the input. Single precision suffices for predictions, because every use of them
is valid for any predictions, and it halves time and memory.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import IntArray

Floats = NDArray[np.floating]
Row = tuple[IntArray, Floats]
"""Observed columns of a row and their scores, shape (c,) each."""

MOST_STEPS = 100  # of Newton's method; a few are enough
CHUNK = 1 << 22  # numbers in the largest array of a batch of regressions


@dataclass(frozen=True, slots=True, kw_only=True)
class FactorModel:
    """Loss of a score in [0, 1] given its linear predictor z, convex in z."""

    loss: Callable[[Floats, Floats], Floats]
    """Loss of each score given its predictor, element by element."""
    mean: Callable[[Floats], Floats]
    """Expected score given z; the derivative of the loss in z is mean(z) - score."""
    curvature: Callable[[Floats], Floats]
    """Second derivative of the loss in z, as a function of mean(z)."""
    most_curvature: float
    """Largest value of the curvature."""
    bend: float
    """Upper bound of the loss's third derivative divided by its second derivative."""

    def predict(self, predictors: Floats) -> Floats:
        """Predicted scores, clipped to [0, 1]."""
        return np.clip(self.mean(predictors), 0.0, 1.0)


def fit_rows(
    model: FactorModel,
    columns: Floats,
    rows: Sequence[Row],
    start: Floats,
    *,
    ridge_weight: float,
) -> Floats:
    """Fit the factors of rows with fixed column factors: one ridge regression per row.

    Newton's method (iteratively reweighted least squares) runs on many rows at once, until the largest step
    of a factor is below the fourth root of the machine precision; the remaining error is near that step
    squared. Along a step whose largest change of a predictor is b / `model.bend`, the curvature grows by at
    most exp(b t) after a share t of the step. The guaranteed decrease is largest at t = log(1 + b) / b, so
    this share is taken. With it the loss never increases, and the share is near 1 close to the minimum.

    Args:
        model: The loss.
        columns: V, shape (n, r).
        rows: k rows; a row without observations gets factors of 0.
        start: Factors to start from, shape (k, r).
        ridge_weight: w, positive.

    Returns:
        Shape (k, r), in the precision of `columns`.

    Raises:
        InvalidParameter: If factors are not finite, or the shape of `start` is wrong.
    """
    rank = columns.shape[1]
    for name, factors, shape in (("columns", columns, columns.shape), ("start", start, (len(rows), rank))):
        if factors.shape != shape:
            raise InvalidParameter(name, factors.shape, f"of shape {shape}")
        for unusable in factors[~np.isfinite(factors)][:1]:
            raise InvalidParameter(name, float(unusable), "finite numbers")
    fitted = start.astype(columns.dtype)
    by_size = np.argsort([len(scores) for _, scores in rows], kind="stable")
    while by_size.size:
        # The longest remaining rows, as many as fit when all are padded to the length of the longest.
        widest = max(len(rows[by_size[-1]][1]), rank)
        chunk = by_size[-max(1, CHUNK // (widest * rank)) :]
        by_size = by_size[: -len(chunk)]
        fitted[chunk] = _newton(model, columns, [rows[i] for i in chunk], fitted[chunk], ridge_weight)
    return fitted


def safe_shares(bends: Floats) -> Floats:
    """Share of each Newton step to take, log(1 + b) / b for each b; 1 if b is 0.

    See `fit_rows`.
    """
    shares = np.ones_like(bends)
    np.divide(np.log1p(bends), bends, out=shares, where=bends > 0)
    return shares


def _newton(
    model: FactorModel, columns: Floats, rows: Sequence[Row], factors: Floats, weight: float
) -> Floats:
    n_rows, width = len(rows), max(len(scores) for _, scores in rows)
    regressors = np.zeros((n_rows, width, columns.shape[1]), dtype=columns.dtype)  # (k, c, r)
    scores = np.zeros((n_rows, width), dtype=columns.dtype)  # (k, c)
    for i, (examples, observed) in enumerate(rows):
        regressors[i, : len(examples)] = columns[examples]
        scores[i, : len(examples)] = observed
    ridge = weight * np.eye(columns.shape[1], dtype=columns.dtype)
    transposed = np.swapaxes(regressors, 1, 2)  # (k, r, c)
    predictors = _times(regressors, factors)
    for _ in range(MOST_STEPS):
        means = model.mean(predictors)
        # Residuals and curvatures of padded entries are multiplied by regressors of 0.
        hessians = (transposed * model.curvature(means)[:, np.newaxis, :]) @ regressors + ridge
        gradients = _times(transposed, scores - means) - weight * factors
        steps = np.linalg.solve(hessians, gradients[:, :, np.newaxis])[:, :, 0]
        changes = _times(regressors, steps)
        bends = model.bend * np.abs(changes).max(axis=1, initial=0.0)
        lengths = safe_shares(bends)[:, np.newaxis]
        factors = factors + lengths * steps
        predictors = predictors + lengths * changes
        if np.abs(lengths * steps).max() < np.finfo(columns.dtype).eps ** 0.25:
            break
    return factors


def _times(matrices: Floats, vectors: Floats) -> Floats:
    """Product of each of k matrices with its vector."""
    product: Floats = (matrices @ vectors[:, :, np.newaxis])[:, :, 0]
    return product


def sigmoid(z: Floats) -> Floats:
    """1 / (1 + exp(-z)), computed by tanh without overflow."""
    share: Floats = 0.5 + 0.5 * np.tanh(0.5 * z)
    return share


def _cross_entropy(scores: Floats, z: Floats) -> Floats:
    """-S log(sigmoid(z)) - (1 - S) log(1 - sigmoid(z)).

    Scores between 0 and 1 are allowed.
    """
    loss: Floats = np.logaddexp(0.0, z) - scores * z
    return loss


LOGISTIC = FactorModel(
    loss=_cross_entropy,
    mean=sigmoid,
    curvature=lambda means: means * (1.0 - means),
    most_curvature=0.25,
    bend=1.0,
)
"""Logistic model of scores that are 0 or 1: P(S_ij = 1) = sigmoid(u_i . v_j).

Source: Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via Low-Rank
Factorization", Step 1. Its loss (1) is the mean cross-entropy of the observed entries plus ridge/(2 (M + n))
(|U|^2 + |V|^2). The loss here is that times the number of observed entries |Omega|, so the weight of the
ridge is ridge |Omega|/(M + n). There are two departures. With V fixed, the weight of the ridge on a row is
constant, because otherwise the fit of one row would depend on the number of observations of all others. And
fits of rows run to the minimum, whereas the paper stops AdamW early.
"""

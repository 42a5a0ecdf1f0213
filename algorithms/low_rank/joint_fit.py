"""Joint fits of row and column factors; letters as in `factor_model`.

The loss is not jointly convex, so the result depends on the start: the leading singular vectors, found by
power iterations that start from cosines. Nothing is random: the same table gives the same factors.
"""

from typing import TYPE_CHECKING

import numpy as np

from winnow.algorithms.low_rank.factor_model import FactorModel, Floats

if TYPE_CHECKING:  # needed only by callers with sparse tables, and the import takes 0.1 s
    from scipy.sparse import csr_array

POWER_ITERATIONS = 2
SPARE_FACTORS = 8  # extra factors in the power iterations, then discarded: they make the others accurate
# factor on the step to the minimum of a quadratic upper bound; the loss decreases for any factor below 2
OVERRELAXATION = 1.8
MOST_SWEEPS, LEAST_CHANGE = 40, 0.02  # a sweep that changes U by 2% of its norm hardly changes predictions
NOISE_SHARE = 0.25
BLOCK = 1 << 20  # number of entries of the table processed together, so that they fit in the cache


def weight_of_ridge(ridge: float | None, n_observed: int, n_rows: int, n_columns: int) -> float:
    """Weight w of the ridge in a fit of both factors.

    Args:
        ridge: lambda in loss (1) of Tolochinsky et al. (2026), which is the loss here divided by the number
            of observed entries: w = lambda |Omega| / (M + n). None for a quarter of the largest singular
            value of the slopes of pure noise, sqrt(p) (sqrt(M) + sqrt(n)) / 2, where p is the share of
            observed entries. This suits tables of any size and fill, unlike a single lambda.
        n_observed: |Omega|.
        n_rows: M.
        n_columns: n.
    """
    if ridge is not None:
        return ridge * n_observed / (n_rows + n_columns)
    share = n_observed / (n_rows * n_columns)
    return NOISE_SHARE * float(np.sqrt(share) * (np.sqrt(n_rows) + np.sqrt(n_columns)) / 2.0)


def fit_table(model: FactorModel, scores: Floats, rank: int, ridge_weight: float) -> tuple[Floats, Floats]:
    """Fit a table that is mostly observed.

    Sweeps alternate over U and V. Each minimises a quadratic upper bound of the loss that has the largest
    curvature everywhere. So one r x r system serves all rows, and a missing entry has residual 0.

    Args:
        model: The loss.
        scores: Shape (M, n), in [0, 1], NaN if not observed.
        rank: r, at most min(M, n).
        ridge_weight: w, positive.

    Returns:
        U of shape (M, r) and V of shape (n, r).
    """
    missing = np.isnan(scores)
    residuals = np.where(missing, 0, scores - model.mean(np.zeros(1, dtype=scores.dtype)))
    u, v = leading_factors(residuals, rank, model.most_curvature * (1.0 - missing.mean()), ridge_weight)
    missing_entries = missing if missing.any() else None
    for _ in range(MOST_SWEEPS):
        step = _step(model, _slopes(model, scores, missing_entries, u, v, of_rows=True), u, v, ridge_weight)
        u += step
        v += _step(model, _slopes(model, scores, missing_entries, u, v, of_rows=False), v, u, ridge_weight)
        if np.linalg.norm(step) <= LEAST_CHANGE * np.linalg.norm(u):
            break
    return u, v


def with_rows_spread_evenly(u: Floats, v: Floats) -> Floats:
    """Rotate and scale V so that U has mean u u^T = identity.

    U is changed to keep all predictors. A ridge of weight 1 on a new row is then the Gaussian prior estimated
    from the known rows.
    """
    spread, axes = np.linalg.eigh(u.T @ u / len(u))
    scaled: Floats = v @ (axes * np.sqrt(np.maximum(spread, 0.0)))
    return scaled


def leading_factors(
    matrix: "Floats | csr_array", rank: int, scale: float, ridge_weight: float
) -> tuple[Floats, Floats]:
    """U and V with U V^T near matrix / scale.

    Leading singular vectors, shrunk as by the ridge.

    Args:
        matrix: Shape (M, n).
        rank: r.
        scale: Divides the matrix.
        ridge_weight: w.
    """
    n_rows, n_columns = matrix.shape
    width = min(rank + SPARE_FACTORS, n_rows, n_columns)
    basis = np.cos(np.outer(np.arange(n_columns) + 0.5, np.arange(width)) * (np.pi / n_columns))
    image = matrix @ basis.astype(matrix.dtype)  # (M, r + spare)
    for _ in range(POWER_ITERATIONS):
        image = matrix @ (matrix.T @ np.linalg.qr(image)[0])
    basis = np.linalg.qr(image)[0]
    left, values, right = np.linalg.svd((matrix.T @ basis).T, full_matrices=False)
    sizes = np.sqrt(np.maximum(values[:rank] - ridge_weight, 0.0) / scale).astype(matrix.dtype)
    return basis @ left[:, :rank] * sizes, right[:rank].T * sizes


def _step(model: FactorModel, slopes: Floats, moving: Floats, frozen: Floats, weight: float) -> Floats:
    """Overrelaxed step of the factors `moving` to the minimum of the upper bound."""
    rank = frozen.shape[1]
    hessian = model.most_curvature * (frozen.T @ frozen) + weight * np.eye(rank, dtype=frozen.dtype)
    step: Floats = OVERRELAXATION * np.linalg.solve(hessian, (slopes - weight * moving).T).T
    return step


def _slopes(
    model: FactorModel, scores: Floats, missing: Floats | None, u: Floats, v: Floats, *, of_rows: bool
) -> Floats:
    """(S - mean(U V^T)) V, shape (M, r), or the same for columns, shape (n, r)."""
    slopes = np.zeros_like(u if of_rows else v)
    height = max(1, BLOCK // len(v))
    for first in range(0, len(u), height):
        block = slice(first, first + height)
        residuals = scores[block] - model.mean(u[block] @ v.T)
        if missing is not None:
            residuals[missing[block]] = 0.0
        if of_rows:
            slopes[block] = residuals @ v
        else:
            slopes += residuals.T @ u[block]
    return slopes

"""Joint fits of row and column factors to a sparsely observed table; see `joint_fit`."""

import numpy as np
from scipy.sparse import csr_array

from winnow.algorithms.low_rank.factor_model import FactorModel, Floats, safe_shares
from winnow.algorithms.low_rank.joint_fit import leading_factors

SWEEPS = 10  # enough, because the next fit follows soon and starts from this one


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
        start: Initial U and V; by default the leading singular vectors.

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
    """Take a Newton step of all rows at once, none of which increases the loss."""
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

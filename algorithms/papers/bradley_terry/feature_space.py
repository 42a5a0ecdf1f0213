"""Feature space of duels: differences between arms, in coordinates of their span."""

import numpy as np

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import FloatArray, IntArray

SMALLEST_SHARE = 1e-8  # of the largest singular value or distance; smaller values are rounding
ROUNDING = 1e-12  # of a column's largest value; a column that varies less is constant


def arm_points(features: FloatArray) -> FloatArray:
    """Represent the arms as points whose differences span all coordinates.

    The columns are standardised first. Duels depend only on differences of features. Every column is centred
    and divided by its standard deviation over the arms, so its unit does not matter; the result is expressed
    in an orthonormal basis of the differences' span. So one-hot features, constant columns and repeated
    columns are allowed, and shifting or scaling a column changes nothing. An isotropic normal distribution of
    the standardised columns' coefficients is also isotropic in the coordinates.

    Args:
        features: Shape (K, d), finite, a row for each arm.

    Returns:
        Shape (K, r), where r is the dimension of the span, at most min(d, K - 1).

    Raises:
        InvalidParameter: If two arms have the same features, because no duel could ever distinguish them.
    """
    points = _principal(_standardise(features))
    distances = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
    same = np.argwhere(np.triu(distances <= SMALLEST_SHARE * distances.max(), 1))
    for first, second in same[:1].tolist():
        raise InvalidParameter(
            "features",
            features[first].tolist(),
            f"different for any two arms: add a feature in which arms {first} and {second} differ, or remove "
            "one of the two",
        )
    return points


def differences(points: FloatArray, pairs: IntArray) -> FloatArray:
    """x_i - x_j for each pair (i, j), shape (P, r)."""
    spans: FloatArray = points[pairs[:, 0]] - points[pairs[:, 1]]
    return spans


def _standardise(features: FloatArray) -> FloatArray:
    """Columns with mean 0 and variance 1, or zeros if constant; shape (K, d)."""
    scaled = features / np.maximum(np.abs(features).max(axis=0), np.finfo(np.float64).tiny)
    centred = scaled - scaled.mean(axis=0)
    deviations = centred.std(axis=0)
    varies = deviations > ROUNDING
    standardised: FloatArray = np.where(varies, centred / np.where(varies, deviations, 1.0), 0.0)
    return standardised


def _principal(columns: FloatArray) -> FloatArray:
    """Points in an orthonormal basis of their span, shape (K, r)."""
    left, singular, _ = np.linalg.svd(columns, full_matrices=False)
    rank = int((singular > SMALLEST_SHARE * singular[0]).sum())
    points: FloatArray = left[:, :rank] * singular[:rank]
    return points

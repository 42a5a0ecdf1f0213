"""The features that duels can tell apart: differences between arms, in coordinates of their own."""

import numpy as np

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.state.arrays import FloatArray, IntArray

SMALLEST_SHARE = 1e-8  # of the largest singular value or distance; below it there is only rounding
ROUNDING = 1e-12  # of a column's largest value; a column that varies less is constant


def arm_points(features: FloatArray) -> FloatArray:
    """The arms as points whose differences span all coordinates, on standardised columns.

    Duels only show differences of features. Every column is centred and divided by its standard deviation
    over the arms, so the unit it was given in does not matter; the rest is written in an orthonormal basis of
    the differences' span. So one-hot features, constant columns and columns that repeat others are welcome;
    shifting or scaling a column changes nothing, and an isotropic normal distribution of the standardised
    columns' coefficients is one of the coordinates' as well.

    Args:
        features: Shape (K, d), finite, a row for each arm.

    Returns:
        Shape (K, r), r the dimension of the span, at most min(d, K - 1).

    Raises:
        InvalidParameter: If two arms have the same features: no duel could ever tell them apart.
    """
    points = _principal(_standardised(features))
    distances = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
    same = np.argwhere(np.triu(distances <= SMALLEST_SHARE * distances.max(), 1))
    for first, second in same[:1].tolist():
        raise InvalidParameter(
            "features",
            features[first].tolist(),
            f"different for any two arms: give arms {first} and {second} one in which they differ, or leave "
            "one of the two out",
        )
    return points


def differences(points: FloatArray, pairs: IntArray) -> FloatArray:
    """x_i - x_j for each pair (i, j), shape (P, r)."""
    spans: FloatArray = points[pairs[:, 0]] - points[pairs[:, 1]]
    return spans


def _standardised(features: FloatArray) -> FloatArray:
    """Shape (K, d), columns of mean 0 and variance 1, or of zeros where they are constant."""
    scaled = features / np.maximum(np.abs(features).max(axis=0), np.finfo(np.float64).tiny)
    centred = scaled - scaled.mean(axis=0)
    deviations = centred.std(axis=0)
    varies = deviations > ROUNDING
    standardised: FloatArray = np.where(varies, centred / np.where(varies, deviations, 1.0), 0.0)
    return standardised


def _principal(columns: FloatArray) -> FloatArray:
    """The same points in an orthonormal basis of their span, shape (K, r)."""
    left, singular, _ = np.linalg.svd(columns, full_matrices=False)
    rank = int((singular > SMALLEST_SHARE * singular[0]).sum())
    points: FloatArray = left[:, :rank] * singular[:rank]
    return points

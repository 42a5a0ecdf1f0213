"""The features that duels can tell apart: differences between arms, in coordinates of their own."""

import numpy as np

from algorithms.arrays import FloatArray, IntArray
from algorithms.errors import InvalidParameter

SMALLEST_SHARE = 1e-8  # of the largest singular value or distance; below it there is only rounding


def arm_points(features: FloatArray) -> FloatArray:
    """The arms as points whose differences span all coordinates and are at most 1 long.

    Duels only show differences of features. What all arms have in common is taken off, the rest is written
    in an orthonormal basis of the differences' span, and everything is divided by the largest distance. So
    one-hot features, constant columns and columns that repeat others are welcome; rotating, shifting or
    scaling all features together changes nothing but the coordinates.

    Args:
        features: Shape (K, d), finite, a row for each arm.

    Returns:
        Shape (K, r), r the dimension of the span, at most min(d, K - 1).

    Raises:
        InvalidParameter: If two arms have the same features: no duel could ever tell them apart.
    """
    centred = features - features.mean(axis=0)
    left, singular, _ = np.linalg.svd(centred, full_matrices=False)
    rank = int((singular > SMALLEST_SHARE * singular[0]).sum())
    points: FloatArray = left[:, :rank] * singular[:rank]
    distances = np.linalg.norm(points[:, np.newaxis] - points, axis=2)
    largest = distances.max()
    same = np.argwhere(np.triu(distances <= SMALLEST_SHARE * largest, 1))
    for first, second in same[:1].tolist():
        raise InvalidParameter(
            "features",
            features[first].tolist(),
            f"different for any two arms, but those of arms {first} and {second} are the same",
        )
    points /= largest
    return points


def differences(points: FloatArray, pairs: IntArray) -> FloatArray:
    """x_i - x_j for each pair (i, j), shape (P, r)."""
    spans: FloatArray = points[pairs[:, 0]] - points[pairs[:, 1]]
    return spans

"""Rule by which an arm with too many unscored pairs is dropped."""

import numpy as np

from winnow.algorithms.state.arrays import BoolArray, IntArray

LEAST_TOLD_TO_DROP = 8  # the share of unscored pairs is too uncertain among fewer pairs


def too_many_unscored(told: IntArray, unscored: IntArray, max_unscored: float) -> BoolArray:
    """Mask of the arms to drop now.

    A dropped arm stays dropped, whatever is observed later.

    Args:
        told: Shape (K,), number of observed pairs, unscored ones included.
        unscored: Shape (K,), number of observed pairs without a score.
        max_unscored: Largest allowed share of unscored pairs, in [0, 1].

    Returns:
        Shape (K,): at least 8 pairs were observed, and the share of unscored ones exceeds `max_unscored`.
    """
    return np.asarray((told >= LEAST_TOLD_TO_DROP) & (unscored > max_unscored * told), dtype=np.bool_)

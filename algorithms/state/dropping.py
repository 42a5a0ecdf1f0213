"""Rule by which an arm with too many unscored pairs is dropped."""

import numpy as np

from winnow.algorithms.state.arrays import BoolArray, IntArray

LEAST_TOLD_TO_DROP = 8  # fewer pairs say too little about the share of unscored ones


def too_many_unscored(told: IntArray, unscored: IntArray, max_unscored: float) -> BoolArray:
    """Mask of the arms to drop now; an arm stays dropped, whatever is observed later.

    Args:
        told: Shape (K,), pairs observed, unscored ones included.
        unscored: Shape (K,), those without a score.
        max_unscored: Largest allowed share of unscored pairs, in [0, 1].

    Returns:
        Shape (K,): at least 8 pairs were observed, and a larger share of them is unscored.
    """
    return np.asarray((told >= LEAST_TOLD_TO_DROP) & (unscored > max_unscored * told), dtype=np.bool_)

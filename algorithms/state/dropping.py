"""The rule by which an arm with too many unscored pairs to be judged is dropped."""

import numpy as np

from winnow.algorithms.state.arrays import BoolArray, IntArray

LEAST_TOLD_TO_DROP = 8  # fewer pairs say too little about the share of unscored ones


def too_many_unscored(told: IntArray, unscored: IntArray, max_unscored: float) -> BoolArray:
    """The mask of the arms to be dropped now; an arm stays dropped, whatever is told of it later.

    Args:
        told: Shape (K,), pairs told, unscored ones included.
        unscored: Shape (K,), those of them that have no score.
        max_unscored: The share of unscored pairs, in [0, 1], that an arm may have.

    Returns:
        Shape (K,): at least 8 pairs were told, and a larger share of them is unscored.
    """
    return np.asarray((told >= LEAST_TOLD_TO_DROP) & (unscored > max_unscored * told), dtype=np.bool_)

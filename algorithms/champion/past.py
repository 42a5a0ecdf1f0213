"""What a history of scores says of the examples: how much better than usual its best rows did on each."""

import numpy as np

from winnow.algorithms.low_rank.factor_model import Floats
from winnow.algorithms.state.arrays import FloatArray

BEST_ROWS = 100  # candidates are compared with their like: rows that do well, as far as there are so many
DOUBT = 1.0  # scores of an average example that stand beside those of an example, or of an average row


def past_ease(history: Floats) -> FloatArray:
    """How much better than they do on average the best rows of a history did on each example.

    Args:
        history: Shape (M, N), scores in [0, 1], NaN where there is none.

    Returns:
        Shape (N,), in [-1, 1]; 0 where the history has no score.
    """
    is_there = ~np.isnan(history)
    scores = np.where(is_there, history, np.float32(0.0))
    n_scores = is_there.sum(axis=1)  # (M,)
    usual = (scores.sum(axis=0, dtype=np.float64) + DOUBT * scores.sum() / n_scores.sum()) / (
        is_there.sum(axis=0) + DOUBT
    )  # (N,)
    expected = np.where(is_there, usual.astype(np.float32), 0.0).sum(axis=1, dtype=np.float64)  # (M,)
    lead = (scores.sum(axis=1, dtype=np.float64) - expected) / (n_scores + DOUBT)
    best = np.argsort(-lead, kind="stable")[:BEST_ROWS]
    means = scores[best].sum(axis=1, dtype=np.float64) / np.maximum(n_scores[best], 1)
    surplus = np.where(is_there[best], scores[best] - means[:, np.newaxis], 0.0).sum(axis=0)
    return np.asarray(surplus / (is_there[best].sum(axis=0) + DOUBT))

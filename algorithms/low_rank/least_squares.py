"""Least-squares low-rank model of scores in [0, 1], not all 0 or 1: S_ij is near 1/2 + u_i . v_j.

As in the logistic model, the predicted score of an unobserved row is 1/2. Predictions are clipped to [0, 1],
the fits are not.

Source: Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via Low-Rank
Factorization", whose estimator holds for any prediction in [0, 1]; the paper itself has 0/1 scores only.
"""

import numpy as np

from winnow.algorithms.low_rank.factor_model import FactorModel, Floats


def half_squared_error(scores: Floats, z: Floats) -> Floats:
    """Compute (S - 1/2 - z)^2 / 2."""
    return 0.5 * (scores - 0.5 - z) ** 2


LEAST_SQUARES = FactorModel(
    loss=half_squared_error,
    mean=lambda z: z + 0.5,
    curvature=np.ones_like,
    most_curvature=1.0,
    bend=0.0,
)

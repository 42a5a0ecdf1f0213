"""Logistic low-rank model of scores that are 0 or 1: P(S_ij = 1) = sigmoid(u_i . v_j).

Source: Tolochinsky et al. (2026), "Valid Best-Model Identification for LLM Evaluation via Low-Rank
Factorization", Step 1. Its loss (1) is the mean cross-entropy of the observed entries plus ridge/(2 (M + n))
(|U|^2 + |V|^2); ours is that times the number of observed entries |Omega|, so that the weight of the ridge is
ridge |Omega|/(M + n). Two departures: with V fixed, the weight of the ridge on a row is constant, because
otherwise the fit of one row would depend on the number of observations of all others; and fits of rows run to
the minimum, whereas the paper stops AdamW early.
"""

import numpy as np

from winnow.algorithms.low_rank.factor_model import FactorModel, Floats


def sigmoid(z: Floats) -> Floats:
    """Compute 1 / (1 + exp(-z)) via tanh, without overflow."""
    share: Floats = 0.5 + 0.5 * np.tanh(0.5 * z)
    return share


def cross_entropy(scores: Floats, z: Floats) -> Floats:
    """Compute -S log(sigmoid(z)) - (1 - S) log(1 - sigmoid(z)); scores between 0 and 1 are allowed."""
    loss: Floats = np.logaddexp(0.0, z) - scores * z
    return loss


LOGISTIC = FactorModel(
    loss=cross_entropy,
    mean=sigmoid,
    curvature=lambda means: means * (1.0 - means),
    most_curvature=0.25,
    bend=1.0,
)

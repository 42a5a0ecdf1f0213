"""How many labels a certificate will need, by the growth of the best constant bet."""

import numpy as np

from winnow.algorithms.certify.label_record import effective_losses
from winnow.algorithms.state.arrays import FloatArray

HALVINGS = 60


def growth_rates(outcomes: FloatArray, factors: FloatArray, alpha: float) -> FloatArray:
    """The growth of the best constant bet per label, in the population that these outcomes are a sample of.

    Args:
        outcomes: Shape (N, 3), columns as in `algorithms.certify.label_record`; unscored ones at their worst.
        factors: rho, shape (S,), in [0, 1].
        alpha: The risk in question, in (0, 1).

    Returns:
        g, shape (S,), non-negative; 0 where the mean loss is not below alpha, so that nothing is to be
        gained.

    Source: Park et al. (2025), equation (14).
    """
    losses = effective_losses(outcomes, factors) - alpha  # (N, S)
    # The slope -E[x / (1 - lambda x)] falls in lambda: it is halved in on, from 0 and the largest bet.
    low, high = np.zeros(factors.size), 1.0 / (1.0 + factors - alpha)
    for _ in range(HALVINGS):
        middle = (low + high) / 2.0
        rises = (losses / (1.0 - middle * losses)).mean(axis=0) < 0.0
        low, high = np.where(rises, middle, low), np.where(rises, high, middle)
    growth: FloatArray = np.log1p(-low * losses).mean(axis=0)
    return np.maximum(growth, 0.0)


def labels_needed(outcomes: FloatArray, factors: FloatArray, alpha: float, delta: float) -> float:
    """n_min(delta), about how many labels it takes to certify an arm; infinite where it cannot be done.

    Args:
        outcomes: A sample of the arm's outcomes, shape (N, 3).
        factors: Those of the method: (0,) for R-Eval, (1,) for R-AutoEval, evenly spaced for R-AutoEval+.
        alpha: The risk in question, in (0, 1).
        delta: The error probability of the arm's test, in (0, 1).

    Source: Park et al. (2025), equations (15) and (18).
    """
    best = growth_rates(outcomes, factors, alpha).max()
    return float(np.log(1.0 / delta) / best) if best > 0.0 else np.inf

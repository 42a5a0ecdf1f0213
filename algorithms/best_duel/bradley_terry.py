"""The Bradley-Terry model with features: P(i is preferred to j) = sigmoid(theta . (x_i - x_j)).

Letters as in Hu et al. (2026), section 4.1: z (P, r) differences x_i - x_j of the pairs that duelled, W (P,)
the outcomes in favour of i, N (P,) the duels, l(theta) their log-likelihood, lambda the ridge, B the radius
of the ball that theta is known to lie in. Duels of a pair enter through W and N alone, so a fit costs
O(P r^2), however many there were.

A tie is half a win for both: it adds (log sigmoid(theta . z) + log sigmoid(-theta . z)) / 2. That keeps the
gradient's mean at 0 whenever the mean outcome, ties counted as 1/2, is sigmoid(theta . z).
"""

from typing import NamedTuple

import numpy as np

from algorithms.arrays import FloatArray, IntArray
from algorithms.low_rank.logistic import sigmoid

SMALL_DECREMENT = 1e-10  # nats; what is left after the last step is of the order of its square
MOST_STEPS = 100
ROUNDING = 1e-9  # relative, of the radius


class Fit(NamedTuple):
    """A fitted theta and what surrounds it."""

    theta: FloatArray
    """Shape (r,)."""
    hessian: FloatArray
    """Shape (r, r), H(theta) = sum N sigmoid'(theta.z) z z^T + lambda I, positive definite."""
    residual: FloatArray
    """Shape (r,), the gradient of l at theta: lambda theta inside the ball."""


def fit_bradley_terry(
    z: FloatArray, wins: FloatArray, counts: IntArray, *, ridge: float, radius: float, start: FloatArray
) -> Fit:
    """Maximise l(theta) - ridge |theta|^2 / 2 over |theta| <= radius.

    Args:
        z: Shape (P, r).
        wins: Shape (P,), in [0, N]; ties count 1/2.
        counts: Shape (P,), N, positive.
        ridge: lambda, positive.
        radius: B, positive.
        start: Shape (r,), where to start; the last fit makes one or two steps enough.

    Returns:
        The maximiser. Inside the ball it is the paper's estimate (3). Where that lies outside, the paper
        projects it onto the ball in a norm that changes with theta, equation (4), which need not be a convex
        problem; this one is, and `structured_threshold` proves what is needed of it. On the boundary it is
        the estimate with that larger ridge, lambda + nu, that makes |theta| = B.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    equations (3) and (4).
    """
    theta, curvature = _maximise(z, wins, counts, ridge, start)
    more = 0.0
    for _ in range(MOST_STEPS):
        norm = float(np.linalg.norm(theta))
        if norm <= radius * (1.0 + ROUNDING) and (more == 0.0 or norm >= radius * (1.0 - ROUNDING)):
            break
        # Newton's method for 1/|theta(nu)| = 1/B, nearly linear in nu (Moré and Sorensen 1983).
        slope = float(theta @ np.linalg.solve(curvature, theta))
        more = max(0.0, more + (norm / radius - 1.0) * norm**2 / slope)
        theta, curvature = _maximise(z, wins, counts, ridge + more, theta)
    hessian = curvature - more * np.eye(len(theta))
    return Fit(theta, hessian, (ridge + more) * theta)


def _maximise(
    z: FloatArray, wins: FloatArray, counts: IntArray, ridge: float, start: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The maximiser without the ball, and the negative Hessian there, ridge included.

    Newton's method. With s the largest |z . step|, a step is shortened to log(1 + s)/s of its length, which
    increases the objective always: Sun and Tran-Dinh (2019), "Generalized self-concordant functions", nu = 2.
    """
    theta, identity = start, np.eye(z.shape[1])
    for _ in range(MOST_STEPS):
        means = sigmoid(z @ theta)  # (P,)
        gradient = (wins - counts * means) @ z - ridge * theta  # (r,)
        curvature = (z.T * (counts * means * (1.0 - means))) @ z + ridge * identity  # (r, r)
        step = np.linalg.solve(curvature, gradient)
        longest = np.abs(z @ step).max(initial=0.0)
        theta = theta + step * (np.log1p(longest) / longest if longest > 0.0 else 1.0)
        if gradient @ step <= SMALL_DECREMENT:
            break
    return theta, curvature

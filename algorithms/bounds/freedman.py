"""Freedman's interval for the estimates of PULSE, when a bound on their variance is known."""

import numpy as np

from winnow.algorithms.errors import InvalidParameter


def freedman_radius(pulls: int, n_examples: int, variance: float, alpha: float) -> float:
    """Half-width of the interval around the mean of an arm's one-step estimates.

    P(|mu^ - mu| >= radius and the arm was pulled K times) <= alpha: at one round fixed beforehand, and not at
    all rounds at once; `prediction_powered` has intervals for that, which need no variance either.

    Args:
        pulls: K, at least 1.
        n_examples: n, at least 1.
        variance: v, a bound on the mean over the pulls of Var(Z | past), in squared sums of scores. The data
            do not tell it; n^2/B is one for pulls of B examples.
        alpha: Error probability, in (0, 1).

    Returns:
        The radius at which 2 exp(-radius^2 / (2 (v/(K n^2) + 2 radius/(3 K)))) is alpha, in score units.

    Raises:
        InvalidParameter: If a value is out of range.

    Source: Tolochinsky et al. (2026), Theorem 1, solved for epsilon.
    """
    for name, value, holds, requirement in (
        ("pulls", pulls, pulls >= 1, "at least 1"),
        ("n_examples", n_examples, n_examples >= 1, "at least 1"),
        ("variance", variance, 0.0 <= variance < np.inf, "non-negative and finite"),
        ("alpha", alpha, 0.0 < alpha < 1.0, "in (0, 1)"),
    ):
        if not holds:
            raise InvalidParameter(name, value, requirement)
    surprise = np.log(2.0 / alpha) / pulls
    linear = 2.0 * surprise / 3.0
    return float(linear + np.sqrt(linear**2 + 2.0 * surprise * variance / n_examples**2))

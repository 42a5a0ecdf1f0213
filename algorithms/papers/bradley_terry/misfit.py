"""Test of the Bradley-Terry model by the duels: mixtures of models without the features.

Letters as in `model`. Two mixtures of the likelihood of the duels, in equal parts: over a separate strength
of each arm, which is `mixture` for arms without common features; and over a separate preference q of each
pair, the product over pairs of B(W + 1/2, N - W + 1/2) / B(1/2, 1/2), which is the mean of q^W (1 - q)^(N -
W) for q from Beta(1/2, 1/2). The first soon detects interactions of factors, the second detects cycles.

If theta* is the truth, the ratio of each to exp(l(theta*)) is a non-negative supermartingale that starts at
1, by the proof in `mixture` with log q in place of log sigmoid(theta . z). Because l(theta*) is at most the
supremum of l, the ratio to that supremum ever reaches 1/delta with probability at most delta.

Unscored duels take their worst case, as there: the product is the least over any outcomes of them. Because
log B(a, b) is convex in a for a given a + b and symmetric, that is at the W closest to N / 2. Unscored duels
would lower l, which is bounded by its value without them. So a model is not refuted because the judge fails
more often when it would prefer one side.

Source: Krichevsky and Trofimov (1981), "The Performance of Universal Encoding", for the mixture over a pair's
preference; Wasserman, Ramdas and Balakrishnan (2020), "Universal Inference", for a maximised likelihood in
the denominator.
"""

import numpy as np
from scipy.linalg import null_space
from scipy.special import betaln

from winnow.algorithms.best_duel.bradley_terry import Fit, Tally, log_likelihood
from winnow.algorithms.papers.bradley_terry.bounds import supremum
from winnow.algorithms.papers.bradley_terry.mixture import log_mixture
from winnow.algorithms.state.arrays import FloatArray


def strength_points(n_arms: int) -> FloatArray:
    """Arms as points that give each a separate strength, shape (K, K - 1); see `feature_space`."""
    return np.asarray(null_space(np.ones((1, n_arms))), dtype=np.float64)


def log_unstructured_mixture(tally: Tally, strength_z: FloatArray) -> float:
    """Lower bound of the log mixture, in nats; 0 without any duel.

    Args:
        tally: P pairs.
        strength_z: Shape (P, K - 1), their differences in `strength_points`.
    """
    strengths = log_mixture(tally._replace(z=strength_z), np.zeros(strength_z.shape[1]))
    return float(np.logaddexp(strengths, log_saturated_mixture(tally)) - np.log(2.0))


def log_saturated_mixture(tally: Tally) -> float:
    """Logarithm of the product over pairs, in nats; 0 without any duel."""
    _, wins, counts, unscored = tally
    all_counts = counts + unscored
    least = np.clip(0.5 * all_counts, wins, wins + unscored)
    return float((betaln(least + 0.5, all_counts - least + 0.5) - np.log(np.pi)).sum())


def is_misfit(tally: Tally, log_unstructured: float, fit: Fit, delta: float) -> bool:
    """Whether the duels refute the model; if it holds, this ever happens with probability at most delta.

    Args:
        tally: P pairs.
        log_unstructured: The value of `log_unstructured_mixture` for these pairs, in nats.
        fit: A fit at any theta; one near the maximiser makes the test sharp.
        delta: Error probability, in (0, 1).
    """
    least = log_unstructured + np.log(delta)
    # A supremum is at least the value at one theta, which is much cheaper to compute.
    return bool(least >= log_likelihood(tally, fit.theta)) and least >= supremum(tally, fit)

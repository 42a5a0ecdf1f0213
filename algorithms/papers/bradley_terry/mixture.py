"""Likelihood of the duels averaged over a random theta: evidence against theta with a far lower one.

Letters as in `model`. For each scale s the mixture is the integral of exp(l(theta)) over theta from N(0, s^2
I), r coordinates; L is the logarithm of their mean over the scales. Large scales suit strong preferences,
small ones weak preferences.

Proof: let theta* be the true value, so that the mean of an outcome y in [0, 1] is sigmoid(theta* . z), given
the past. With a = log sigmoid(theta . z) - log sigmoid(theta* . z) and b the same for -z, a duel multiplies
exp(l(theta) - l(theta*)) by exp(y a + (1 - y) b), which is at most y e^a + (1 - y) e^b, because the
exponential is convex. The mean of that is sigmoid(theta . z) + sigmoid(-theta . z) = 1. So for every theta it
is a non-negative supermartingale that starts at 1, and by Fubini so is its mean over theta: by Ville's
inequality, L - l(theta*) ever reaches log(1 / delta) with probability at most delta, for any choice of duels
and at all looks simultaneously.

Any distribution q of theta gives a lower bound of the logarithm of such an integral, E_q[l] - KL(q, prior),
by Jensen's inequality. Here q is normal, chosen to make the bound high; early stopping of this choice affects
only its quality. E_q[l] needs the mean of log(1 + e^u) under u from N(m, v). It is at most log(1 + e^(m + (1
- 2 k) v / 2)) + k^2 v / 2 for every k in [0, 1] (Jensen, after taking k u out of the logarithm), which
differs from it by O(v^2) at the best k.

Unscored duels take their worst case. With any outcomes y, E_q[l] would have one more term y E_q[u] -
E_q[log(1 + e^u)] each, least at y = 0 or 1; and l(theta*) would be lower than without them. So L - l(theta*)
is at most its value with the outcomes, and the proof holds whatever made these outcomes missing.

Source: Robbins (1970), "Statistical Methods Related to the Law of the Iterated Logarithm", for mixtures with
Ville's inequality; Saul and Jordan (1999), "A Mean Field Learning Algorithm for Unsupervised Neural
Networks", for the bound on the mean of log(1 + e^u).
"""

from typing import NamedTuple

import numpy as np

from winnow.algorithms.best_duel.bradley_terry import Fit, Tally, information, shorten, softplus
from winnow.algorithms.low_rank.logistic import sigmoid
from winnow.algorithms.state.arrays import FloatArray

SCALES = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
SMALL_DECREMENT = 1e-4  # nats; an unfinished search lowers the bound by about this amount
MOST_STEPS = 50
TILTS = 3


class Normals(NamedTuple):
    """S normal distributions of theta."""

    means: FloatArray
    """Shape (S, r)."""
    precisions: FloatArray
    """Shape (S, r, r), inverse covariances."""


def isotropic(r: int) -> Normals:
    """Create N(0, s^2 I) for each of the scales."""
    return Normals(np.zeros((len(SCALES), r)), np.eye(r) / SCALES[:, np.newaxis, np.newaxis] ** 2)


def log_mixture(tally: Tally, start: FloatArray) -> float:
    """Lower bound of L, in nats.

    Args:
        tally: P pairs; without any duel the bound is 0.
        start: Shape (r,), start of the search for theta.
    """
    bounds = log_integrals(tally, isotropic(tally.z.shape[1]), start)
    return float(np.logaddexp.reduce(bounds) - np.log(len(SCALES)))


def laplace_log_mixture(log_likelihood: float, fit: Fit) -> float:
    """Approximate `log_mixture` at a tenth of its cost; neither a lower nor an upper bound.

    Args:
        log_likelihood: l at the fitted theta.
        fit: A fit with a small ridge.
    """
    stretched = np.log1p(np.multiply.outer(SCALES**2, np.linalg.eigvalsh(fit.hessian)))  # (S, r)
    costs = 0.5 * stretched.sum(axis=1) + 0.5 * (fit.theta @ fit.theta) / SCALES**2
    return float(log_likelihood + np.logaddexp.reduce(-costs) - np.log(len(SCALES)))


def log_integrals(tally: Tally, priors: Normals, start: FloatArray) -> FloatArray:
    """Lower bounds of the log integrals of exp(l(theta)) over each prior, shape (S,), in nats.

    Args:
        tally: P pairs.
        priors: S distributions of theta.
        start: Shape (r,), start of the search for theta.
    """
    return bounds_by(tally, priors, posteriors(tally, priors, start))


def posteriors(tally: Tally, priors: Normals, start: FloatArray) -> Normals:
    """Find normal distributions that nearly maximise the bounds, by Newton's method.

    In the search, an unscored duel counts as a win and a loss of both arms, which pulls towards even odds
    about as much as its worst outcome does, and smoothly.
    """
    z, n_priors = tally.z, len(priors.means)
    wins, counts = tally.wins + tally.unscored, tally.counts + 2 * tally.unscored
    means = np.repeat(start[np.newaxis], n_priors, axis=0)
    spreads = np.zeros((n_priors, len(z)))
    for _ in range(MOST_STEPS):
        shares = _tilts(means @ z.T, spreads)  # (S, P)
        precisions = information(counts * shares * (1.0 - shares), z) + priors.precisions
        covariances = _inverse(precisions)
        gradients = (wins - counts * shares) @ z - _times(priors.precisions, means - priors.means)
        steps = _times(covariances, gradients)
        means = means + shorten(steps, z)
        spreads = _spreads(z, covariances)
        if (gradients * steps).sum(axis=1).max() <= SMALL_DECREMENT:
            break
    return Normals(means, precisions)


def bounds_by(tally: Tally, priors: Normals, posteriors: Normals) -> FloatArray:
    """Lower bound of each prior's log integral, shape (S,), for any posteriors."""
    means, precisions = posteriors
    covariances = _inverse(precisions)
    centres, spreads = means @ tally.z.T, _spreads(tally.z, covariances)  # (S, P)
    tilts = _tilts(centres, spreads)
    most = softplus(centres + (0.5 - tilts) * spreads) + 0.5 * tilts**2 * spreads
    fits = centres @ tally.wins - most @ tally.counts
    worst = (np.minimum(centres, 0.0) - most) @ tally.unscored
    away = means - priors.means
    traces = (priors.precisions * covariances).sum(axis=(1, 2))
    quadratic = traces + (_times(priors.precisions, away) * away).sum(axis=1) - means.shape[1]
    log_determinants = np.linalg.slogdet(precisions)[1]
    divergences = 0.5 * (quadratic - np.linalg.slogdet(priors.precisions)[1] + log_determinants)
    bounds: FloatArray = fits + worst - divergences
    return bounds


def _inverse(matrices: FloatArray) -> FloatArray:
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64)


def _times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """Multiply each matrix by its vector, shape (S, r)."""
    return np.asarray((matrices @ vectors[..., np.newaxis])[..., 0], dtype=np.float64)


def _spreads(z: FloatArray, covariances: FloatArray) -> FloatArray:
    """Variances of theta . z, shape (S, P)."""
    spreads: FloatArray = ((z @ covariances) * z).sum(axis=2)
    return spreads


def _tilts(centres: FloatArray, spreads: FloatArray) -> FloatArray:
    """Nearly optimal k: sigmoid(x) at the root of x + tanh(x / 2) v / 2 = m, by Newton's method.

    The left side is odd, and concave for x > 0: from its tangent at 0, every step stays on one side.
    """
    found = centres / (1.0 + 0.25 * spreads)
    for _ in range(TILTS):
        bends = np.tanh(0.5 * found)
        missing = centres - found - 0.5 * bends * spreads
        found = found + missing / (1.0 + 0.25 * spreads * (1.0 - bends**2))
    return np.asarray(sigmoid(found), dtype=np.float64)

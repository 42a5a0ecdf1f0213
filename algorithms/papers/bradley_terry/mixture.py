"""Likelihood of the duels averaged over a random theta.

It is evidence against any theta with a far lower likelihood. Letters as in `bradley_terry`. For each scale s
the mixture is the integral of exp(l(theta)) over theta from N(0, s^2 I), r coordinates; L is the logarithm of
their mean over the scales. Large scales suit strong preferences, small ones weak preferences.

Proof: let theta* be the true value, so that the mean of an outcome y in [0, 1] is sigmoid(theta* . z), given
the past. With a = log sigmoid(theta . z) - log sigmoid(theta* . z) and b the same for -z, a duel multiplies
exp(l(theta) - l(theta*)) by exp(y a + (1 - y) b), which is at most y e^a + (1 - y) e^b, because the
exponential is convex. The mean of that is sigmoid(theta . z) + sigmoid(-theta . z) = 1. So for every theta,
exp(l(theta) - l(theta*)) is a non-negative supermartingale that starts at 1, and by Fubini so is its mean
over theta. By Ville's inequality, L - l(theta*) ever reaches log(1 / delta) with probability at most delta,
for any choice of duels and at all looks simultaneously.

Any distribution q of theta gives a lower bound of the logarithm of such an integral, E_q[l] - KL(q, prior),
by Jensen's inequality. Here q is normal, chosen to make the bound high; stopping this choice early affects
only the quality of the bound. E_q[l] needs the mean of log(1 + e^u) under u from N(m, v). This mean is at
most log(1 + e^(m + (1 - 2 k) v / 2)) + k^2 v / 2 for every k in [0, 1] (Jensen, after taking k u out of the
logarithm), which differs from it by O(v^2) at the best k.

Unscored duels take their worst case. With any outcomes y, E_q[l] would have one more term y E_q[u] -
E_q[log(1 + e^u)] each, smallest at y = 0 or 1; and l(theta*) would be lower than without them. So L -
l(theta*) is at most its value with the outcomes, and the proof holds for any cause of missing outcomes.

Source: Robbins (1970), "Statistical Methods Related to the Law of the Iterated Logarithm", for mixtures with
Ville's inequality; Saul and Jordan (1999), "A Mean Field Learning Algorithm for Unsupervised Neural
Networks", for the bound on the mean of log(1 + e^u).

**Late starts.** These mixtures skip the first duels, learn a prior from them, and count those that follow. In
this part, the L above is called L_0. The cost of not knowing theta grows like half the logarithm of the
number of duels n, for every coordinate: with six coordinates and ten thousand duels about 20 nats, whereas
log(1 / delta) is 3. A mixture that begins to count after m duels, with the fit at that time, N(theta_m,
H_m^-1), as its prior, costs about log(n / m). It loses m / n of the evidence, which is less.

The final n is unknown. So one such mixture begins at the first tell after which `FIRST` duels were observed,
and one at the first after which there were 2, 4, 8, ... times as many. L_k is the logarithm of the k-th and
l_k the log-likelihood of the duels observed after it began. Its start time and prior depend only on earlier
observations. So by the proof above, exp(L_k - l_k(theta*)) is a non-negative supermartingale that
starts at 1, if it is 1 until it begins, and so is the mean of all of them with weights fixed beforehand,

    E(theta*) = sum w_k exp(L_k - l_k(theta*)),    sum w_k = 1.

By Ville's inequality it ever reaches 1 / d with probability at most d: the theta with E(theta) < 1 / d are a
confidence set, simultaneously at all looks. For any shares q_k that sum to 1, because the logarithm is
concave,

    log E(theta) >= L_q - l_q(theta),    L_q = sum q_k (L_k + log w_k - log q_k),    l_q = sum q_k l_k.

l_q is a log-likelihood in which duels have weights, and the set lies in {theta: l_q(theta) > L_q - log(1 /
d)} simultaneously for all q. So q can be chosen by any observations, and mixtures can be left out.

Source: Wasserman, Ramdas and Balakrishnan (2020), "Universal Inference", for priors and fits from one part of
the data that are evaluated on the other.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax, xlogy

from winnow.algorithms.best_duel.bradley_terry import (
    Fit,
    Tally,
    information,
    log_likelihood,
    shorten,
    softplus,
)
from winnow.algorithms.low_rank.factor_model import sigmoid
from winnow.algorithms.state.arrays import BoolArray, FloatArray

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
    """The distribution N(0, s^2 I) for each of the scales."""
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
    """Approximation of `log_mixture` at a tenth of its cost.

    Neither a lower nor an upper bound.

    Args:
        log_likelihood: l at the fitted theta.
        fit: A fit with a small ridge.
    """
    stretched = np.log1p(np.multiply.outer(SCALES**2, np.linalg.eigvalsh(fit.hessian)))  # (S, r)
    costs = 0.5 * stretched.sum(axis=1) + 0.5 * (fit.theta @ fit.theta) / SCALES**2
    return float(log_likelihood + np.logaddexp.reduce(-costs) - np.log(len(SCALES)))


def log_integrals(tally: Tally, priors: Normals, start: FloatArray) -> FloatArray:
    """Lower bounds of the log integrals of exp(l(theta)) over priors, shape (S,).

    The bounds are in nats.

    Args:
        tally: P pairs.
        priors: S distributions of theta.
        start: Shape (r,), start of the search for theta.
    """
    return bounds_by(tally, priors, posteriors(tally, priors, start))


def posteriors(tally: Tally, priors: Normals, start: FloatArray) -> Normals:
    """Normal distributions that nearly maximise the bounds, found by Newton's method.

    In the search, an unscored duel counts as a win and a loss of both arms. That pulls towards even odds
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
    """Product of each matrix with its vector, shape (S, r)."""
    return np.asarray((matrices @ vectors[..., np.newaxis])[..., 0], dtype=np.float64)


def _spreads(z: FloatArray, covariances: FloatArray) -> FloatArray:
    """Variances of theta . z, shape (S, P)."""
    spreads: FloatArray = ((z @ covariances) * z).sum(axis=2)
    return spreads


def _tilts(centres: FloatArray, spreads: FloatArray) -> FloatArray:
    """Nearly optimal k: sigmoid(x) at a root, by Newton's method.

    The root is that of x + tanh(x / 2) v / 2 = m. The left side is odd, and concave for x > 0, so from its
    tangent at 0 every step stays on one side.
    """
    found = centres / (1.0 + 0.25 * spreads)
    for _ in range(TILTS):
        bends = np.tanh(0.5 * found)
        missing = centres - found - 0.5 * bends * spreads
        found = found + missing / (1.0 + 0.25 * spreads * (1.0 - bends**2))
    return np.asarray(sigmoid(found), dtype=np.float64)


FIRST = 64  # number of duels at which the first mixture can begin
KEPT = 4  # number of latest mixtures; earlier ones count nearly all duels, like the mixture over scales
DECAY = 0.85  # factor between the weights of one mixture and the next
MOST_LATE = 0.6  # largest weight of all late mixtures: short campaigns rely on the mixture over scales


class Start(NamedTuple):
    """A mixture that begins after some duels."""

    prior: Normals
    """A single distribution."""
    log_weight: float
    """log w_k."""
    before: Tally
    """Tally of all pairs of arms when the mixture began."""


class Part(NamedTuple):
    """Duels that one mixture counts, with its prior.

    None for the mixture over `SCALES`.
    """

    tally: Tally
    log_weight: float
    prior: Normals | None

    def of(self, pairs: BoolArray) -> "Part":
        """Restrict to some pairs, by a mask."""
        return self._replace(tally=self.tally.rows(pairs))

    def log_mixture(self, start: FloatArray) -> float:
        """Lower bound of L_k, in nats."""
        if self.prior is None:
            return log_mixture(self.tally, start)
        return float(log_integrals(self.tally, self.prior, start)[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Pooled:
    """L_q with the tally of l_q."""

    tally: Tally
    """Tally for l_q: wins and counts are weighted.
    `unscored` is 0 because it is not used."""
    log_mixture: float
    """L_q, in nats."""


class LateStarts:
    """Mixtures of one campaign, begun as duels are observed.

    Args:
        r: Number of coordinates of theta.
    """

    def __init__(self, r: int) -> None:
        self._late = late_weight(r)
        self._starts: deque[Start] = deque(maxlen=KEPT)
        self._next, self._number = FIRST, 0

    def begin(self, told: Tally, fit: Fit) -> None:
        """Begin a mixture if one is due.

        Args:
            told: The tally of all pairs of arms, always in the same order.
            fit: The fit to `told`.
        """
        n_told = int(told.counts.sum() + told.unscored.sum())
        if not self._late or n_told < self._next:
            return
        weight = self._late * (1.0 - DECAY) * DECAY**self._number
        prior = Normals(fit.theta[np.newaxis], fit.hessian[np.newaxis])
        self._starts.append(Start(prior, float(np.log(weight)), told))
        while self._next <= n_told:
            self._next *= 2
        self._number += 1

    def parts(self, told: Tally) -> list[Part]:
        """Parts of the mixtures: that over scales first, then the late mixtures.

        Late mixtures without duels to count are omitted.
        """
        parts = [Part(told, float(np.log1p(-self._late)), None)]
        for start in self._starts:
            counts = told.counts - start.before.counts
            # A difference of sums of outcomes such as 0.1 can leave its range by rounding.
            wins = np.asarray(np.clip(told.wins - start.before.wins, 0.0, counts), dtype=np.float64)
            after = Tally(told.z, wins, counts, told.unscored - start.before.unscored)
            if after.counts.any() or after.unscored.any():
                parts.append(Part(after, start.log_weight, start.prior))
        return parts


def late_weight(r: int) -> float:
    """Weight of all mixtures that begin late, in [0, 1); 0 if they can save little.

    Args:
        r: Number of coordinates of theta.
    """
    return min(MOST_LATE, max(0.0, (r - 2.0) / (r + 1.0)))


def pool(parts: Sequence[Part], theta: FloatArray, rivals: FloatArray) -> Pooled:
    """L_q and l_q with shares that make L_q - l_q high at `rivals`.

    Args:
        parts: As `LateStarts.parts` returns them.
        theta: Shape (r,), start of the search for theta.
        rivals: Shape (M, r), other theta, M >= 1, at which L_q - l_q should be high.
    """
    logs = np.array([part.log_weight + part.log_mixture(theta) for part in parts])
    highest = np.array([log_likelihood(part.tally, rivals).max() for part in parts])
    shares = np.asarray(softmax(logs - highest), dtype=np.float64)
    first = parts[0].tally
    tally = Tally(
        first.z,
        shares @ np.array([part.tally.wins for part in parts]),
        shares @ np.array([part.tally.counts for part in parts]),
        np.zeros_like(first.unscored),
    )
    return Pooled(tally=tally, log_mixture=float(shares @ logs - xlogy(shares, shares).sum()))


def laplace_log_integral(part: Part, theta: FloatArray) -> float:
    """Fast approximation of `Part.log_mixture` of a late mixture.

    Neither a lower nor an upper bound.

    Args:
        part: A part with a prior.
        theta: Shape (r,), near the maximiser of l_k.
    """
    assert part.prior is not None
    z, wins, counts, _ = part.tally
    precision, away = part.prior.precisions[0], theta - part.prior.means[0]
    shares = np.asarray(sigmoid(z @ theta), dtype=np.float64)
    hessian = information(counts * shares * (1.0 - shares), z) + precision
    gradient = (wins - counts * shares) @ z - precision @ away
    peak = float(log_likelihood(part.tally, theta)) - 0.5 * away @ precision @ away
    growth = np.linalg.slogdet(hessian)[1] - np.linalg.slogdet(precision)[1]
    return float(peak + 0.5 * gradient @ np.linalg.solve(hessian, gradient) - 0.5 * growth)

"""Mixtures that skip some duels, learn a prior from them, and count those that follow.

Letters as in `mixture`, whose L is here L_0. The cost of not knowing theta grows like half the logarithm of
the number of duels n, for every coordinate: with six of them and ten thousand duels about 20 nats, where
log(1 / delta) is 3. A mixture that begins to count after m duels, with the fit at that time, N(theta_m,
H_m^-1), as its prior, costs about log(n / m). It loses m / n of the evidence, which is less.

The final n is unknown. So one such mixture begins at the first tell after which `FIRST` duels were observed,
and one at the first after which there were 2, 4, 8, ... times as many; L_k is the logarithm of the k-th and
l_k the log-likelihood of the duels observed after it began. Its start time and prior depend only on earlier
observations. So by the proof in `mixture`, exp(L_k - l_k(theta*)) is a non-negative supermartingale that
starts at 1, if it is 1 until it begins, and so is the mean of all of them with weights fixed beforehand,

    E(theta*) = sum w_k exp(L_k - l_k(theta*)),    sum w_k = 1.

By Ville's inequality it ever reaches 1 / d with probability at most d: the theta with E(theta) < 1 / d are a
confidence set, simultaneously at all looks. For any shares q_k that sum to 1, because the logarithm is
concave,

    log E(theta) >= L_q - l_q(theta),    L_q = sum q_k (L_k + log w_k - log q_k),    l_q = sum q_k l_k.

l_q is a log-likelihood in which duels have weights, and the set lies in {theta: l_q(theta) > L_q - log(1 /
d)} simultaneously for all q: so q can be chosen by any observations, and mixtures can be left out.

Source: Wasserman, Ramdas and Balakrishnan (2020), "Universal Inference", for priors and fits from one part of
the data that are evaluated on the other.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax, xlogy

from winnow.algorithms.best_duel.bradley_terry import Fit, Tally, information, log_likelihood
from winnow.algorithms.low_rank.logistic import sigmoid
from winnow.algorithms.papers.bradley_terry.mixture import Normals, log_integrals, log_mixture
from winnow.algorithms.state.arrays import BoolArray, FloatArray

FIRST = 64  # number of duels at which the first mixture can begin
KEPT = 4  # latest mixtures; earlier ones count nearly all duels, like the one over scales
DECAY = 0.85  # of the weights, from one mixture to the next
MOST_LATE = 0.6  # of the weights, for all late mixtures: short campaigns rely on the first one


class Start(NamedTuple):
    """A mixture that began late."""

    prior: Normals
    """One distribution."""
    log_weight: float
    """log w_k."""
    before: Tally
    """Tally of all pairs of arms when the mixture began."""


class Part(NamedTuple):
    """Duels that one mixture counts, and its prior; None for the one over `SCALES`."""

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
    """For l_q: wins and counts have weights; `unscored` is not used and 0."""
    log_mixture: float
    """L_q, in nats."""


class LateStarts:
    """Mixtures of one campaign, started as duels are observed.

    Args:
        r: Number of coordinates of theta.
    """

    def __init__(self, r: int) -> None:
        self._late = late_weight(r)
        self._starts: deque[Start] = deque(maxlen=KEPT)
        self._next, self._number = FIRST, 0

    def begin(self, told: Tally, fit: Fit) -> None:
        """Begin a mixture if it is due.

        Args:
            told: The tally of all pairs of arms, always in the same order.
            fit: The fit to it.
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
        """Parts of the mixtures: that over scales first, then late ones with duels to count."""
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
    """Weight of all mixtures that begin late, in [0, 1): 0 if they can save little.

    Args:
        r: Number of coordinates of theta.
    """
    return min(MOST_LATE, max(0.0, (r - 2.0) / (r + 1.0)))


def pool(parts: Sequence[Part], theta: FloatArray, rivals: FloatArray) -> Pooled:
    """Compute L_q and l_q with shares that make L_q - l_q high at the rivals.

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
    """Approximate `Part.log_mixture` of a late mixture, much faster; neither a lower nor an upper bound.

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

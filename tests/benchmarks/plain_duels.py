"""LLM-PO written down as it is stated, without any care for speed: what ours is timed beside."""

import math

import numpy as np
from scipy.optimize import minimize

NO_DIVERGENCE = 1e-3


def divergence(x, y):
    return sum(p * math.log(p / q) for p, q in ((x, y), (1.0 - x, 1.0 - y)) if p > 0.0)


class PlainLlmPo:
    """The unstructured method with a list of outcomes per pair, all of it read anew at every step."""

    def __init__(self, n_arms, *, exploration=0.1, delta=0.05, seed=0):
        self._arms = range(n_arms)
        self._exploration, self._delta = exploration, delta
        self._rng = np.random.default_rng(seed)
        self._won = {(i, j): [] for i in self._arms for j in self._arms if i < j}

    def tell(self, pair, won):
        self._won[pair].append(won)

    def ask(self):
        """The pair to duel next, or None when the best arm is separated."""
        t = sum(len(won) for won in self._won.values())
        fewest = min(self._won, key=lambda pair: len(self._won[pair]))
        if len(self._won[fewest]) < max(1, self._exploration * math.sqrt(t)):
            return fewest
        best = max(self._arms, key=lambda i: min(self._share(i, j) for j in self._arms if j != i))
        rivals = [i for i in self._arms if i != best]
        beats_all = all(self._share(best, i) > 0.5 for i in rivals)
        threshold = 2.0 * math.log((math.log(t) + 1.0) / self._delta)
        if beats_all and min(self._evidence_against(i) for i in rivals) > threshold:
            return None
        weights = dict.fromkeys(self._won, 0.0)
        for i in rivals:
            j = min((j for j in self._arms if j != i), key=lambda j: self._share(i, j))
            d = divergence(self._share(i, j), 0.5)
            if not self._share(best, i) > 0.5:
                j, d = best, 0.0
            weights[min(i, j), max(i, j)] += 1.0 / max(d, NO_DIVERGENCE)
        total = sum(len(self._won[pair]) for pair, weight in weights.items() if weight > 0.0)
        sum_of_weights = sum(weights.values())
        behind = {
            pair: total * weight / sum_of_weights - len(self._won[pair])
            for pair, weight in weights.items()
            if weight > 0.0
        }
        most = max(behind.values())
        equals = [pair for pair, lack in behind.items() if lack == most]
        return equals[self._rng.integers(len(equals))]

    def _share(self, i, j):
        won = self._won[min(i, j), max(i, j)]
        share = sum(won) / len(won)
        return share if i < j else 1.0 - share

    def _evidence_against(self, i):
        shares = [(len(self._won[min(i, j), max(i, j)]), self._share(i, j)) for j in self._arms if j != i]
        return sum(count * divergence(share, 0.5) for count, share in shares if share < 0.5)


def plain_structured_step(z, wins, counts, rivals, gaps_of, *, sweeps, radius=10.0):
    """One step of the structured method from nothing: a general-purpose fit, then Frank-Wolfe.

    Args:
        z: Feature differences, shape (P, d).
        wins: Shape (P,).
        counts: Shape (P,).
        rivals: Differences between the best arm and each rival, shape (K - 1, d).
        gaps_of: Gaps of the rivals by theta.
        sweeps: Of Frank-Wolfe.

    Returns:
        The shares of the pairs, shape (P,).
    """
    ridge = counts.sum() ** -0.5

    def loss(theta):
        log_odds = z @ theta
        lost = counts * np.logaddexp(0.0, log_odds) - wins * log_odds
        slope = z.T @ (counts / (1.0 + np.exp(-log_odds)) - wins)
        return lost.sum() + 0.5 * ridge * theta @ theta, slope + ridge * theta

    theta = minimize(loss, np.zeros(z.shape[1]), jac=True, method="L-BFGS-B").x
    theta *= min(1.0, radius / np.linalg.norm(theta))
    chances = 1.0 / (1.0 + np.exp(-(z @ theta)))
    curvature, gaps = chances * (1.0 - chances), gaps_of(theta)
    shares = np.full(len(z), 1.0 / len(z))
    for sweep in range(sweeps):
        inverse = np.linalg.inv((z.T * (shares * curvature)) @ z)
        norms = ((rivals @ inverse) * rivals).sum(axis=1)
        hardest = (gaps**2 / norms).argmin()
        towards = (curvature * (z @ inverse @ rivals[hardest]) ** 2).argmax()
        shares *= 1.0 - 2.0 / (sweep + 3.0)
        shares[towards] += 2.0 / (sweep + 3.0)
    return shares

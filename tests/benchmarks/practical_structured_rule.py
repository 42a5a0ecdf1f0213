"""The stopping rule of the published structured experiments, written down as it is stated."""

import numpy as np

from tests.benchmarks.practical_rule import practical_threshold

EVERY = 10  # duels between looks, which makes the rule stop up to as many later
INFORMATION, STEPS = 0.1, 4


class PracticalStructuredRule:
    """Stop once (theta . y)^2 / (2 y^T H^-1 y) is above the threshold for all rivals, and all is explored.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    equations (3) and (8), and Section 5 for the threshold; the projection (4) is left out, as theta stays far
    inside any ball in these experiments.
    """

    def __init__(self, features, delta):
        self._points = features / np.linalg.norm(features[:, np.newaxis] - features, axis=2).max()
        self._delta = delta
        n_arms, d = features.shape
        self._wins, self._counts = np.zeros((n_arms, n_arms)), np.zeros((n_arms, n_arms))
        self._theta, self._t = np.zeros(d), 0
        self.stopped_at = self.best = None

    def tell(self, arms, wins):
        """Follow a batch of duels, shapes (B, 2) and (B,)."""
        if self.stopped_at is not None:
            return
        for (first, second), won in zip(arms.tolist(), wins.tolist(), strict=True):
            low, high = min(first, second), max(first, second)
            self._counts[low, high] += 1
            self._wins[low, high] += won if first == low else not won
        before, self._t = self._t, self._t + len(arms)
        if self._t // EVERY > before // EVERY:
            self._look()

    def _look(self):
        low, high = np.nonzero(self._counts)
        z, counts, wins = (
            self._points[low] - self._points[high],
            self._counts[low, high],
            self._wins[low, high],
        )
        ridge = self._t**-0.5 * np.eye(z.shape[1])
        for _ in range(STEPS):
            chances = 1.0 / (1.0 + np.exp(-z @ self._theta))
            hessian = (z.T * (counts * chances * (1.0 - chances))) @ z + ridge
            slope = (wins - counts * chances) @ z - ridge @ self._theta
            self._theta = self._theta + np.linalg.solve(hessian, slope)
        scores = self._points @ self._theta
        best = int(scores.argmax())
        rivals = np.delete(self._points, best, axis=0) - self._points[best]
        norms = (rivals * np.linalg.solve(hessian, rivals.T).T).sum(axis=1)
        evidence = ((rivals @ self._theta) ** 2 / (2.0 * norms)).min()
        explored = np.linalg.eigvalsh((z.T * counts) @ z)[0] >= INFORMATION * np.sqrt(self._t) * self._least()
        if evidence > practical_threshold(self._delta, self._t) and explored:
            self.stopped_at, self.best = self._t, best

    def _least(self):
        """What one duel of each of d pairs that span the features gives at least: the smallest eigenvalue."""
        centred = self._points - self._points.mean(axis=0)
        return np.linalg.eigvalsh(centred.T @ centred / len(centred))[0]

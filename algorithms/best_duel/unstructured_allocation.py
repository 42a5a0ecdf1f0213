"""Which share of the duels each pair should have, when nothing is assumed of how pairs hang together."""

import numpy as np

from algorithms.best_duel.divergence import bernoulli_kl
from algorithms.protocols import BoolArray, FloatArray, IntArray

LEAST_DIVERGENCE = 1e-3  # d(0.522, 1/2): a nearer preference is a tie for the allocation


def optimal_shares(preferences: FloatArray, best: int, active: BoolArray) -> FloatArray:
    """The shares that make the evidence against every arm but the best grow equally fast.

    Each such arm i fights only the arm that beats it most clearly, in proportion to 1 / d_i, where d_i =
    max over j that beat i of d(preference of j over i, 1/2). The published corollary is silent where the
    best arm does not beat every other. Here an arm that it does not beat fights it, with a small positive
    d_i: nothing is separated before that is settled.

    Args:
        preferences: Shape (K, K), NaN where nothing is known, which counts as 1/2.
        best: The best arm, one of the active ones.
        active: Shape (K,), at least two arms not set aside.

    Returns:
        Shape (K, K), symmetric; each pair of arms has its share in both places, so the sum is 2.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Corollary 3.3.
    """
    opponents, divergences = _clearest_opponents(preferences, best, active)
    rivals = np.flatnonzero(active)
    rivals = rivals[rivals != best]
    weights = 1.0 / np.maximum(divergences[rivals], LEAST_DIVERGENCE)
    shares = np.zeros_like(preferences)
    np.add.at(shares, (rivals, opponents[rivals]), weights / weights.sum())
    return shares + shares.T


def likeliest_best(preferences: FloatArray, counts: IntArray, best: int, active: BoolArray) -> int:
    """The arm for which it is least hard to believe that it beats every other.

    That is `best` where it beats every other. Elsewhere the highest worst preference misleads: the true best
    arm may have a low one for want of duels, and few come while the shares are those of another best arm.

    Args:
        preferences: Shape (K, K), NaN where nothing is known.
        counts: Shape (K, K), scored duels.
        best: The arm with the highest worst preference, taken among equals.
        active: Shape (K,), arms not set aside.
    """
    if (np.delete(preferences[best], best)[np.delete(active, best)] > 0.5).all():
        return best
    losing = np.where(active & (preferences < 0.5), preferences, 0.5)
    against = np.where(active, (counts * bernoulli_kl(losing, 0.5)).sum(axis=1), np.inf)
    return best if against[best] == against.min() else int(against.argmin())


def characteristic_time(preferences: FloatArray) -> float:
    """T*: no method with error probability delta needs fewer than T* log(1/delta) duels as delta goes to 0.

    Args:
        preferences: Shape (K, K), P(row is preferred to column); some arm beats every other.

    Returns:
        The sum of 1 / d_i over all arms but the best, in duels per nat.

    Source: Hu et al. (2026), Theorem 3.2 with the allocation of Corollary 3.3.
    """
    active = np.ones(len(preferences), dtype=np.bool_)
    best = int((preferences + np.diag(np.full(len(preferences), np.inf))).min(axis=1).argmax())
    _, divergences = _clearest_opponents(preferences, best, active)
    return float((1.0 / np.delete(divergences, best)).sum())


def _clearest_opponents(preferences: FloatArray, best: int, active: BoolArray) -> tuple[IntArray, FloatArray]:
    """Who beats each arm most clearly, shape (K,), and d_i, shape (K,).

    Of an arm that the best one does not beat yet, that is the best one, and d_i is 0.
    """
    losing = np.where(active & (preferences < 0.5), preferences, 0.5)  # (K, K), NaN is not below 1/2
    opponents = losing.argmin(axis=1)
    worst = losing[np.arange(len(losing)), opponents]
    is_open = ~(preferences[best] > 0.5)
    return np.where(is_open, best, opponents), np.where(is_open, 0.0, bernoulli_kl(worst, 0.5))

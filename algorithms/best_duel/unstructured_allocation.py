"""Optimal shares of the duels per pair when no relation between pairs is assumed."""

import numpy as np

from winnow.algorithms.best_duel.win_tables import Standings
from winnow.algorithms.state.arrays import BoolArray, IntArray

LEAST_DIVERGENCE = 1e-3  # d(0.522, 1/2): a closer preference counts as a tie for the allocation


def optimal_shares(standings: Standings, best: int, rivals: IntArray) -> dict[tuple[int, int], float]:
    """Shares that make the evidence against every arm except the best grow equally fast.

    Each such arm i is compared only with the arm that beats it most clearly, in proportion to 1 / d_i, with
    d_i = max over j that beat i of d(preference of j over i, 1/2). The published corollary does not cover a
    best arm that does not beat every other. Here an arm that it does not beat is compared with it, with a
    small positive d_i: the best arm is not separated before these pairs are.

    Args:
        standings: Standings of the active arms.
        best: The best arm.
        rivals: The other active arms in ascending order, at least one.

    Returns:
        The positive shares by pair, the lower arm first, in ascending order; their sum is 1.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Corollary 3.3.
    """
    opponents = standings.opponents[rivals]
    divergences = standings.divergences[rivals, opponents]
    if not standings.estimates[best] > 0.5:
        is_open = ~(standings.preferences[best, rivals] > 0.5)
        opponents[is_open], divergences[is_open] = best, 0.0
    weights = 1.0 / np.maximum(divergences, LEAST_DIVERGENCE)
    weights /= weights.sum()
    shares: dict[tuple[int, int], float] = {}
    for arm, opponent, weight in zip(rivals.tolist(), opponents.tolist(), weights.tolist(), strict=True):
        pair = (arm, opponent) if arm < opponent else (opponent, arm)
        shares[pair] = shares.get(pair, 0.0) + weight
    return dict(sorted(shares.items()))


def settling_shares(standings: Standings, best: int, opponents: IntArray) -> dict[tuple[int, int], float]:
    """Shares that settle equally fast whether the best arm beats each of these opponents.

    Args:
        standings: Standings of the active arms.
        best: The best arm.
        opponents: Active arms in ascending order, at least one, each behind the best arm so far.

    Returns:
        Same format as `optimal_shares`.
    """
    weights = 1.0 / np.maximum(standings.divergences[opponents, best], LEAST_DIVERGENCE)
    weights /= weights.sum()
    return {
        (min(best, opponent), max(best, opponent)): weight
        for opponent, weight in zip(opponents.tolist(), weights.tolist(), strict=True)
    }


def likeliest_best(standings: Standings, best: int, active: BoolArray) -> int:
    """The arm with the least evidence against its beating every other.

    That is `best` if it beats every other. Otherwise the highest worst preference can mislead: the true best
    arm can have a low one because it has few duels, and it gets few while the shares are those of another
    best arm.

    Args:
        standings: Standings of the active arms.
        best: The arm with the highest worst preference, returned if several arms have the least evidence.
        active: Shape (K,), arms not dropped.
    """
    if standings.estimates[best] > 0.5:
        return best
    doubts = np.where(active, standings.doubts, np.inf)
    likeliest = int(doubts.argmin())
    return best if doubts[best] == doubts[likeliest] else likeliest

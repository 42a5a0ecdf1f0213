"""The shares of the duels that each pair should have when nothing is assumed of how pairs are related."""

import numpy as np

from winnow.algorithms.best_duel.win_tables import Standings
from winnow.algorithms.state.arrays import BoolArray, IntArray

LEAST_DIVERGENCE = 1e-3  # d(0.522, 1/2): a nearer preference is a tie for the allocation


def optimal_shares(standings: Standings, best: int, rivals: IntArray) -> dict[tuple[int, int], float]:
    """The shares that make the evidence against every arm but the best grow equally fast.

    Each such arm i fights only the arm that beats it most clearly, in proportion to 1 / d_i, where d_i =
    max over j that beat i of d(preference of j over i, 1/2). The published corollary is silent where the
    best arm does not beat every other. Here an arm that it does not beat fights it, with a small positive
    d_i: nothing is separated before that is settled.

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
    """The shares that settle equally fast whether the best arm beats each of these opponents.

    Args:
        standings: Standings of the active arms.
        best: The best arm.
        opponents: Active arms in ascending order, at least one, all of them behind it so far.

    Returns:
        As `optimal_shares`.
    """
    weights = 1.0 / np.maximum(standings.divergences[opponents, best], LEAST_DIVERGENCE)
    weights /= weights.sum()
    return {
        (min(best, opponent), max(best, opponent)): weight
        for opponent, weight in zip(opponents.tolist(), weights.tolist(), strict=True)
    }


def likeliest_best(standings: Standings, best: int, active: BoolArray) -> int:
    """The arm for which it is least hard to believe that it beats every other.

    That is `best` where it beats every other. Elsewhere the highest worst preference misleads: the true best
    arm may have a low one for want of duels, and few come while the shares are those of another best arm.

    Args:
        standings: Standings of the active arms.
        best: The arm with the highest worst preference, taken among equals.
        active: Shape (K,), arms not dropped.
    """
    if standings.estimates[best] > 0.5:
        return best
    doubts = np.where(active, standings.doubts, np.inf)
    likeliest = int(doubts.argmin())
    return best if doubts[best] == doubts[likeliest] else likeliest

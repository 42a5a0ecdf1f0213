"""LLM-PO: duels in the proportions that rule out all other arms equally fast."""

import math

import numpy as np

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.count_evidence import CountEvidence
from winnow.algorithms.best_duel.duel_record import NONE_LEFT
from winnow.algorithms.best_duel.stopping import DuelSelector
from winnow.algorithms.best_duel.win_tables import Standings
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, IntArray


class LlmPo(DuelSelector):
    """Follow the optimal shares for the preferences observed so far, with a minimum for every pair.

    The next pair is the one with the fewest duels, if it has fewer than `n0` or than `exploration` times the
    square root of the number of all duels so far. Otherwise it is the pair that is furthest behind its share.
    Ties are broken at random. Within a batch, and while others are in flight, proposed duels count as
    observed and the preferences stay the same. So a batch of B is spread over pairs like B single duels in
    flight. A tie is half a win for each arm, and unscored duels count as proposed. With features, the
    Bradley-Terry model gives the preferences and the statistic; the shares still consider each pair
    separately.

    A batch of 1 is the published method with three departures:

    * A pair's share refers to the duels of the pairs that have a share, not to all t duels. Otherwise duels
      from the minimum and from earlier estimates would put every share behind by the same number, and pairs
      with small shares would get no duels for long.
    * While no arm beats every other, the shares are those of `likeliest_best`, including the open pairs.
    * If no winner is assumed, and every arm except the best is ruled out as a winner, the best arm is
      compared with the arms that it is not shown to beat, because it is separated only then. If each arm
      loses most clearly to the best arm, this takes few duels.

    Pairs that have used every example, and arms that certainly lose, have no share.

    Args:
        config: The problem and the common parameters.
        exploration: c' of the paper, which states no value; positive.
        n0: Number of duels of every pair before shares are followed, at least 1.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 4.2, equations (6) and (7), unstructured policy space.
    """

    def __init__(self, config: BestDuelConfig, *, exploration: float = 0.1, n0: int = 1) -> None:
        if not 0.0 < exploration < np.inf:
            raise InvalidParameter("exploration", exploration, "positive and finite")
        if n0 < 1:
            raise InvalidParameter("n0", n0, "at least 1")
        self._exploration = exploration
        self._n0 = n0
        super().__init__(config)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose duels of the pairs that are furthest behind their shares."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        return self._stopping.record.ask(self._track(self._shares(), room, rng), rng)

    def _shares(self) -> dict[tuple[int, int], float]:
        """Positive shares by pair, in ascending order; empty before the first scored duel."""
        record, evidence = self._stopping.record, self._stopping.evidence
        if evidence.best is None:
            return {}
        if isinstance(evidence, CountEvidence):
            standings = evidence.standings
            if len(evidence.unsettled):
                return settling_shares(standings, evidence.best, evidence.unsettled)
        else:
            standings = Standings(evidence.preferences, record.counts, record.active)
        leader = likeliest_best(standings, evidence.best, record.active)
        rivals = np.flatnonzero(record.active & ~evidence.losers)
        rivals = rivals[rivals != leader]
        return optimal_shares(standings, leader, rivals) if len(rivals) else {}

    def _track(self, shares: dict[tuple[int, int], float], size: int, rng: np.random.Generator) -> IntArray:
        """Choose pairs one by one, by their shares and numbers of proposed duels.

        Returns:
            Shape (size, 2), the lower arm first.
        """
        record = self._stopping.record
        t, n_arms = record.n_told + record.n_pending, record.n_arms
        asked = record.asked()
        cells = {first * n_arms + second: share for (first, second), share in shares.items()}
        wanted = {cell: share for cell, share in cells.items() if asked.item(cell) < NONE_LEFT}
        chosen = []
        for now in range(t, t + size):
            counts = asked[record.cells]
            least = counts.min()
            if least < max(self._n0, self._exploration * math.sqrt(now)) or not wanted:
                equals = record.cells[counts == least].tolist()
            else:
                equals = _furthest_behind(wanted, [asked.item(cell) for cell in wanted])
            pick = equals[0] if len(equals) == 1 else equals[rng.integers(len(equals))]
            record.count(asked, pick)
            if asked.item(pick) == NONE_LEFT:
                wanted.pop(pick, None)
            chosen.append(divmod(pick, n_arms))
        return np.array(chosen)


def _furthest_behind(shares: dict[int, float], asked: list[int]) -> list[int]:
    """Pairs with the largest deficit relative to their shares.

    Shares refer to the duels of all these pairs.
    """
    total = sum(asked)
    behind = [total * share - count for share, count in zip(shares.values(), asked, strict=True)]
    most = max(behind)
    return [pair for pair, lack in zip(shares, behind, strict=True) if lack == most]


LEAST_DIVERGENCE = 1e-3  # d(0.522, 1/2): a closer preference counts as a tie for the allocation


def optimal_shares(standings: Standings, best: int, rivals: IntArray) -> dict[tuple[int, int], float]:
    """Shares with which the evidence against all other arms grows equally fast.

    Each such arm i is compared only with the arm that beats it most clearly, in proportion to 1 / d_i, where
    d_i = max over j that beat i of d(preference of j over i, 1/2). The published corollary does not cover a
    best arm that does not beat every other. Here an arm that it does not beat is compared with it, with a
    small positive d_i, because the best arm is not separated before these pairs are.

    Args:
        standings: Tables of the active arms.
        best: The best arm.
        rivals: The other active arms in ascending order, at least one.

    Returns:
        The positive shares by pair, the lower arm first, in ascending order; they sum to 1.

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
    """Shares with which the best arm's duels settle equally fast.

    These are the duels against each of `opponents`.

    Args:
        standings: Tables of the active arms.
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
    """The arm with the least evidence against the claim that it beats every other arm.

    This is `best` if it beats every other. Otherwise the highest worst preference can mislead: the true best
    arm can have a low worst preference because it has few duels, and it gets few duels while the shares are
    those of another best arm.

    Args:
        standings: Tables of the active arms.
        best: The arm with the highest worst preference, returned if several arms have the least evidence.
        active: Shape (K,), arms not dropped.
    """
    if standings.estimates[best] > 0.5:
        return best
    doubts = np.where(active, standings.doubts, np.inf)
    likeliest = int(doubts.argmin())
    return best if doubts[best] == doubts[likeliest] else likeliest

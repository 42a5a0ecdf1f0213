"""Published selectors of duels.

Random pairs, round robin, epsilon-greedy, RUCB and double Thompson sampling.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.count_evidence import CountEvidence
from winnow.algorithms.best_duel.duel_record import integers
from winnow.algorithms.best_duel.stopping import DuelSelector
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import EMPTY_BATCH, Batch
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


class RandomPair(DuelSelector):
    """Propose pairs drawn uniformly and independently: a baseline that does not adapt.

    A tie is half a win for each arm.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 5 (RandomPair).
    """

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch of random pairs."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record = self._stopping.record
        return record.ask(record.pairs[integers(rng, len(record.pairs), room)], rng)


class RoundRobin(DuelSelector):
    """Propose the pairs in a fixed order, over and over: a baseline that does not adapt.

    The next pair is the first of those with the fewest proposed duels. So the order also holds if arms are
    dropped, or if duels are observed that were not proposed here. A tie is half a win for each arm.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 5 (RoundRobin).
    """

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose the next pairs in the fixed order."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record = self._stopping.record
        asked, chosen = record.asked(), []
        for _ in range(room):
            place = asked[record.cells].argmin()
            record.count(asked, record.cells[place])
            chosen.append(place)
        return record.ask(record.pairs[chosen], rng)


class EpsGreedy(DuelSelector):
    """Propose a random pair with probability `exploration`, otherwise the best arm and its top opponent.

    An opponent without duels counts as even. Ties go to the opponent with the fewest proposed duels, then to
    a random one. Within a batch the preferences stay the same. A tie is half a win for each arm.

    Args:
        config: The problem and the common parameters.
        exploration: Share of random pairs, the method's epsilon, in [0, 1]; the paper states no value.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 5 (EpsGreedy).
    """

    def __init__(self, config: BestDuelConfig, *, exploration: float = 0.1) -> None:
        if not 0.0 <= exploration <= 1.0:
            raise InvalidParameter("exploration", exploration, "in [0, 1]")
        self._exploration = exploration
        super().__init__(config)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch, each duel random or greedy."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record, best = self._stopping.record, self._stopping.evidence.best
        chosen = record.pairs[integers(rng, len(record.pairs), room)]
        if best is not None:
            is_greedy = rng.random(room) >= self._exploration
            chosen[is_greedy] = self._greedy(best, int(is_greedy.sum()), rng)
        return record.ask(chosen, rng)

    def _greedy(self, best: int, size: int, rng: np.random.Generator) -> IntArray:
        """Pairs of the best arm with its strongest opponents, shape (size, 2)."""
        record = self._stopping.record
        preferences = self._stopping.evidence.preferences[best]
        even = np.where(np.isnan(preferences), 0.5, preferences)
        even[best] = np.inf
        worst = np.where(record.active, even, np.inf)
        strongest = np.flatnonzero(worst == worst.min())
        opponents = np.full(size, strongest[0])
        if len(strongest) > 1:
            asked = record.told[best, strongest] + record.pending[best, strongest]
            for place in range(size):
                least = np.flatnonzero(asked == asked.min())
                pick = least[rng.integers(least.size)]
                asked[pick] += 1
                opponents[place] = strongest[pick]
        return np.stack([np.full(size, best), opponents], axis=1)


class Rucb(DuelSelector):
    """Propose an arm whose upper bounds all reach 1/2, and the opponent with the highest upper bound.

    The bound of a pair is its preference plus sqrt(alpha log t / duels). A pair without duels has the bound
    1; a pair without a scored duel has the preference 1/2. The opponent's bound is that of its preference
    over the first arm. Of several possible winners, the one that was the only possible winner before is
    chosen half of the time. Ties are broken at random. Within a batch, and while others are in flight,
    proposed duels narrow the bounds and the preferences stay the same, so a batch is spread over pairs. An
    arm is never compared with itself, because that gives no information on the best arm; the published
    method, which minimises regret, can do so. A tie is half a win for each arm.

    Args:
        config: The problem and the common parameters.
        alpha: Weight of uncertainty, above 1/2.

    Source: Zoghi et al. (2014), "Relative Upper Confidence Bound for the K-Armed Dueling Bandit Problem",
    Algorithm 1, with alpha = 0.51 as in its experiments; Hu et al. (2026), Section 5 (RUCB).
    """

    def __init__(self, config: BestDuelConfig, *, alpha: float = 0.51) -> None:
        if not 0.5 < alpha < np.inf:
            raise InvalidParameter("alpha", alpha, "above 1/2 and finite")
        self._alpha = alpha
        super().__init__(config)
        self._favourite: int | None = None
        self._told = self._bounds(self._stopping.record.told, 0)

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch of duels of possible winners."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        record = self._stopping.record
        asked = record.told + record.pending
        duels = np.empty((room, 2), dtype=np.int64)
        for place in range(room):
            t = record.n_told + record.n_pending + place
            upper, possible = self._told if t == record.n_told else self._bounds(asked, t)
            first = self._champion(possible, rng)
            second = self._challenger(upper[:, first], first, rng)
            duels[place] = first, second
            asked[first, second] += 1
            asked[second, first] += 1
        return record.ask(duels, rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe outcomes in [0, 1] in favour of the first arm, NaN if unscored."""
        super().tell(batch, outcomes)
        record = self._stopping.record
        self._told = self._bounds(record.told, record.n_told)
        _, possible = self._told
        if np.count_nonzero(possible) == 1:
            self._favourite = int(possible.argmax())
        elif self._favourite is not None and not possible[self._favourite]:
            self._favourite = None

    def _bounds(self, duels: IntArray, t: int) -> tuple[FloatArray, BoolArray]:
        """Upper bounds of the preferences, and which arms can still be the winner.

        A possible winner is an active arm that can beat every other active arm.

        Returns:
            Shape (K, K), at most 1, and shape (K,).
        """
        preferences, active = self._stopping.evidence.preferences, self._stopping.record.active
        width = np.sqrt(self._alpha * math.log(max(t, 1)) / np.maximum(duels, 1))
        upper = np.where(np.isnan(preferences), 0.5, preferences) + width
        upper[duels == 0] = 1.0
        upper.flat[:: len(upper) + 1] = 0.5
        return np.minimum(upper, 1.0), active & ((upper >= 0.5) | ~active).all(axis=1)

    def _champion(self, possible: BoolArray, rng: np.random.Generator) -> int:
        """Choose one of the possible winners; `possible` is a mask of shape (K,)."""
        arms = np.flatnonzero(possible)
        if self._favourite is not None and possible[self._favourite]:
            if len(arms) == 1 or rng.random() < 0.5:
                return self._favourite
            arms = arms[arms != self._favourite]
        return _one_of(arms if len(arms) else np.flatnonzero(self._stopping.record.active), rng)

    def _challenger(self, upper: FloatArray, champion: int, rng: np.random.Generator) -> int:
        """Choose the opponent with the highest upper bound over the champion.

        `upper` has shape (K,).
        """
        eligible = np.where(self._stopping.record.active, upper, -np.inf)
        eligible[champion] = -np.inf
        return _one_of(np.flatnonzero(eligible == eligible[eligible.argmax()]), rng)


def _one_of(arms: IntArray, rng: np.random.Generator) -> int:
    return int(arms[0] if len(arms) == 1 else arms[rng.integers(len(arms))])


class Thompson(DuelSelector):
    """Propose the arm that beats most others in a posterior draw, and its top opponent in another draw.

    The posterior of a pair is Beta(1 + wins, 1 + losses), with a tie as half a win for each arm. With
    features, the wins are the Bradley-Terry model's preference times the pair's duels. The first draw matters
    only for which arm of a pair wins, so this is drawn, with its posterior probability, instead of the
    preference. The top opponent is the arm with the highest drawn preference over the first arm. Every duel
    of a batch has its own draws, so batches are spread over pairs. An arm is never compared with itself,
    because that gives no information on the best arm; the published method, which minimises regret, can do
    so.

    Source: Wu and Liu (2016), "Double Thompson Sampling for Dueling Bandits", Algorithm 1, without the bounds
    that prune its candidates, as in Hu et al. (2026), Section 5 (Thompson Sampling).
    """

    def __init__(self, config: BestDuelConfig) -> None:
        super().__init__(config)
        self._follow_all()

    def ask(self, rng: np.random.Generator) -> Batch:
        """Propose a batch of duels, each from its own posterior draws."""
        room = self._stopping.room()
        if room == 0:
            return EMPTY_BATCH
        arms = self._arms(room, rng)
        return self._stopping.record.ask(np.column_stack([arms, self._opponents(arms, rng)]), rng)

    def tell(self, batch: Batch, outcomes: ArrayLike) -> None:
        """Observe outcomes in [0, 1] in favour of the first arm, NaN if unscored."""
        super().tell(batch, outcomes)
        record = self._stopping.record
        is_as_before = record.pairs is self._pairs and isinstance(self._stopping.evidence, CountEvidence)
        if is_as_before and len(record.scored) <= record.n_arms:
            for pair in record.scored:
                self._follow(min(pair), max(pair))
        else:
            self._follow_all()

    def _follow(self, row: int, column: int) -> None:
        """Update the posterior of a pair of arms; `row` must be the lower arm."""
        if self._chances[row, column] < 0.0:
            return
        count = self._stopping.record.counts[row, column]
        wins = self._stopping.evidence.preferences[row, column] * count
        self._chances[row, column] = betainc(1.0 + count - wins, 1.0 + wins, 0.5)

    def _follow_all(self) -> None:
        record = self._stopping.record
        self._pairs = record.pairs
        rows, columns = record.pairs.T
        counts = record.counts[rows, columns]
        shares = self._stopping.evidence.preferences[rows, columns]
        wins = np.where(np.isnan(shares), 0.5, shares) * counts
        # (K, K) probability that the row's preference over the column is above 1/2, for pairs of active arms,
        # the lower arm first; negative elsewhere, so that no draw is below it.
        self._chances: FloatArray = np.full((record.n_arms, record.n_arms), -1.0)
        self._chances[rows, columns] = betainc(1.0 + counts - wins, 1.0 + wins, 0.5)
        # (K,) number of active arms with a lower index
        self._n_before: IntArray = np.cumsum(record.active) - record.active

    def _arms(self, size: int, rng: np.random.Generator) -> IntArray:
        """In each posterior draw, the active arm that beats most opponents.

        The result has shape (size,). Ties are broken at random.
        """
        record = self._stopping.record
        is_won = rng.random((size, record.n_arms, record.n_arms)) < self._chances  # (B, K, K)
        n_beaten = is_won.sum(axis=2) + (self._n_before - is_won.sum(axis=1))  # (B, K)
        ranked = np.where(record.active, n_beaten + rng.random(n_beaten.shape), -1.0)
        arms: IntArray = ranked.argmax(axis=1)
        return arms

    def _opponents(self, arms: IntArray, rng: np.random.Generator) -> IntArray:
        """For each arm, the opponent with the highest drawn preference, shape (B,).

        Only active opponents count.
        """
        record = self._stopping.record
        counts = record.counts[arms]  # (B, K)
        shares = self._stopping.evidence.preferences[arms]
        wins = np.where(np.isnan(shares), 0.5, shares) * counts
        drawn = np.where(record.active, rng.beta(1.0 + counts - wins, 1.0 + wins), -1.0)
        drawn[np.arange(len(arms)), arms] = -1.0
        opponents: IntArray = drawn.argmax(axis=1)
        return opponents

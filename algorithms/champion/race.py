"""Betting test per arm on common examples.

An arm's wealth grows while it scores below its opponents' mean. Letters: N examples, t of them observed for
every arm in the race; x_i is the score of arm i; D = o - x_i, where o is the mean score of the arm's
opponents on the same example. r = -(sum of D so far) / (N - t) is the mean of D over the unobserved examples
if arm i had exactly its opponents' mean over all examples. If examples have weights, sums of D are weighted,
and N - t is the weight of the unobserved examples.
"""

from typing import NamedTuple

import numpy as np

from winnow.algorithms.champion.wealth import HIGHEST_LOG, LEAST_ROOM, MOST_STAKED
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray, with_more

BETS = np.array([1.2, 0.5, 0.2, 0.07])
"""Fixed bets, as shares of the stake for a lead of 1.
Each has its own wealth; the wealths are averaged."""
SHARE_OF_FIXED = 0.7  # share of the stake on fixed bets; the rest is bet adaptively
FIRST_ADAPTIVE = 0.3
LEAST_LEAD = 1.4  # in standard errors: smallest lead that adaptive bets assume
OPPONENT_COUNTS = np.array([1, 2, 3, 4, 6, 8, 12])
"""Possible numbers of opponents, which are the best other arms.
The number is chosen for each arm."""


class Opponents(NamedTuple):
    """Opponents of A arms, chosen before the scores of the comparison are known."""

    members: IntArray
    """Shape (V, W), lists of arms, best first.
    Each is the list of the leading arms without one of them."""
    which: IntArray
    """Shape (A,), index of the row of `members` with each arm's opponents."""
    size: IntArray
    """Shape (A,), number of opponents.
    These are the first arms of the arm's row of `members`."""
    adaptive: FloatArray
    """Shape (A,), adaptive bet."""


class Columns(NamedTuple):
    """Scores, in one batch, of all arms in the race."""

    arms: IntArray
    """Shape (A,), the arms in the race."""
    scores: FloatArray
    """Shape (A, B), on B common examples in the order of the draws; NaN if unscored at first."""
    weights: FloatArray
    """Shape (B,), weights of these examples."""
    revised: FloatArray | None = None
    """The scores with those that came later; None if none came."""

    @property
    def latest(self) -> FloatArray:
        """The scores as known now; a batch keeps the opponents and bets of the time it was observed."""
        return self.scores if self.revised is None else self.revised


class Race:
    """Wealths of the arms that are still in the race.

    A wealth starts at 1. For an arm whose mean is at least that of all others, the mean of D is at most 0
    over all examples, and so at most r over the unobserved ones. The wealth is then a non-negative
    supermartingale for any choice of opponents and bets that does not depend on the scores of the next
    example. An unscored pair counts as 0 for an opponent and as 1 for the arm itself, so this holds for every
    completion.

    Args:
        n_arms: K.
        n_examples: N.
        bets: Whether to bet; without bets, neither products nor scores are stored.
    """

    def __init__(self, n_arms: int, n_examples: int, *, bets: bool = True) -> None:
        self._n_examples, self._bets = n_examples, bets
        self._weight = 0.0  # of the observed examples
        self._worth_low = np.zeros(n_arms)  # (K,) weighted sums of the scores, unscored as 0
        self._worth_high = np.zeros(n_arms)  # (K,) weighted sums of the scores, unscored as 1
        self.columns = np.zeros(n_arms, dtype=np.int64)
        """Shape (K,), examples observed for each arm while it was in the race."""
        self.low = np.zeros(n_arms)  # (K,) sums of the scores, unscored as 0
        self.high = np.zeros(n_arms)  # (K,) sums of the scores, unscored as 1
        n_betting = n_arms if bets else 0
        self.products = np.zeros((n_betting, n_betting))
        """Shape (K, K), sums of products of scores, unscored as 0; empty without bets."""
        self._logs = np.zeros((n_arms, len(BETS) + 1))  # (K, 5), the adaptive one last
        self._has_met = np.zeros((n_betting, n_betting), dtype=np.bool_)  # [i, j]: i has bet against j
        self.told: list[Columns] = []
        """Columns that were bet on, by batch."""
        self._opponents: list[Opponents] = []  # of these batches

    def add_arms(self, count: int) -> None:
        """Append arms that are not in the race."""
        self.columns, self._logs = with_more(self.columns, count), with_more(self._logs, count)
        self.low, self.high = with_more(self.low, count), with_more(self.high, count)
        self._worth_low = with_more(self._worth_low, count)
        self._worth_high = with_more(self._worth_high, count)
        if self._bets:
            self.products = with_more(self.products, count, axes=2)
            self._has_met = with_more(self._has_met, count, axes=2)

    @property
    def n_columns(self) -> int:
        """Number t of examples observed for all arms in the race."""
        return int(self.columns.max())

    def wealths(self, arms: IntArray) -> FloatArray:
        """Wealths of some arms, shape (A,)."""
        wealths = np.exp(np.minimum(self._logs[arms], HIGHEST_LOG))
        fixed = wealths[:, :-1].mean(axis=1)
        return np.asarray(SHARE_OF_FIXED * fixed + (1.0 - SHARE_OF_FIXED) * wealths[:, -1])

    def met_any(self, arms: BoolArray) -> BoolArray:
        """Which arms have bet against any of the arms in `arms`.

        Both are masks of shape (K,).
        """
        if not self._bets:
            return np.zeros_like(arms)
        return np.asarray(self._has_met[:, arms].any(axis=1))

    def tell(self, arms: IntArray, scores: FloatArray, weights: FloatArray | None = None) -> None:
        """Bet on the next columns, then add them to the sums.

        Args:
            arms: Shape (A,), the arms in the race; bets require at least 2.
            scores: Shape (A, B), on B examples, each drawn from the unobserved ones with a probability
                proportional to its weight; NaN if unscored.
            weights: Shape (B,), of these examples; the weights of all examples sum to N. None if all are 1.
        """
        low, high = np.nan_to_num(scores, nan=0.0), np.nan_to_num(scores, nan=1.0)
        weights = np.ones(scores.shape[1]) if weights is None else weights
        if self._bets and len(arms) > 1:
            opponents = self._choose(arms)
            worth = self._worth_low, self._worth_high, self._weight
            self._logs[arms] += self._growth(arms, low, high, weights, opponents, *worth)
            self._remember(arms, opponents)
            self._opponents.append(opponents)
            self.products[np.ix_(arms, arms)] += low @ low.T
            self.told.append(Columns(arms, scores, weights))
        self.columns[arms] += scores.shape[1]
        self.low[arms] += low.sum(axis=1)
        self.high[arms] += high.sum(axis=1)
        self._worth_low[arms] += (weights * low).sum(axis=1)
        self._worth_high[arms] += (weights * high).sum(axis=1)
        self._weight += float(weights.sum())

    def revise(self, arms: IntArray, places: IntArray, scores: FloatArray) -> None:
        """Replace missing scores, and compute all wealths anew with the opponents and bets of the time.

        Args:
            arms: Shape (B,).
            places: Shape (B,), place of the example among those observed for the arm.
            scores: Shape (B,), in [0, 1].
        """
        for arm, place, score in zip(arms.tolist(), places.tolist(), scores.tolist(), strict=True):
            self._replace(arm, place, score)
        self._logs[:] = self.products[:] = 0.0
        low_sums, high_sums, weight = np.zeros_like(self.low), np.zeros_like(self.low), 0.0
        for columns, opponents in zip(self.told, self._opponents, strict=True):
            low, high = np.nan_to_num(columns.latest, nan=0.0), np.nan_to_num(columns.latest, nan=1.0)
            worth = low_sums, high_sums, weight
            members = columns.arms
            self._logs[members] += self._growth(members, low, high, columns.weights, opponents, *worth)
            self.products[np.ix_(members, members)] += low @ low.T
            low_sums[members] += (columns.weights * low).sum(axis=1)
            high_sums[members] += (columns.weights * high).sum(axis=1)
            weight += float(columns.weights.sum())

    def _replace(self, arm: int, place: int, score: float) -> None:
        """Replace a missing score of an arm's example, by its place; no bets are made on later ones."""
        for number, columns in enumerate(self.told):
            if not (columns.arms == arm).any():
                continue
            if place < len(columns.weights):
                revised = columns.latest.copy()
                revised[columns.arms == arm, place] = score
                self.told[number] = columns._replace(revised=revised)
                weight = columns.weights[place]
                self.low[arm] += score
                self.high[arm] += score - 1.0
                self._worth_low[arm] += weight * score
                self._worth_high[arm] += weight * (score - 1.0)
                return
            place -= len(columns.weights)

    def differences(self, arm: int, other: int) -> FloatArray:
        """Score differences of two arms on their common columns, in order of observation.

        NaN if either was unscored at first.
        """
        found = [
            each.scores[each.arms == arm][0] - each.scores[each.arms == other][0]
            for each in self.told
            if (each.arms == arm).any() and (each.arms == other).any()
        ]
        return np.concatenate(found) if found else np.zeros(0)

    def _remember(self, arms: IntArray, opponents: Opponents) -> None:
        """Record which opponents each arm has bet against."""
        for row, size in {(int(v), int(s)) for v, s in zip(opponents.which, opponents.size, strict=True)}:
            mine = (opponents.which == row) & (opponents.size == size)
            self._has_met[np.ix_(arms[mine], opponents.members[row, :size])] = True

    def _growth(
        self,
        arms: IntArray,
        low: FloatArray,
        high: FloatArray,
        weights: FloatArray,
        opponents: Opponents,
        worth_low: FloatArray,
        worth_high: FloatArray,
        weight: float,
    ) -> FloatArray:
        """Growth of the log wealths by a batch, shape (A, 5).

        Args:
            arms: Shape (A,), the arms in the race.
            low: Shape (A, B), their scores, unscored as 0.
            high: Shape (A, B), the same, unscored as 1.
            weights: Shape (B,).
            opponents: Their opponents and bets.
            worth_low: Shape (K,), weighted sums of all scores before the batch, unscored as 0.
            worth_high: Shape (K,), the same, unscored as 1.
            weight: Weight of the examples before the batch.
        """
        position = np.full(len(self.low), -1)
        position[arms] = np.arange(len(arms))
        among = position[opponents.members]  # (V, W) rows of `low`
        pick = (opponents.which, opponents.size - 1)
        theirs = _mean_of_first(low[among])[pick]  # (A, B)
        sums = _mean_of_first(worth_low[opponents.members])[pick]  # (A,)
        lead = theirs - high  # (A, B) D
        worth = weights * lead
        before = (sums - worth_high[arms])[:, np.newaxis] + worth.cumsum(axis=1) - worth
        left = self._n_examples - weight - (weights.cumsum() - weights)  # (B,)
        left = np.maximum(left, weights)  # rounding must not make it smaller than the draw's own weight
        return log_growth(lead, -before / left, self._n_examples / left, opponents.adaptive[:, np.newaxis])

    def _choose(self, arms: IntArray) -> Opponents:
        """Choose opponents for each arm, and a bet that fits its lead.

        The opponents are those with the clearest lead so far.
        """
        width = min(int(OPPONENT_COUNTS[-1]), len(arms) - 1)
        ranked = arms[np.argsort(-self.low[arms], kind="stable")]
        top = ranked[: width + 1]
        members = np.stack([np.delete(top, row) for row in range(width + 1)])  # (W + 1, W)
        rank = np.full(len(self.low), width)
        rank[top] = np.arange(width + 1)
        which = rank[arms]
        sizes = OPPONENT_COUNTS[width >= OPPONENT_COUNTS]
        t = self.n_columns
        if t == 0:
            size = np.full(len(arms), sizes[-1])
            return Opponents(members, which, size, np.full(len(arms), FIRST_ADAPTIVE))
        of_groups = _mean_of_first(self.low[members])[:, sizes - 1]  # (V, G)
        lead = (of_groups[which] - self.high[arms][:, np.newaxis]) / t  # (A, G)
        moment = (self._squared_leads(arms, members, which, sizes) + 0.1) / (t + 1)
        chosen = (np.maximum(lead, 0.0) ** 2 / moment).argmax(axis=1)
        pick = (np.arange(len(arms)), chosen)
        gap = np.maximum(lead[pick], LEAST_LEAD * np.sqrt(moment[pick] / t))
        return Opponents(members, which, sizes[chosen], gap / moment[pick])

    def _squared_leads(
        self, arms: IntArray, members: IntArray, which: IntArray, sizes: IntArray
    ) -> FloatArray:
        """Sums of D^2 so far, by arm and number of opponents, shape (A, G)."""
        inner = self.products[members[:, :, np.newaxis], members[:, np.newaxis, :]]  # (V, W, W)
        inner = inner.cumsum(axis=1).cumsum(axis=2).diagonal(axis1=1, axis2=2)  # (V, W)
        cross = self.products[members[which], arms[:, np.newaxis]].cumsum(axis=1)  # (A, W)
        own = self.products[arms, arms][:, np.newaxis]
        sums = inner[which][:, sizes - 1] / sizes**2 - 2.0 * cross[:, sizes - 1] / sizes + own
        return np.asarray(np.maximum(sums, 0.0))


def log_growth(lead: FloatArray, level: FloatArray, grown: FloatArray, adaptive: FloatArray) -> FloatArray:
    """Growth of the log wealths of A arms over B examples, shape (A, 5), by bet.

    Args:
        lead: Shape (A, B), D, at least -1.
        level: Shape (A, B), r, the largest mean of D under the hypothesis that the arm is among the best.
        grown: Shape (B,), N / (N - t).
        adaptive: Shape (A, B) or (A, 1), adaptive bets.
    """
    most = MOST_STAKED / np.maximum(1.0 + level, LEAST_ROOM)
    gain = lead - level
    growth = np.empty((len(lead), len(BETS) + 1))
    for each, bet in enumerate(BETS):
        growth[:, each] = np.log1p(np.minimum(bet * grown, most) * gain).sum(axis=1)
    growth[:, -1] = np.log1p(np.minimum(adaptive, most) * gain).sum(axis=1)
    return growth


def _mean_of_first(values: FloatArray) -> FloatArray:
    """Means of the first 1, 2, 3, ... entries along the second axis.

    The result has the shape of `values`.
    """
    counts = np.arange(1, values.shape[1] + 1).reshape(-1, *[1] * (values.ndim - 2))
    return np.asarray(values.cumsum(axis=1) / counts)

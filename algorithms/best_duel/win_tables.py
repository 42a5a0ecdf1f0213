"""Tables of which arm beats which, updated one duel at a time."""

import numpy as np

from winnow.algorithms.best_duel.preference_intervals import bernoulli_kl
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


class Standings:
    """Tables over pairs of arms, and their summaries per arm.

    Summaries count active opponents only. One `refresh` costs O(K), building the tables O(K^2). Both give the
    same values, bit for bit.

    Args:
        preferences: Share of duels that the row wins against the column, shape (K, K), NaN if unknown, 1/2 on
            the diagonal. The array is not copied; `refresh` changes it.
        counts: Scored duels of each pair, shape (K, K).
        active: Shape (K,), arms not dropped.
    """

    def __init__(self, preferences: FloatArray, counts: IntArray, active: BoolArray) -> None:
        self._active = active.copy()
        self.preferences = preferences  # (K, K)
        is_behind = active & (preferences < 0.5)  # NaN is not below 1/2
        # (K, K) d(preference, 1/2) where the column leads the row, else 0
        self.divergences = bernoulli_kl(np.where(is_behind, preferences, 0.5), 0.5)
        self.against: FloatArray = counts * self.divergences  # (K, K) the evidence that the column leads
        self.doubts: FloatArray = self.against.sum(axis=1)  # (K,) Z_i, against i being the best
        # (K, K) values that rank a row's opponents: 1/2 if unknown, infinite for excluded opponents
        self._contested = np.where(np.isnan(preferences), 0.5, preferences)
        self._contested[:, ~active] = np.inf
        np.fill_diagonal(self._contested, np.inf)
        self.opponents: IntArray = self._contested.argmin(axis=1)  # (K,) the strongest opponent of each arm
        self.estimates = worst_preferences(preferences, active)  # (K,) preference over that opponent
        self._ranked = np.where(active & ~np.isnan(self.estimates), self.estimates, -np.inf)  # (K,)

    @property
    def best(self) -> int | None:
        """The active arm with the highest estimate; None if no active arm has an estimate.

        If only one arm is active, it is the best even without an estimate. Few duels often give equal
        estimates. Among arms with equal estimates, the best is the one with the highest average preference
        over the active arms, then the first.
        """
        best = int(self._ranked.argmax())
        if self._ranked[best] == -np.inf:
            return int(self._active.argmax()) if self._active.sum() == 1 else None
        is_best = self._ranked == self._ranked[best]
        if np.count_nonzero(is_best) == 1:
            return best
        known = np.where(np.isnan(self.preferences), 0.5, self.preferences)
        averages = known[:, self._active].mean(axis=1)
        return int(np.where(is_best, averages, -np.inf).argmax())

    def refresh(self, row: int, column: int, preference: float, count: int) -> None:
        """Set one arm's preference over another.

        Set the reverse preference by a second call.

        Args:
            row: The arm.
            column: The other arm.
            preference: Share of their duels that the row won, in [0, 1].
            count: Their scored duels, positive.
        """
        self.preferences[row, column] = preference
        if not self._active[column]:
            return
        divergence = bernoulli_kl(preference, 0.5) if preference < 0.5 else 0.0
        if divergence > 0.0 or self.divergences[row, column] > 0.0:
            self.divergences[row, column] = divergence
            self.against[row, column] = count * divergence
            self.doubts[row] = self.against[row].sum()
        contested = self._contested[row]
        contested[column] = preference
        opponent = contested.argmin()
        self.opponents[row] = opponent
        self.estimates[row] = contested[opponent]
        if self._active[row]:
            self._ranked[row] = contested[opponent]


def worst_preferences(preferences: FloatArray, active: BoolArray) -> FloatArray:
    """Each arm's preference over its strongest active opponent, shape (K,).

    For arm i: the minimum, over active j other than i, of the preference of i over j. NaN if no preference of
    the arm over an active opponent is known.

    Args:
        preferences: Shape (K, K), NaN if unknown, which counts as 1/2.
        active: Shape (K,), arms not dropped.
    """
    others = active & ~np.eye(len(active), dtype=np.bool_)  # (K, K)
    known = others & ~np.isnan(preferences)
    worst = np.where(known, preferences, np.where(others, 0.5, np.inf)).min(axis=1)
    return np.where(known.any(axis=1), worst, np.nan)

"""The evidence that one arm's preference over another is above a given value, for every ordered pair."""

import numpy as np

from winnow.algorithms.best_duel.counts.finite_bets import FiniteBets
from winnow.algorithms.best_duel.counts.half_mixture import HalfMixture
from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.state.arrays import FloatArray


class PairWealths:
    """The logarithms of M(i, j), a wealth that bets on arm j being preferred to i with more than `least`.

    If it is not, M(i, j) ever reaches 1 / alpha with probability at most alpha: it is the half mixture of the
    pair's counts, or the wealth of its `FiniteBets` where the two meet an example once. An unscored duel of i
    and j counts as won by i in M(i, j) and as won by j in M(j, i): the worst case of either, so that it holds
    whatever had come out, and whatever decides which duels are unscored.

    Args:
        record: Where the duels are told, nothing yet for pairs that meet an example once; `update` is to be
            called after each tell.
        least: In (0, 1).
    """

    def __init__(self, record: DuelRecord, least: float) -> None:
        self._record = record
        self._mixture = HalfMixture(least)
        self._bets = FiniteBets(record.n_arms, record.n_examples, least) if record.is_once.any() else None
        self._table = np.zeros((record.n_arms, record.n_arms))  # (K, K)
        self._stale = set(map(tuple, np.argwhere(record.told).tolist()))  # pairs whose entries are to be made

    def update(self) -> None:
        """Follow the record, which has just been told a batch; the work is done when the table is read."""
        for first, second, outcome in self._record.latest:
            self._stale |= {(first, second), (second, first)}
            if self._bets is not None and self._record.is_once[first, second]:
                self._bets.bet(first, second, outcome)

    @property
    def log_wealths(self) -> FloatArray:
        """Log M(row, column), shape (K, K); infinite where the column wins for certain, 0 on the diagonal."""
        if self._stale:
            record = self._record
            rows, columns = np.array(sorted(self._stale)).T
            gains = record.wins[columns, rows]
            wealths = self._mixture.log_value(gains, record.told[rows, columns] - gains)
            if self._bets is not None:
                is_once = record.is_once[rows, columns]
                wealths[is_once] = self._bets.log_wealth(rows[is_once], columns[is_once])
            self._table[rows, columns] = wealths
            self._stale.clear()
        return self._table

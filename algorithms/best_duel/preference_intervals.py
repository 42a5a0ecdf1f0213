"""Simultaneous intervals for the preferences of all pairs.

They use the Kullback-Leibler divergence.
"""

import math
from typing import cast, overload

import numpy as np
from scipy.special import betaln, entr, rel_entr, xlogy

from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.bounds.confidence_sequences import FinitePopulationIntervals
from winnow.algorithms.state.arrays import FloatArray, IntArray

BISECTIONS = 40  # of an interval of length at most 1, so accurate to 1e-12


@overload
def bernoulli_kl(x: float, y: float) -> float: ...
@overload
def bernoulli_kl(x: FloatArray, y: FloatArray | float) -> FloatArray: ...
def bernoulli_kl(x: FloatArray | float, y: FloatArray | float) -> FloatArray | float:
    """Compute d(x, y), the divergence of Bernoulli(x) from Bernoulli(y), in nats.

    Args:
        x: In [0, 1]; 0 log 0 is 0.
        y: In [0, 1], broadcast against x; if y is 0 or 1 and x differs from it, d is infinite.
    """
    return cast("FloatArray | float", rel_entr(x, y) + rel_entr(1.0 - x, 1.0 - y))


def kl_lower_bounds(means: FloatArray, counts: IntArray, levels: FloatArray | float) -> FloatArray:
    """Smallest y with counts * d(means, y) <= levels, to 1e-12 and never above it.

    Args:
        means: Shape (K, K), in [0, 1].
        counts: Shape (K, K), positive.
        levels: Shape (K, K) or one number for all, non-negative.

    Returns:
        Shape (K, K), in [0, means]. The upper bounds are 1 - kl_lower_bounds(1 - means, counts, levels).
    """
    # counts * d(means, y) <= levels if and only if means log y + (1 - means) log(1 - y) >= least.
    least = xlogy(means, means) + xlogy(1.0 - means, 1.0 - means) - levels / counts
    low, high = np.zeros_like(means), means.copy()
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        is_too_low = xlogy(means, middle) + (1.0 - means) * np.log1p(-middle) < least
        low, high = np.where(is_too_low, middle, low), np.where(is_too_low, high, middle)
    return low


class PreferenceIntervals:
    """Intervals that hold for all pairs at every look.

    The probability that all hold is at least 1 - delta. An unscored duel counts as lost for the lower end and
    as won for the upper end, so the intervals hold for any value of its missing outcome. They contain the
    share of scored duels that was won. Pairs that are compared at most once on an example have the intervals
    of `FinitePopulationIntervals` for the preference over all n examples, which becomes exactly known once
    every example is used. Each of the P = K (K - 1) / 2 pairs has delta / P.

    Args:
        record: The record of the duels; call `update` after each tell, from the first one on.
        delta: In (0, 1).
    """

    def __init__(self, record: DuelRecord, delta: float) -> None:
        self._record = record
        n_pairs = record.n_arms * (record.n_arms - 1) // 2
        self._level = math.log(n_pairs / delta)
        self._once = np.argwhere(np.triu(record.is_once))  # (M, 2) pairs compared at most once on an example
        self._places = {(first, second): place for place, (first, second) in enumerate(self._once.tolist())}
        self._finite = (
            FinitePopulationIntervals(len(self._once), record.n_examples, delta * len(self._once) / n_pairs)
            if len(self._once)
            else None
        )

    def update(self) -> None:
        """Update from the record after a batch was observed."""
        if self._finite is None:
            return
        places, outcomes = [], []
        for first, second, outcome in self._record.latest:
            if (place := self._places.get((min(first, second), max(first, second)))) is not None:
                places.append(place)
                outcomes.append(outcome if first < second else 1.0 - outcome)
        if places:
            self._finite.update(np.array(places), np.array(outcomes))

    def lower(self) -> FloatArray:
        """Lower ends for the preference of the row, shape (K, K).

        Upper ends are 1 minus their transpose.
        """
        record = self._record
        told = np.maximum(record.told, 1)
        wins = np.where(record.told > 0, record.wins, 0.0)
        lower = kl_lower_bounds(wins / told, told, self._level + log_prices(wins, told))
        lower = np.where(record.told > 0, lower, 0.0)
        if self._finite is not None:
            first, second = self._once.T
            lower[first, second] = self._finite.lower
            lower[second, first] = 1.0 - self._finite.upper
            lower = np.fmin(lower, record.preferences)  # a wider interval is valid as well
        return lower


def log_prices(wins: FloatArray, counts: IntArray) -> FloatArray:
    """Log-likelihood ratio of the best constant preference to a mixture, in nats.

    For W wins in N duels: the log-likelihood at q = W / N, minus that under the mixture Beta(1/2, 1/2) of q.
    Let m be the preference of a pair and d the divergence of Bernoulli distributions. With probability at
    most alpha, N d(W / N, m) ever exceeds log(1 / alpha) plus this difference: then the mixture, a
    non-negative martingale in units of the likelihood of m, has reached 1 / alpha. For m below W / N the
    mixture does not decrease when a further win is counted, because its logarithm is convex in W and at most
    0 at W = N m. So a lower end that counts missing outcomes as lost is not above the lower end with their
    true values.

    Args:
        wins: W, any shape.
        counts: N, of the same shape, positive.

    Returns:
        The differences, of the same shape, in nats.

    Source: Robbins (1970), "Statistical Methods Related to the Law of the Iterated Logarithm", for mixtures
    with Ville's inequality; Krichevsky and Trofimov (1981), "The Performance of Universal Encoding", for this
    mixture.
    """
    shares = wins / counts
    greatest = -counts * (entr(shares) + entr(1.0 - shares))
    mixture = betaln(wins + 0.5, counts - wins + 0.5) - np.log(np.pi)
    prices: FloatArray = greatest - mixture
    return prices

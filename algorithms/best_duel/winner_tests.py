"""Tests of which arms cannot be the winner, and which arm is the winner.

They use the wealths of bets on all pairs. An arm is the winner if it beats every other. q(i, j) is the
preference of i over j. M(i, j), from `PairWealths`, is the wealth that bets on j beating i: if i beats or
ties j, it is a non-negative supermartingale that starts at 1, and so ever reaches 1 / alpha with probability
at most alpha. No relation between pairs is assumed.

Two rules name an arm a:

* Its own duels: M(j, a) reaches K / delta for every other arm j.
* The product, which assumes a winner: E(i) reaches 1 / delta for every other arm i, see `log_e_values`.

**Own duels.** An arm that is not the winner has an opponent that it does not beat. Against that opponent its
wealth reaches K / delta with probability at most delta / K. At most K arms are not the winner. So an arm
other than the winner is ever named with probability at most delta, whether there is a winner or not.

**Product.** If w beats or ties every other arm, then E(w) is a supermartingale too, because a duel changes
only one of its factors. So E(w) ever reaches 1 / delta with probability at most delta. An arm that loses to
another is named only in that case, because it is not w. No union over arms or pairs is needed. If no such w
exists, the arm that is named can lose to another.

**Dropped arms.** Which arms are dropped can depend on the outcomes, so the remaining arms are not fixed
beforehand. Let m be the number of arms dropped in the end. Then the rules apply to the remaining arms, and
their error probabilities have these bounds:

* Own duels: (m + 1) delta. Choose for each arm m + 1 of the arms that it does not beat, or all of them if
  they are fewer. Suppose a is named but does not beat every remaining arm. Then one of its chosen arms
  remains, because only m arms are dropped; against this arm the wealth of a reached K / delta. These are at
  most K (m + 1) events of probability delta / K.
* Product: (2 m + 1) delta, if some remaining arm beats all other remaining arms. That arm fails to beat only
  dropped arms, at most m. At most 2 m + 1 arms fail to beat at most m arms: r such arms have r (r - 1) / 2
  pairs among themselves, each with one arm that does not beat the other, and r m such failures at most. Each
  of these arms has a product over the arms that it does beat. That product is a supermartingale, and E is
  never above it, because a factor of a dropped arm counts as 1 at most. The bound also holds, with ties
  allowed, if some arm beats or ties every other, some arm does so among the rest, and so on: then only m + 1
  arms can come first.

**Good enough.** With epsilon > 0 an arm is good enough if no other arm beats it by more than epsilon, that
is, if its preference over each is at least 1/2 - epsilon. For own duels, the wealths are those of a bet on
preferences above 1/2 - epsilon, and the proof is the same. With a winner assumed, a is good enough if the
winner does not beat it by more than epsilon; nothing is shown about other arms. Suppose the winner w does
beat it by more. Then E(w), with the factor of a alone replaced by the wealth for q(a, w) > 1/2 - epsilon, is
a supermartingale. It depends on a, so each of the K - 1 possible wrong answers has its share of delta: the
level is (K - 1) / delta.

Source: Ville (1939) for the inequality; Robbins (1970), as in `HalfMixture`; the combinations are new here.
"""

import math

import numpy as np
from scipy.special import betainc, betaincinv

from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.bounds.half_mixture import HalfMixture, beta_parameters
from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray


class PairWealths:
    """Log wealths M(i, j) that bet on arm j being preferred to i by more than `least`.

    If the preference is at most `least`, M(i, j) ever reaches 1 / alpha with probability at most alpha. It is
    the half mixture of the pair's counts; for two arms that are compared at most once on an example, it is
    the wealth of their `FiniteBets`. An unscored duel of i and j counts as won by i in M(i, j) and as won by
    j in M(j, i): the worst case for each. So the bound holds for any missing outcome, and for any rule by
    which duels become unscored.

    Args:
        record: The record of the duels, empty for pairs that are compared at most once on an example; call
            `update` after each tell.
        least: In (0, 1).
    """

    def __init__(self, record: DuelRecord, least: float) -> None:
        self._record = record
        self._mixture = HalfMixture(least)
        self._bets = FiniteBets(record.n_arms, record.n_examples, least) if record.is_once.any() else None
        self._table = np.zeros((record.n_arms, record.n_arms))  # (K, K)
        self._stale = set(map(tuple, np.argwhere(record.told).tolist()))  # pairs with outdated entries

    def update(self) -> None:
        """Mark the pairs of the last batch as outdated; reading the table recomputes them."""
        for first, second, outcome in self._record.latest:
            self._stale |= {(first, second), (second, first)}
            if self._bets is not None and self._record.is_once[first, second]:
                self._bets.bet(first, second, outcome)

    @property
    def log_wealths(self) -> FloatArray:
        """Log M(row, column), shape (K, K), 0 on the diagonal.

        Infinite if the column certainly wins.
        """
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


def log_e_values(log_wealths: FloatArray, active: BoolArray, shifted: FloatArray | None = None) -> FloatArray:
    """Log E(i), the evidence against each arm being the winner, shape (K,).

    E(i) is the product over j of 1 - p + p M(i, j), where p = 1 / (K - 1): if one opponent leads, this costs
    a factor of K - 1, and the opponents that do not lead cost at most a factor of e together. A factor of a
    dropped arm counts only if it is below 1.

    Args:
        log_wealths: log M, shape (K, K).
        active: Shape (K,), arms not dropped.
        shifted: Shape (K, K), replaces log M where it is not NaN; None to use log M alone.
    """
    wealths = log_wealths if shifted is None else np.where(np.isnan(shifted), log_wealths, shifted)
    share = 1.0 / (len(active) - 1)
    log_rest = math.log1p(-share) if share < 1.0 else -math.inf
    log_factors = np.logaddexp(log_rest, math.log(share) + wealths)
    log_factors[:, ~active] = np.minimum(log_factors[:, ~active], 0.0)
    np.fill_diagonal(log_factors, 0.0)
    e_values: FloatArray = log_factors.sum(axis=1)
    return e_values


def own_duels_level(delta: float, n_arms: int) -> float:
    """Log wealth at which an arm's own duels show that it beats an opponent."""
    return math.log(n_arms / delta)


def product_level(delta: float, n_arms: int, epsilon: float) -> float:
    """Level of log E at which an arm is ruled out when another arm is named."""
    return math.log((n_arms - 1 if epsilon > 0.0 else 1) / delta)


def error_bound(delta: float, n_dropped: int, *, assume_winner: bool) -> float:
    """Upper bound of the probability of naming a wrong arm.

    It holds with at most `n_dropped` arms dropped.
    """
    return ((2 if assume_winner else 1) * n_dropped + 1) * delta


NODES = 8  # bets per Beta distribution of the half mixture
MOST_STAKED = 0.9  # largest share of the wealth that one duel can cost
ROUNDING = 1e-9  # tolerance for sums of outcomes


class FiniteBets:
    """Wealth of bets that an arm's mean over n examples exceeds m.

    One wealth per ordered pair of arms. A duel multiplies the wealth by 1 + c (x / m_t - 1), where m_t = (n m
    - S) / (n - t). This is 1 + lambda (x - m_t) with lambda = c / m_t. The next outcome is a uniform draw
    from the examples that the pair has not used, so under the hypothesis its mean is at most m_t. The wealth
    is therefore a non-negative supermartingale that starts at 1, for any choice of pairs by earlier outcomes.
    It is averaged over constant values of c, the largest of them 0.9. They are the bets of the half mixture
    at quantiles of its weights: with many examples left, the two wealths are about equal.

    Once S is above n m, the arm's mean certainly exceeds m, and the wealth is infinite. If the remaining
    examples cannot lift S above n m, the mean certainly does not exceed m, and the wealth counts as 0.

    An unscored duel counts as x = 0 for both arms, the worst case for each: a higher x gains more at once and
    lowers every later m_t, so the wealth does not decrease in x.

    Source: Waudby-Smith and Ramdas (2020), "Confidence sequences for sampling without replacement", NeurIPS.
    """

    def __init__(self, n_arms: int, n_examples: int, least: float) -> None:
        self._n_examples = n_examples
        self._goal = n_examples * least
        self._stakes = _stakes(least)  # (J,)
        self._told = np.zeros((n_arms, n_arms), dtype=np.int64)  # (K, K)
        self._gains = np.zeros((n_arms, n_arms))  # (K, K) S of the column against the row
        self._log_wealth = np.zeros((n_arms, n_arms, len(self._stakes)))  # (K, K, J)

    def bet(self, first: int, second: int, outcome: float) -> None:
        """Bet on the next duel of a pair.

        `outcome` is in favour of the first arm, NaN if unscored.
        """
        is_scored = outcome == outcome  # not NaN
        self._bet(second, first, outcome if is_scored else 0.0)
        self._bet(first, second, 1.0 - outcome if is_scored else 0.0)

    def log_wealth(self, rows: IntArray, columns: IntArray) -> FloatArray:
        """Log wealth for the column's mean against the row, for M pairs, shape (M,)."""
        parts = self._log_wealth[rows, columns]  # (M, J)
        highest = parts.max(axis=1)
        average = highest + np.log(np.exp(parts - highest[:, np.newaxis]).mean(axis=1))
        gains, left = self._gains[rows, columns], self._n_examples - self._told[rows, columns]
        is_hopeless = gains + left <= self._goal + ROUNDING
        wealth: FloatArray = np.where(is_hopeless, -np.inf, average)
        return np.where(gains > self._goal + ROUNDING, np.inf, wealth)

    def _bet(self, row: int, column: int, outcome: float) -> None:
        mean = (self._goal - self._gains[row, column]) / (self._n_examples - self._told[row, column])
        if mean > ROUNDING:  # otherwise no bet is needed: any gain makes the answer certain
            self._log_wealth[row, column] += np.log1p(self._stakes * (outcome / mean - 1.0))
        self._told[row, column] += 1
        self._gains[row, column] += outcome


def _stakes(least: float) -> FloatArray:
    """Bet sizes c = (q - m) / (1 - m), shape (J,).

    The q are quantiles of the half mixture's weights.
    """
    places = (np.arange(NODES) + 0.5) / NODES
    quantiles = [
        betaincinv(up, down, below + (1.0 - below) * places)
        for up, down in beta_parameters(least)
        for below in [betainc(up, down, least)]
    ]
    return np.minimum((np.concatenate(quantiles) - least) / (1.0 - least), MOST_STAKED)

"""The advantage of routing over any one arm: an interval from the prompts whose arm was drawn.

Letters: p_t(a) the probability with which prompt t was given to arm a, A_t the arm drawn, r_t(a) what arm a
scores on it, s_t = r_t(A_t) the score seen, m_t(a) a prediction of r_t(a) from earlier scores, w_t = 1{A_t =
a} / p_t(a). The doubly robust difference of prompt t and arm a,

    Z_t = s_t - m_t(a) - w_t (s_t - m_t(a)),

has over the draw of A_t alone the mean theta_t = sum_b p_t(b) r_t(b) - r_t(a): what routing scores there, on
average over its draw, less what the arm scores. So neither the prompts nor the scores need be random; a good
prediction makes the differences small, and a bad one does no harm.
"""

from dataclasses import dataclass

import numpy as np

from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray
from winnow.algorithms.state.dropping import too_many_unscored

STAKED = 0.9  # share of the capital that the largest bet may lose at once; below 1, so that capital stays
N_BETS = 10  # J; each is half of the one before, so the last is best for 4^9 times as many prompts
MOST_STEPS, LEAST_STEP = 100, 1e-12  # Newton's method needs about ten steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Advantage:
    """The mean over the prompts so far of what routing scores less what the best single arm would score.

    Routing is what was done, its share of arms drawn at random included, on average over its draws. The best
    single arm is the one that scores most on these prompts, of those that can still be chosen; one that came
    later is compared on the prompts since then. Prompts that were in flight when an arm was removed are left
    out: the scores of those that it had been given are never told, so that the others are no fair part.
    """

    estimate: float
    """An estimate of the mean difference; between the bounds."""
    lower: float
    """Lower end of its interval."""
    upper: float
    """Upper end of its interval."""
    delta: float
    """The probability that the interval ever misses is at most this, however often one looks."""
    single: int
    """The arm that is estimated to be the best single one."""


class AdvantageRecord:
    """The interval of `Advantage`, brought up to date with every batch, from arms, propensities and scores.

    For a bet of size lambda, with Z_t above -1 / lambda, the capital prod (1 + lambda Z_t) exp(-lambda
    theta_t) is a supermartingale that starts at 1, as 1 + x <= exp(x): by Ville's inequality the average over
    J sizes ever reaches 1 / alpha with probability at most alpha. It falls as the sum of the theta_t grows,
    so every sum is refuted at which it is 1 / alpha or more; -Z_t gives the other end. The size of a bet does
    not change, so that the theta_t weigh the same; a bet that could lose everything, since arms came and
    propensities fell, is given up for good.

    m_t(a) is the mean of the arm's scores before t, with one score of 0 added. An arm that was there from the
    beginning has delta / (K + 1), the i-th that came later 2^-i of that; half of it serves either end, so
    that all intervals hold together with probability at least 1 - delta, and with them the smallest over
    the arms that are left, whichever these are. That takes for granted that whoever removes arms while
    prompts are in flight does not look at which arms these were given, or at how they scored. An unscored
    prompt may be worth anything in [-1, 1]: each end takes it as the worst for that end, and the estimate as
    predicted.

    Args:
        n_arms: K at the beginning.
        explore: Share of prompts whose arm is drawn uniformly, in (0, 1]; no propensity is below explore / K.
        delta: Error probability, in (0, 1).
        max_unscored: Share of unscored prompts beyond which an arm is dropped.

    Source: Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro (2022), "Anytime-valid off-policy inference for
    contextual bandits", for doubly robust differences and means that move; the capital is our own.
    """

    def __init__(self, n_arms: int, *, explore: float, delta: float, max_unscored: float) -> None:
        self._n_first = n_arms
        self._explore = explore
        self._delta = delta
        self._max_unscored = max_unscored
        self._told = np.zeros(0, dtype=np.int64)  # (K,)
        self._scored = np.zeros(0, dtype=np.int64)  # (K,)
        self._score_sums = np.zeros(0)  # (K,)
        self._left_out = np.zeros(0, dtype=np.bool_)  # (K,) removed or dropped
        self._counts = np.zeros(0, dtype=np.int64)  # (K,) prompts that the arm might have been given
        self._sums = np.zeros(0)  # (K,) of Z_t
        self._bets = np.zeros((0, N_BETS))  # (K, J) lambda, 0 where given up
        self._log_capital = np.zeros((2, 0, N_BETS))  # of Z_t and of -Z_t, sum_t log(1 + lambda Z_t)
        for _ in range(n_arms):
            self._append(n_arms)

    @property
    def uncompared(self) -> BoolArray:
        """The mask of the arms that can be chosen and were there for no prompt yet, shape (K,)."""
        new: BoolArray = self.eligible & (self._counts == 0)
        return new

    @property
    def eligible(self) -> BoolArray:
        """The mask of the arms that can be chosen, shape (K,): neither removed nor dropped."""
        return ~self._left_out

    def tell(
        self,
        arms: IntArray,
        scores: FloatArray,
        propensities: FloatArray,
        n_known: int | None = None,
    ) -> None:
        """Take in a batch of B prompts.

        Args:
            arms: Shape (B,), A_t.
            scores: Shape (B,), in [-1, 1], NaN where unscored.
            propensities: Shape (B,), p_t(A_t), at least explore / K.
            n_known: Number of arms when the prompts were asked, None for as many as now. 0 where an arm was
                removed since: the scores are then used to predict later ones and for nothing else.
        """
        n_arms = len(self._told)
        is_given = arms[:, np.newaxis] == np.arange(n_arms)  # (B, K)
        is_scored = ~np.isnan(scores)
        known = np.where(is_scored, scores, 0.0)
        counts = _running(self._scored, is_given & is_scored[:, np.newaxis])  # (B + 1, K)
        sums = _running(self._score_sums, is_given * known[:, np.newaxis])
        predicted = sums[:-1] / (counts[:-1] + 1)  # (B, K) m_t
        is_known = np.arange(n_arms) < (n_arms if n_known is None else n_known)
        takes_part = np.broadcast_to(self.eligible & is_known, is_given.shape)
        slopes = 1.0 - is_given / propensities[:, np.newaxis]  # (B, K), 1 - w_t
        likely = np.where(is_scored, scores, predicted[np.arange(len(arms)), arms])
        least = np.where(is_scored[:, np.newaxis], scores[:, np.newaxis], np.where(is_given, 1.0, -1.0))
        most = np.where(is_scored[:, np.newaxis], scores[:, np.newaxis], np.where(is_given, -1.0, 1.0))
        self._sums = _running(self._sums, takes_part * slopes * (likely[:, np.newaxis] - predicted))[-1]
        for side, differences in enumerate((slopes * (least - predicted), -slopes * (most - predicted))):
            gains = np.log1p(self._bets * np.where(takes_part, differences, 0.0)[:, :, np.newaxis])
            self._log_capital[side] = _running(self._log_capital[side], gains)[-1]
        self._counts += takes_part.sum(axis=0)
        self._scored, self._score_sums = counts[-1].astype(np.int64), sums[-1]
        self._told += is_given.sum(axis=0)
        self._left_out |= too_many_unscored(self._told, self._told - self._scored, self._max_unscored)

    def add_arm(self) -> None:
        """Let one more arm take part from now on."""
        self._append(len(self._told) + 1)
        # Propensities may be smaller from now on, and differences larger.
        self._bets[self._bets * self._largest(len(self._told)) >= 1.0] = 0.0

    def remove_arm(self, arm: int) -> None:
        """Compare with an arm no longer."""
        self._left_out[arm] = True

    def advantage(self) -> Advantage | None:
        """The advantage so far; None where there is no prompt or no arm to compare with."""
        arms = np.flatnonzero(self.eligible & (self._counts > 0))
        if not arms.size:
            return None
        means = self._sums[arms] / self._counts[arms]
        lower = [self._least_sum(0, arm) / self._counts[arm] for arm in arms]
        upper = [-self._least_sum(1, arm) / self._counts[arm] for arm in arms]
        return Advantage(
            estimate=_possible(means.min()),
            lower=_possible(min(lower)),
            upper=_possible(min(upper)),
            delta=self._delta,
            single=int(arms[means.argmin()]),
        )

    def _least_sum(self, side: int, arm: int) -> float:
        """The smallest sum of an arm's theta_t, or of their negatives, that is not refuted."""
        kept = self._bets[arm] > 0.0
        later = max(int(arm) - self._n_first + 1, 0)
        level = self._delta / (self._n_first + 1) / 2.0**later / 2.0
        if not kept.any():
            return -np.inf
        return _crossing(self._log_capital[side, arm, kept], self._bets[arm, kept], np.log(N_BETS / level))

    def _largest(self, n_arms: int) -> float:
        """The most that |Z_t| can be."""
        return 2.0 * max(1.0, n_arms / self._explore - 1.0)

    def _append(self, n_arms: int) -> None:
        """Append an arm, so that there are `n_arms`."""
        bets = STAKED / self._largest(n_arms) / 2.0 ** np.arange(N_BETS)
        self._bets = np.concatenate([self._bets, bets[np.newaxis]])
        self._log_capital = np.concatenate([self._log_capital, np.zeros((2, 1, N_BETS))], axis=1)
        for name in ("_told", "_scored", "_score_sums", "_left_out", "_counts", "_sums"):
            column = getattr(self, name)
            setattr(self, name, np.append(column, column.dtype.type(0)))


def _possible(difference: float) -> float:
    """The nearest number that a difference of two scores in [-1, 1] can be."""
    return float(min(max(difference, -2.0), 2.0))


def _running(start: FloatArray | IntArray, added: FloatArray | BoolArray) -> FloatArray:
    """Sums before each row and after the last one, added one by one, so that batches make no difference."""
    found: FloatArray = np.cumsum(np.concatenate([start[np.newaxis], added], dtype=np.float64), axis=0)
    return found


def _crossing(logs: FloatArray, bets: FloatArray, level: float) -> float:
    """The x, from below, at which log sum_j exp(logs_j - bets_j x) is `level`; shapes (J,).

    It is convex and falls in x, so that Newton's method stays below once it is there; and it is at least the
    largest term, which gives the first x.
    """
    x = float(((logs - level) / bets).max())
    for _ in range(MOST_STEPS):
        exponents = logs - bets * x
        highest = exponents.max()
        shares = np.exp(exponents - highest)
        step = (highest + np.log(shares.sum()) - level) * shares.sum() / shares.dot(bets)
        if step <= LEAST_STEP * (1.0 + abs(x)):
            break
        x += float(step)
    return x

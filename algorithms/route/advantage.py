"""Advantage of routing over any single arm.

The interval uses prompts whose arm was drawn at random. Letters: p_t(a) is the probability with which prompt
t was given to arm a, A_t the arm drawn, r_t(a) the score of arm a on the prompt, s_t = r_t(A_t) the observed
score, m_t(a) a prediction of r_t(a) from earlier scores, and w_t = 1{A_t = a} / p_t(a). The doubly robust
difference of prompt t and arm a,

    Z_t = s_t - m_t(a) - w_t (s_t - m_t(a)),

has, over the draw of A_t alone, the mean theta_t = sum_b p_t(b) r_t(b) - r_t(a): the expected score of
routing on this prompt minus the score of the arm. So neither the prompts nor the scores need to be random. A
good prediction makes the differences small; a bad one does not invalidate the interval.
"""

from dataclasses import dataclass

import numpy as np

from winnow.algorithms.state.arrays import BoolArray, FloatArray, IntArray
from winnow.algorithms.state.dropping import too_many_unscored

STAKED = 0.9  # share of the capital that the largest bet can lose at once; below 1, so capital stays positive
N_BETS = 10  # J; each bet is half the previous one, so the last is best for 4^9 times as many prompts
MOST_STEPS, LEAST_STEP = 100, 1e-12  # Newton's method needs about ten steps


@dataclass(frozen=True, slots=True, kw_only=True)
class Advantage:
    """Mean score of routing minus that of the best single arm, on past prompts.

    Routing means the actual choices, including the share of arms drawn at random, averaged over the draws.
    The best single arm is the one with the highest score on these prompts among the arms that can still be
    chosen. An arm that was added later is compared on the prompts since its addition. Prompts that were in
    flight when an arm was removed are left out: the scores of those given to that arm are never observed, so
    the others are a biased selection.
    """

    estimate: float
    """Estimate of the mean difference, between the bounds."""
    lower: float
    """Lower end of the interval."""
    upper: float
    """Upper end of the interval."""
    delta: float
    """Upper bound of the probability that the interval ever misses.
    It holds however often the interval is computed."""
    single: int
    """Arm estimated to be the best single arm."""


class AdvantageRecord:
    """Maintain the interval of `Advantage`.

    It uses the arms, propensities and scores of every batch. For a bet of size lambda, with Z_t above -1 /
    lambda, the capital prod (1 + lambda Z_t) exp(-lambda theta_t) is a supermartingale that starts at 1,
    because 1 + x <= exp(x). By Ville's inequality the average over J sizes ever reaches 1 / alpha with
    probability at most alpha. The average decreases in the sum of the theta_t, so every sum at which it is 1
    / alpha or more is refuted; -Z_t gives the other end. The size of a bet does not change, so all theta_t
    have equal weight. A bet that could lose everything, because arms were added and propensities fell, is
    abandoned permanently.

    m_t(a) is the mean of the arm's scores before t, with one score of 0 added. An initial arm has delta / (K
    + 1), the i-th later arm 2^-i of that, half for each end. So all intervals hold together with probability
    at least 1 - delta, and with them the smallest over the remaining arms, whichever these are. This assumes
    that the choice to remove arms while prompts are in flight does not depend on which arms these prompts
    were given, or on their scores. An unscored prompt can have any value in [-1, 1]: each end uses the worst
    value for that end, the estimate uses the prediction.

    Args:
        n_arms: K at the beginning.
        explore: Share of prompts whose arm is drawn uniformly, in (0, 1]; propensities are at least explore /
            K.
        delta: Error probability, in (0, 1).
        max_unscored: Share of unscored prompts above which an arm is dropped.

    Source: Waudby-Smith, Wu, Ramdas, Karampatziakis & Mineiro (2022), "Anytime-valid off-policy inference for
    contextual bandits", for doubly robust differences and moving means; the capital is new here.
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
        self._counts = np.zeros(0, dtype=np.int64)  # (K,) prompts that could have been given to the arm
        self._sums = np.zeros(0)  # (K,) of Z_t
        self._bets = np.zeros((0, N_BETS))  # (K, J) lambda, 0 if abandoned
        self._log_capital = np.zeros((2, 0, N_BETS))  # of Z_t and of -Z_t, sum_t log(1 + lambda Z_t)
        for _ in range(n_arms):
            self._append(n_arms)

    @property
    def uncompared(self) -> BoolArray:
        """Eligible arms that were not compared on any prompt yet, shape (K,)."""
        new: BoolArray = self.eligible & (self._counts == 0)
        return new

    @property
    def eligible(self) -> BoolArray:
        """Arms that can be chosen, shape (K,): neither removed nor dropped."""
        return ~self._left_out

    def tell(
        self,
        arms: IntArray,
        scores: FloatArray,
        propensities: FloatArray,
        n_known: int | None = None,
    ) -> None:
        """Observe a batch of B prompts.

        Args:
            arms: Shape (B,), A_t.
            scores: Shape (B,), in [-1, 1], NaN if unscored.
            propensities: Shape (B,), p_t(A_t), at least explore / K.
            n_known: Number of arms when the prompts were proposed; None for the current number. 0 if an arm
                was removed since: the scores are then used only to predict later ones.
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
        """Add an arm from now on."""
        self._append(len(self._told) + 1)
        # Propensities can be smaller from now on, and differences larger.
        self._bets[self._bets * self._largest(len(self._told)) >= 1.0] = 0.0

    def remove_arm(self, arm: int) -> None:
        """Exclude an arm from the comparison with routing."""
        self._left_out[arm] = True

    def advantage(self) -> Advantage | None:
        """The advantage so far; None if no arm was compared on a prompt yet."""
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
        """Smallest sum of an arm's theta_t that is not refuted.

        Side 0: of the theta_t; side 1: of their negatives.
        """
        kept = self._bets[arm] > 0.0
        later = max(int(arm) - self._n_first + 1, 0)
        level = self._delta / (self._n_first + 1) / 2.0**later / 2.0
        if not kept.any():
            return -np.inf
        return _crossing(self._log_capital[side, arm, kept], self._bets[arm, kept], np.log(N_BETS / level))

    def _largest(self, n_arms: int) -> float:
        """Largest possible |Z_t| with this number of arms."""
        return 2.0 * max(1.0, n_arms / self._explore - 1.0)

    def _append(self, n_arms: int) -> None:
        """Append an arm; `n_arms` is the number of arms including it."""
        bets = STAKED / self._largest(n_arms) / 2.0 ** np.arange(N_BETS)
        self._bets = np.concatenate([self._bets, bets[np.newaxis]])
        self._log_capital = np.concatenate([self._log_capital, np.zeros((2, 1, N_BETS))], axis=1)
        for name in ("_told", "_scored", "_score_sums", "_left_out", "_counts", "_sums"):
            column = getattr(self, name)
            setattr(self, name, np.append(column, column.dtype.type(0)))


def _possible(difference: float) -> float:
    """Clip to [-2, 2], the range of differences of two scores in [-1, 1]."""
    return float(min(max(difference, -2.0), 2.0))


def _running(start: FloatArray | IntArray, added: FloatArray | BoolArray) -> FloatArray:
    """Cumulative sums from `start`: before each row and after the last.

    Rows are added one by one, so the result does not depend on the split into batches.
    """
    found: FloatArray = np.cumsum(np.concatenate([start[np.newaxis], added], dtype=np.float64), axis=0)
    return found


def _crossing(logs: FloatArray, bets: FloatArray, level: float) -> float:
    """Solution x of log sum_j exp(logs_j - bets_j x) = `level`.

    Approached from below; the arrays have shape (J,). The function is convex and decreasing in x, so Newton's
    method from below stays below. The function is at least its largest term, which gives the first x.
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

"""How much evidence there must be before the best arm counts as separated, by counts alone.

K arms and N(i, j) scored duels per pair, of which i won W(i, j), a tie being half a win for each. The
evidence that j beats i is A(i, j) = N d(W(j, i) / N, 1/2) where j leads, W(j, i) > N / 2, and 0 elsewhere;
the evidence that i is not the best is Z_i = sum over j of A(i, j).
"""

import math

import numpy as np
from scipy.special import betaln, entr

from algorithms.arrays import BoolArray, FloatArray, IntArray


def practical_threshold(delta: float, n_duels: int) -> float:
    """The threshold on Z of the published experiments, a heuristic.

    No proof bounds the probability of a wrong decision by delta: the price of estimating several preferences
    is missing. In the published experiments it erred less often than that.

    Args:
        delta: Nominal error probability, in (0, 1).
        n_duels: Scored duels, t; none counts as one.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Section 5.1; after Garivier and Kaufmann (2016), "Optimal Best Arm Identification with Fixed Confidence",
    Section 6.
    """
    return 2.0 * math.log((math.log(max(n_duels, 1)) + 1.0) / delta)


def proven_thresholds(
    wins: FloatArray, counts: IntArray, against: FloatArray, active: BoolArray, delta: float
) -> FloatArray:
    """A threshold for every Z_i that the best arm's own Z ever exceeds with probability at most delta.

    Let i be the best arm, so that it wins each duel against any j with probability at least 1/2. The mixture

        M(i, j) = 2 * integral over q > 1/2 of 2^N q^W(j, i) (1 - q)^W(i, j) in Beta(1/2, 1/2)

    is a non-negative supermartingale that starts at 1, for all outcomes in [0, 1] with such means and
    however the duels are chosen from earlier outcomes. So is the product over j of 1 - p + p M(i, j), which
    by Ville's inequality ever reaches 1 / delta with probability at most delta. Where j leads, M is at
    least the mixture over all q, 2^N B(W + 1/2, N - W + 1/2) / pi; elsewhere it is at least 0. The
    threshold is log(1 / delta) plus what this lower bound of the product's logarithm falls short of Z_i: up
    to log(1 / p) + log(4 N) / 2 for an opponent that leads, little for others. p = 1 / (K - 1) makes
    opponents that do not lead cost at most 1.4 together.

    So the probability of ever stopping with another arm than the best is at most delta, at any look, if some
    arm beats every other, the outcomes of a pair have one mean whatever came before, and which duels stay
    unscored has nothing to do with who would win. Setting arms aside may change which arm is best: after m
    times the bound is (m + 1) delta.

    The paper's log(C t^2 log(1 / delta)^(2 P + 1) / delta), with P = K (K - 1) / 2 pairs, leaves the
    constant C open. It must satisfy a union bound over t and all pairs at once, equation (75) there, while
    only the K - 1 pairs of one arm matter. The least such C is beyond use: at delta = 0.05, log C is 4.1 for
    2 arms, 40 for 4, 129 for 6 and 1578 for 16.

    Args:
        wins: W, shape (K, K).
        counts: N, shape (K, K).
        against: A, shape (K, K).
        active: Shape (K,), arms not set aside; only their duels count.
        delta: Error probability, in (0, 1).

    Returns:
        Shape (K,), in nats.

    Source: Hu et al. (2026), "Adaptive Simulation Experiment for Large Language Model Policy Optimization",
    Lemma 4.4, for what the threshold has to do; Robbins (1970), "Statistical Methods Related to the Law of
    the Iterated Logarithm", for mixtures with Ville's inequality; Krichevsky and Trofimov (1981), "The
    Performance of Universal Encoding", for this mixture.
    """
    share = 1.0 / (len(active) - 1)
    log_mixture = counts * np.log(2.0) + betaln(wins + 0.5, counts - wins + 0.5) - np.log(np.pi)
    log_rest = np.log1p(-share) if share < 1.0 else -np.inf
    log_factor = np.where(against > 0.0, np.logaddexp(log_rest, np.log(share) + log_mixture), log_rest)
    others = active & ~np.eye(len(active), dtype=np.bool_)
    shortfalls: FloatArray = np.where(others, against - log_factor, 0.0).sum(axis=1)
    return math.log(1.0 / delta) + shortfalls


def is_shown_to_win(wins: FloatArray, counts: IntArray, delta: float, n_arms: int) -> BoolArray:
    """Whether an arm's own duels with an opponent show that it beats that opponent.

    They do when W > N / 2 and the mixture 2^N B(W + 1/2, N - W + 1/2) / pi is at least K / delta. For an arm
    that does not beat the opponent, this ever happens with probability at most delta / K, by Ville's
    inequality as in `proven_thresholds`. Each arm but the best has an opponent that it does not beat, and so
    has each of all K arms where no arm beats every other: so the probability of ever showing for another arm
    than the best that it beats every other is at most delta, whether there is a best arm or not.

    Args:
        wins: W of the arm, shape (M,), an opponent each.
        counts: N, shape (M,).
        delta: Error probability, in (0, 1).
        n_arms: K.

    Returns:
        Shape (M,).

    Source: Robbins (1970) and Krichevsky and Trofimov (1981), as in `proven_thresholds`.
    """
    log_mixture = counts * np.log(2.0) + betaln(wins + 0.5, counts - wins + 0.5) - np.log(np.pi)
    is_shown: BoolArray = (2.0 * wins > counts) & (log_mixture >= math.log(n_arms / delta))
    return is_shown


def proven_levels(wins: FloatArray, counts: IntArray, delta: float) -> FloatArray:
    """What N d(W / N, m) may reach for m to stay in the interval of a pair, so that all intervals hold.

    They do with probability at least 1 - delta, at every look at once, if outcomes are as
    `proven_thresholds` says. The level is log(P / delta), with P = K (K - 1) / 2 pairs, plus the logarithm
    of how much likelier the outcomes are at m = W / N than under the mixture over Beta(1/2, 1/2).

    Args:
        wins: W, shape (K, K).
        counts: N, shape (K, K), positive.
        delta: Error probability, in (0, 1).

    Returns:
        Shape (K, K).

    Source: Robbins (1970) and Krichevsky and Trofimov (1981), as in `proven_thresholds`.
    """
    shares = wins / counts
    n_pairs = len(counts) * (len(counts) - 1) / 2
    greatest = -counts * (entr(shares) + entr(1.0 - shares))
    mixture = betaln(wins + 0.5, counts - wins + 0.5) - np.log(np.pi)
    levels: FloatArray = math.log(n_pairs / delta) + greatest - mixture
    return levels

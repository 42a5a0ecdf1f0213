"""Exact statements about counts of yes and no: the interval of a share, and tests of two."""

import math
from math import comb

from scipy.special import betaincinv
from scipy.stats import binomtest


def proportion_interval(count: int, trials: int, alpha: float) -> tuple[float, float]:
    """Ends that hold together with probability at least 1 - alpha, half of it for either end.

    Args:
        count: Of successes, in 0..trials.
        trials: Independent ones with one probability.
        alpha: In (0, 1).
    """
    lower = float(betaincinv(count, trials - count + 1, alpha / 2.0)) if count > 0 else 0.0
    upper = float(betaincinv(count + 1, trials - count, 1.0 - alpha / 2.0)) if count < trials else 1.0
    return lower, upper


def larger_share_p_value(first: int, second: int, n: int) -> float:
    """The probability that chance alone makes the second count this large, given the sum of both.

    If both counts have the same chance, then each way to divide their sum among the 2n trials is equally
    likely, and the second count is hypergeometric: P(X = k) = C(n, k) C(n, s - k) / C(2n, s), s = first +
    second. The sum is over k from `second` on, in exact integers.

    Source: Fisher (1935), "The logic of inductive inference", Journal of the Royal Statistical Society 98.

    Args:
        first: Count out of n, in [0, n].
        second: Count out of n, in [0, n].
        n: Trials behind each count, at least 1.

    Raises:
        ValueError: If n is below 1 or a count is not in [0, n].
    """
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}")
    for name, count in (("first", first), ("second", second)):
        if not 0 <= count <= n:
            raise ValueError(f"{name} must be in [0, {n}], got {count}")
    total = first + second
    ways = sum(comb(n, k) * comb(n, total - k) for k in range(second, min(n, total) + 1))
    return ways / comb(2 * n, total)


def difference_for_new_examples(n_examples: int, level: float, disagreement: float) -> float | None:
    """The smallest difference of two means of 0 and 1 scores that a sign test takes for more than chance.

    It is exact: on n examples, of which two candidates disagree on a given share, the two-sided binomial
    probability of a split as uneven by chance is at most `level` from this difference on. It speaks of new
    examples if those scored are a random sample of them, and of two candidates that were fixed beforehand.

    Args:
        n_examples: n.
        level: In (0, 1).
        disagreement: Share of the examples on which exactly one of the two is right, in [0, 1].

    Returns:
        None where no split of so few examples is uneven enough.
    """
    count = round(disagreement * n_examples)
    for wins in range(math.ceil(count / 2), count + 1):
        if wins > 0 and binomtest(wins, count).pvalue <= level:
            return (2 * wins - count) / n_examples
    return None

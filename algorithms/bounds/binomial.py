"""Exact interval for a proportion, and exact test for two proportions."""

from math import comb

from winnow.algorithms.errors import InvalidParameter


def proportion_interval(count: int, trials: int, alpha: float) -> tuple[float, float]:
    """Clopper-Pearson interval for a probability.

    At confidence 1 - alpha, alpha / 2 for each end.

    Args:
        count: Number of successes, in 0..trials.
        trials: Number of trials, independent and with the same probability.
        alpha: In (0, 1).

    Raises:
        InvalidParameter: If the count or alpha is out of range.

    Source: Clopper & Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26(4).
    """
    if not 0 <= count <= trials:
        raise InvalidParameter("count", count, f"in [0, {trials}]")
    if not 0.0 < alpha < 1.0:
        raise InvalidParameter("alpha", alpha, "in (0, 1)")
    from scipy.special import betaincinv  # slow to import, and the test below does not need it

    lower = float(betaincinv(count, trials - count + 1, alpha / 2.0)) if count > 0 else 0.0
    upper = float(betaincinv(count + 1, trials - count, 1.0 - alpha / 2.0)) if count < trials else 1.0
    return lower, upper


def larger_share_p_value(first: int, second: int, n: int) -> float:
    """One-sided p-value against the hypothesis that the second proportion is not larger.

    It is conditional on the sum of both counts. If both counts have the same success probability, each way to
    divide their sum among the 2n trials is equally likely, and the second count is hypergeometric: P(X = k) =
    C(n, k) C(n, s - k) / C(2n, s), where s = first + second. The p-value is the sum over k from `second` on,
    computed in exact integers.

    Args:
        first: Successes of the first n trials, in [0, n].
        second: Successes of the second n trials, in [0, n].
        n: Trials behind each count, at least 1.

    Raises:
        InvalidParameter: If n is below 1 or a count is not in [0, n].

    Source: Fisher (1935), "The logic of inductive inference", Journal of the Royal Statistical Society 98.
    """
    if n < 1:
        raise InvalidParameter("n", n, "at least 1")
    for name, count in (("first", first), ("second", second)):
        if not 0 <= count <= n:
            raise InvalidParameter(name, count, f"in [0, {n}]")
    total = first + second
    ways = sum(comb(n, k) * comb(n, total - k) for k in range(second, min(n, total) + 1))
    return ways / comb(2 * n, total)

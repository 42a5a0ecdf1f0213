"""Fisher's exact test for two counts out of the same number of trials."""

from math import comb

from winnow.algorithms.errors import InvalidParameter


def larger_share_p_value(first: int, second: int, n: int) -> float:
    """One-sided p-value for the second share being larger, given the sum of both counts.

    If both counts have the same success probability, then each way to divide their sum among the 2n trials is
    equally likely, and the second count is hypergeometric: P(X = k) = C(n, k) C(n, s - k) / C(2n, s), s =
    first + second. The sum is over k from `second` on, in exact integers.

    Source: Fisher (1935), "The logic of inductive inference", Journal of the Royal Statistical Society 98.

    Args:
        first: Count out of n, in [0, n].
        second: Count out of n, in [0, n].
        n: Trials behind each count, at least 1.

    Raises:
        InvalidParameter: If n is below 1 or a count is not in [0, n].
    """
    if n < 1:
        raise InvalidParameter("n", n, "at least 1")
    for name, count in (("first", first), ("second", second)):
        if not 0 <= count <= n:
            raise InvalidParameter(name, count, f"in [0, {n}]")
    total = first + second
    ways = sum(comb(n, k) * comb(n, total - k) for k in range(second, min(n, total) + 1))
    return ways / comb(2 * n, total)

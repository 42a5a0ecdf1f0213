"""Exact confidence interval for a count of successes."""

from scipy.special import betaincinv

from winnow.algorithms.errors import InvalidParameter


def proportion_interval(count: int, trials: int, alpha: float) -> tuple[float, float]:
    """Clopper-Pearson interval for a probability, at confidence 1 - alpha, alpha / 2 for each end.

    Source: Clopper & Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the
    binomial", Biometrika 26(4).

    Args:
        count: Number of successes, in 0..trials.
        trials: Number of trials, independent and with the same probability.
        alpha: In (0, 1).

    Raises:
        InvalidParameter: If the count or alpha is out of range.
    """
    if not 0 <= count <= trials:
        raise InvalidParameter("count", count, f"in [0, {trials}]")
    if not 0.0 < alpha < 1.0:
        raise InvalidParameter("alpha", alpha, "in (0, 1)")
    lower = float(betaincinv(count, trials - count + 1, alpha / 2.0)) if count > 0 else 0.0
    upper = float(betaincinv(count + 1, trials - count, 1.0 - alpha / 2.0)) if count < trials else 1.0
    return lower, upper

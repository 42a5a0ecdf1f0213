"""Exact methods for counts of successes: a confidence interval and a sign test."""

import math

from scipy.special import betaincinv
from scipy.stats import binomtest

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


def difference_for_new_examples(n_examples: int, level: float, disagreement: float) -> float | None:
    """Smallest difference of two means of 0/1 scores that an exact sign test finds significant.

    On n examples, of which two candidates disagree on a given share, the two-sided binomial probability of a
    split at least this uneven by chance is at most `level` from this difference on. The result generalises to
    new examples if the scored ones are a random sample of them, and is valid for two candidates that were
    fixed beforehand.

    Args:
        n_examples: n.
        level: In (0, 1).
        disagreement: Share of the examples on which exactly one of the two is right, in [0, 1].

    Returns:
        None if no split of the examples is uneven enough.
    """
    count = round(disagreement * n_examples)
    for wins in range(math.ceil(count / 2), count + 1):
        if wins > 0 and binomtest(wins, count).pvalue <= level:
            return (2 * wins - count) / n_examples
    return None

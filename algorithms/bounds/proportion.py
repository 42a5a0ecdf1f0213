"""An exact confidence interval for a probability.

Source: Clopper & Pearson (1934), "The use of confidence or fiducial limits illustrated in the case of the
binomial", Biometrika 26(4).
"""

from scipy.special import betaincinv


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

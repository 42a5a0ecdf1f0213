"""The e-value of R-AutoEval+ written out loss by loss, as in Algorithm 1 of the paper."""

import math

import numpy as np
from scipy.stats import beta

PRIOR = beta(0.5, 0.5)


def literal_losses(outcomes, factors):
    """Effective losses, one list of S per outcome."""
    return [
        [rho * unlabelled + human - rho * auto for rho in factors] for human, auto, unlabelled in outcomes
    ]


def running_variance(losses):
    """v after these losses, with 1/4 in place of one more."""
    squares = 0.25
    for j in range(1, len(losses) + 1):
        mean = (0.5 + math.fsum(losses[:j])) / (j + 1)
        squares += (losses[j - 1] - mean) ** 2
    return squares / (len(losses) + 1)


def wsr_bet(losses, most, alpha, level, horizon):
    """The next WSR bet after these losses."""
    pace = 2.0 * math.log(1.0 / level) / (horizon * running_variance(losses))
    return min(0.75 / (most - alpha), math.sqrt(pace))


def star_bet(losses, most, log_e_value, alpha, level, horizon):
    """The next STaR bet after these losses, when the e-value of all strategies is this."""
    needed = max(0.0, math.log(1.0 / level) - log_e_value)
    left = max(1, horizon - len(losses))  # n - i + 1, where this is bet i
    return min(0.9 / (most - alpha), math.sqrt(2.0 * needed / (left * running_variance(losses))))


def portfolio_bet(losses, most, alpha, points, masses):
    """The next bet of a universal portfolio on a grid of lambda (M - alpha)."""
    logs = np.zeros(len(points))
    for loss in losses:
        logs += np.log1p(-points * (loss - alpha) / (most - alpha))
    capital = np.exp(logs - logs.max())
    return float(np.sum(points * capital * masses) / np.sum(capital * masses) / (most - alpha))


def even_grid(n_points):
    """Cells of equal width, each at its mean and with its mass under Beta(1/2, 1/2)."""
    edges = np.linspace(0.0, 1.0, n_points + 1)
    masses = np.diff(PRIOR.cdf(edges))
    means = np.diff(PRIOR.cdf(edges) - np.sqrt(edges * (1.0 - edges)) * 2.0 / np.pi) / 2.0 / masses
    return means, masses


def angular_grid(n_points):
    """Cells of equal mass."""
    return (1.0 - np.cos((np.arange(n_points) + 0.5) * np.pi / n_points)) / 2.0, np.full(
        n_points, 1 / n_points
    )


def published_grid(n_points):
    """The grid of the authors' program: even points, weighted by a density that is infinite at both ends."""
    points = np.linspace(1e-8, 1.0 - 1e-8, n_points)
    return points, PRIOR.pdf(points) / PRIOR.pdf(points).sum()


def literal_log_e_values(outcomes, factors, alpha, bet):
    """The logarithm of the e-value after every outcome, and the next weights.

    Args:
        outcomes: Shape (n, 3).
        factors: S numbers.
        alpha: The risk in question.
        bet: Maps the losses of a strategy so far, their largest value, and the logarithm of the e-value so
            far to the next bet.
    """
    losses = literal_losses(outcomes, factors)
    log_e_value, path = 0.0, []
    log_capital = [0.0 for _ in factors]
    weights = [1.0 / len(factors) for _ in factors]
    for i, now in enumerate(losses):
        factor = []
        for s, rho in enumerate(factors):
            next_bet = bet([earlier[s] for earlier in losses[:i]], 1.0 + rho, log_e_value)
            factor.append(1.0 - next_bet * (now[s] - alpha))
        log_e_value += math.log(math.fsum(w * f for w, f in zip(weights, factor, strict=True)))
        path.append(log_e_value)
        log_capital = [log + math.log(f) for log, f in zip(log_capital, factor, strict=True)]
        scaled = [math.exp(log - max(log_capital)) for log in log_capital]
        weights = [each / math.fsum(scaled) for each in scaled]
    return np.array(path), np.array(weights)

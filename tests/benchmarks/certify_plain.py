"""The published e-value of R-AutoEval+ step by step, one candidate at a time: slow, and easy to believe."""

import math
from collections.abc import Callable, Iterator

import numpy as np

POINTS = 10_000
"""Of the portfolio's grid, each with the same mass under Beta(1/2, 1/2)."""

Bets = Callable[[np.ndarray, float], Iterator[float]]
"""Of the losses of a strategy, shape (n,), and their largest value: a bet on each, by those before it."""


def plain_log_e_values(outcomes: np.ndarray, factors: np.ndarray, alpha: float, bets: Bets) -> np.ndarray:
    """The logarithm of the e-value after each of the outcomes, shape (n, 3)."""
    human, auto, unlabelled = outcomes.T
    gains = np.empty((len(outcomes), len(factors)))
    for s, rho in enumerate(factors):
        losses = rho * unlabelled + human - rho * auto
        for i, bet in enumerate(bets(losses, 1.0 + rho)):
            gains[i, s] = 1.0 - bet * (losses[i] - alpha)
    log_capitals, log_e_value, path = np.zeros(len(factors)), 0.0, []
    for gain in gains:
        weights = np.exp(log_capitals - log_capitals.max())
        log_e_value += math.log(weights @ gain / weights.sum())
        log_capitals += np.log(gain)
        path.append(log_e_value)
    return np.array(path)


def plain_portfolio(alpha: float) -> Bets:
    """Equation (19) on a grid."""
    points = (1.0 - np.cos((np.arange(POINTS) + 0.5) * np.pi / POINTS)) / 2.0

    def bets(losses: np.ndarray, most: float) -> Iterator[float]:
        logs = np.zeros(POINTS)
        for loss in losses:
            capital = np.exp(logs - logs.max())
            yield float(points @ capital / capital.sum()) / (most - alpha)
            logs += np.log1p(-points * (loss - alpha) / (most - alpha))

    return bets


def plain_wsr(alpha: float, level: float, horizon: int) -> Bets:
    """Equations (20) and (21)."""

    def bets(losses: np.ndarray, most: float) -> Iterator[float]:
        total, squares = 0.5, 0.25
        for i, loss in enumerate(losses, start=1):
            variance = squares / i
            yield min(0.75 / (most - alpha), math.sqrt(2.0 * math.log(1.0 / level) / (horizon * variance)))
            total += loss
            squares += (loss - total / (i + 1)) ** 2

    return bets

import numpy as np
import pytest
from literal_e_values import angular_grid, even_grid

from winnow.algorithms.bounds.betting import PORTFOLIO_ERROR, UniversalPortfolio, nodes_for

RNG = np.random.default_rng(0)
N = 600
STAKES = {
    "random": RNG.uniform(-1.0, 1.0, N),
    "binary": np.where(RNG.random(N) < 0.1, 1.0, -0.15),
    "binary at a level near 1": np.where(RNG.random(N) < 0.5, 1.0, -900.0),
    "all highest": np.ones(N),
    "all lowest": np.full(N, -1.0),
    "lowest, then highest": np.repeat([-1.0, 1.0], N // 2),
    "highest, then lowest at a level near 1": np.repeat([1.0, -900.0], N // 2),
}
"""(q - alpha) / (M - alpha), of which the highest is 1."""


def log_capital(stakes, nodes, pieces=1):
    """Shape (n,), of a portfolio with M - alpha = 1 that is told the stakes in pieces."""
    portfolio = UniversalPortfolio(1, np.array([1.5]), 0.5, nodes)
    paths = [
        portfolio.bet(slice(None), 0.5 + piece[np.newaxis, :, np.newaxis])
        for piece in np.array_split(stakes, pieces)
    ]
    return np.concatenate(paths, axis=1)[0, :, 0]


def literal_log_capital(stakes, points, masses):
    """The same by one bet after the other."""
    logs, log, path = np.zeros(len(points)), 0.0, []
    for stake in stakes:
        capital = masses * np.exp(logs - logs.max())
        log += np.log1p(-stake * (points @ capital) / capital.sum())
        logs += np.log1p(-points * stake)
        path.append(log)
    return np.array(path)


@pytest.mark.parametrize("name", STAKES)
def test_few_nodes_make_the_capital_of_bets_on_10_000_points_at_every_step(name):
    nodes = nodes_for(N)
    assert nodes < N / 8
    expected = literal_log_capital(STAKES[name], *angular_grid(10_000))
    np.testing.assert_allclose(np.expm1(log_capital(STAKES[name], nodes) - expected), 0.0, atol=1e-6)


@pytest.mark.parametrize("name", ["random", "binary"])
def test_an_even_grid_of_10_000_points_makes_that_capital_too(name):
    expected = literal_log_capital(STAKES[name], *even_grid(10_000))
    np.testing.assert_allclose(np.expm1(log_capital(STAKES[name], nodes_for(N)) - expected), 0.0, atol=1e-6)


def worst_error(n, nodes):
    """Of the quadrature, relative to the integral, over the terms b^m (1 - b)^(n - m) for all m."""
    powers = np.unique(np.linspace(0, n, min(n + 1, 401)).astype(int))[:, np.newaxis]

    def averages(points):
        logs = powers * np.log(points) + (n - powers) * np.log1p(-points)  # (terms, J)
        highest = logs.max(axis=1, keepdims=True)
        return np.log(np.exp(logs - highest).mean(axis=1)) + highest[:, 0]

    exact = averages(angular_grid(n // 2 + 1)[0])  # quadrature of degree n
    return np.abs(np.expm1(averages(angular_grid(nodes)[0]) - exact)).max()


@pytest.mark.parametrize("n", [1, 2, 3, 10, 25, 60, 61, 200, 1_000, 4_000])
def test_the_nodes_are_enough_for_any_observations_as_they_are_for_every_term_that_makes_these_up(n):
    assert worst_error(n, nodes_for(n)) <= PORTFOLIO_ERROR


@pytest.mark.parametrize("n", [200, 1_000, 4_000])
def test_a_tenth_fewer_nodes_would_not_be_enough(n):
    assert worst_error(n, int(0.9 * nodes_for(n))) > 5 * PORTFOLIO_ERROR


@pytest.mark.parametrize("name", STAKES)
def test_stakes_told_in_parts_make_the_same_capital(name):
    whole, parts = log_capital(STAKES[name], 40), log_capital(STAKES[name], 40, pieces=37)
    np.testing.assert_allclose(parts, whole, rtol=1e-9, atol=1e-9)


def test_rows_are_bet_on_alone_however_many_come_together():
    observations = np.random.default_rng(2).random((90, 30, 2))
    together, alone = (UniversalPortfolio(90, np.array([1.0, 2.0]), 0.4, nodes=200) for _ in range(2))
    paths = together.bet(slice(None), observations)
    for row in reversed(range(90)):
        np.testing.assert_allclose(alone.bet(np.array([row]), observations[[row]]), paths[[row]], rtol=1e-12)


@pytest.mark.parametrize("alpha", [1e-300, np.nextafter(1.0, 0.0)])
@pytest.mark.parametrize("loss", [0.0, 1.0])
def test_levels_next_to_0_and_1_neither_overflow_nor_underflow(alpha, loss):
    portfolio = UniversalPortfolio(1, np.ones(1), alpha, nodes_for(10_000))
    assert np.isfinite(portfolio.bet(slice(None), np.full((1, 2_000, 1), loss))).all()

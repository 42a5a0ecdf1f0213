from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from scipy.special import logsumexp
from scipy.stats import norm
from structured_duels import example_tally, fitted, sigma

from winnow.algorithms.best_duel.bradley_terry import Tally, log_likelihood, softplus
from winnow.algorithms.papers.bradley_terry import mixture

SCALES = (0.25, 0.5, 1.0, 2.0, 4.0)


def one_pair(won, lost, unscored=0):
    return Tally(np.ones((1, 1)), np.array([float(won)]), np.array([won + lost]), np.array([unscored]))


def literal_log_mixture(tally):
    """By summing over a fine grid, for a single coordinate; duels without a score are left out."""
    values = []
    for scale in SCALES:
        thetas, step = np.linspace(-12.0 * scale, 12.0 * scale, 4_001, retstep=True)
        likelihoods = log_likelihood(tally, thetas[:, np.newaxis])
        values.append(logsumexp(likelihoods + norm.logpdf(thetas, scale=scale)) + np.log(step))
    return logsumexp(values) - np.log(len(SCALES))


@pytest.mark.parametrize(
    ("won", "lost", "loss"), [(0, 0, 1e-9), (3, 2, 0.02), (40, 25, 0.01), (30.5, 9.5, 0.01)]
)
def test_the_bound_is_close_to_the_integral_and_never_above_it(won, lost, loss):
    tally = Tally(np.ones((1, 1)), np.array([won]), np.array([int(won + lost)]), np.zeros(1, int))
    found, literal = mixture.log_mixture(tally, np.zeros(1)), literal_log_mixture(tally)
    assert literal - loss <= found <= literal + 1e-9


def test_where_one_side_always_wins_the_bound_costs_one_and_a_half_nats_at_most():
    tally = one_pair(25, 0)
    found, literal = mixture.log_mixture(tally, np.zeros(1)), literal_log_mixture(tally)
    assert literal - 1.5 <= found <= literal


@pytest.mark.parametrize("seed", range(12))
def test_with_two_coordinates_the_bound_is_close_to_a_fine_grid_and_never_above_it(seed):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(4, 2))
    low, high = np.triu_indices(4, 1)
    z, counts = points[low] - points[high], rng.integers(3, 40, size=6)
    tally = Tally(z, rng.binomial(counts, sigma(z @ rng.normal(size=2))) * 1.0, counts, np.zeros(6, int))
    values = []
    for scale in SCALES:
        fit = fitted(tally, 1.0 / scale**2)
        root = np.linalg.cholesky(np.linalg.inv(fit.hessian))
        axis = np.linspace(-10.0, 10.0, 101)
        grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
        thetas = fit.theta + grid @ root.T
        cell = 2.0 * np.log(axis[1] - axis[0]) + np.log(np.diag(root)).sum()
        densities = norm.logpdf(thetas, scale=scale).sum(axis=1)
        values.append(logsumexp(log_likelihood(tally, thetas) + densities) + cell)
    literal = logsumexp(values) - np.log(5.0)
    assert literal - 0.1 <= mixture.log_mixture(tally, fitted(tally).theta) <= literal + 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_a_search_cut_short_or_begun_astray_stays_below_the_integral(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    z, counts = rng.normal(size=(4, 1)), rng.integers(0, 20, size=4)
    tally = Tally(z, rng.binomial(counts, sigma(2.0 * z[:, 0])) * 1.0, counts, np.zeros(4, int))
    monkeypatch.setattr(mixture, "MOST_STEPS", 1 + seed % 3)
    assert mixture.log_mixture(tally, rng.normal(scale=3.0, size=1)) <= literal_log_mixture(tally) + 1e-9


@tries(40)
@given(st.floats(-9.0, 9.0), st.floats(1e-4, 20.0), st.floats(0.0, 1.0))
def test_the_mean_of_softplus_is_bounded_at_every_tilt_and_sharply_at_the_best(centre, spread, tilt):
    def bound(k):
        return softplus(np.array(centre + (0.5 - k) * spread)) + 0.5 * k**2 * spread

    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    mean = weights @ softplus(centre + np.sqrt(spread) * nodes) / weights.sum()
    best = mixture._tilts(np.array([[centre]]), np.array([[spread]]))[0, 0]
    assert mean <= bound(tilt) + 1e-6
    assert mean - 1e-6 <= bound(best) <= min(bound(sigma(centre)), bound(tilt)) + 1e-6
    assert bound(best) <= mean + 0.02 * spread**2 + 1e-6


@pytest.mark.parametrize("seed", range(10))
def test_duels_without_a_score_count_at_most_as_the_worst_outcomes_would(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(3, 1))
    counts, missing = rng.integers(0, 15, size=3), np.array([2, 1, 1])
    tally = Tally(z, rng.binomial(counts, sigma(z[:, 0])) * 1.0, counts, missing)
    found = mixture.log_mixture(tally, np.zeros(1))
    nothing_missing = np.zeros(3, int)
    for gained in product(*(np.linspace(0.0, most, 3) for most in missing)):
        whole = Tally(z, tally.wins + gained, counts + missing, nothing_missing)
        assert found <= literal_log_mixture(whole) + 1e-9
    assert found < mixture.log_mixture(tally._replace(unscored=nothing_missing), np.zeros(1))


def test_each_duel_multiplies_the_likelihood_ratio_by_one_on_average_at_most():
    # Whatever the distribution of an outcome in [0, 1]: those of ties and of a uniform share among them.
    rng = np.random.default_rng(0)
    for _ in range(200):
        here, there = rng.normal(scale=3.0, size=2)
        mean = sigma(there)
        ups, downs = np.log(sigma(here) / sigma(there)), np.log(sigma(-here) / sigma(-there))

        def factor(y, ups=ups, downs=downs):
            return np.exp(y * ups + (1.0 - y) * downs)

        assert mean * factor(1.0) + (1.0 - mean) * factor(0.0) == pytest.approx(1.0)
        tie = min(mean, 1.0 - mean)  # half of the ties are wins
        assert (
            tie * factor(0.5) * 2.0 + (mean - tie) * factor(1.0) + (1.0 - mean - tie) * factor(0.0)
            <= 1.0 + 1e-9
        )
        assert factor(mean) <= 1.0 + 1e-9


def test_laplace_is_near_the_bound_where_there_are_many_duels():
    _, tally = example_tally(5, most=400, steepness=0.5)
    fit = fitted(tally)
    about = mixture.laplace_log_mixture(float(log_likelihood(tally, fit.theta)), fit)
    assert about == pytest.approx(mixture.log_mixture(tally, fit.theta), abs=0.2)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from scipy.optimize import minimize
from structured_duels import sigma

from winnow.algorithms.best_duel import bradley_terry as model
from winnow.algorithms.best_duel.bradley_terry import (
    Tally,
    fit_bradley_terry,
    information,
    log_likelihood,
    softplus,
)
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.bradley_terry.feature_space import arm_points

D = 3


def example_duels(seed, n_pairs=8, steepness=1.0):
    """Differences (P, d) at most 1 long, wins and counts (P,), with ties."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n_pairs, D))
    z /= np.linalg.norm(z, axis=1).max()
    counts = rng.integers(1, 20, size=n_pairs)
    chances = sigma(steepness * z @ rng.normal(size=D))
    return z, rng.binomial(2 * counts, chances) / 2.0, counts


def literal_loss(theta, z, wins, counts, ridge):
    """Minus the penalised log-likelihood, duel by duel."""
    total = ridge * sum(each**2 for each in theta) / 2.0
    for difference, won, fought in zip(z, wins, counts, strict=True):
        chance = sigma(difference @ theta)
        total -= won * np.log(chance) + (fought - won) * np.log(1.0 - chance)
    return total


@pytest.mark.parametrize("seed", range(5))
def test_the_fit_is_that_of_a_general_purpose_solver(seed):
    duels = example_duels(seed)
    fit = fit_bradley_terry(*duels, ridge=0.2, start=np.zeros(D))
    literal = minimize(literal_loss, np.zeros(D), (*duels, 0.2), method="BFGS", options={"gtol": 1e-8})
    assert fit.theta == pytest.approx(literal.x, abs=2e-5)


def test_the_hessian_is_the_second_derivative_of_the_penalised_log_likelihood():
    duels = example_duels(0)
    fit = fit_bradley_terry(*duels, ridge=0.2, start=np.zeros(D))
    h, units = 1e-4, np.eye(D)

    def loss(theta):
        return literal_loss(theta, *duels, 0.2)

    bends = [(loss(fit.theta + h * e) - 2 * loss(fit.theta) + loss(fit.theta - h * e)) / h**2 for e in units]
    assert fit.hessian.diagonal() == pytest.approx(np.array(bends), rel=1e-3)


@tries(40)
@given(st.integers(0, 10_000), st.floats(0.1, 12.0))
def test_any_start_leads_to_the_same_theta(seed, distance):
    duels = example_duels(seed, steepness=4.0)
    start = distance * np.random.default_rng(seed).normal(size=D)
    there, here = (fit_bradley_terry(*duels, ridge=0.05, start=begun) for begun in (start, np.zeros(D)))
    assert there.theta == pytest.approx(here.theta, abs=1e-6)


def test_no_duels_leave_theta_at_zero():
    empty = np.empty((0, D)), np.empty(0), np.empty(0, dtype=int)
    fit = fit_bradley_terry(*empty, ridge=1.0, start=np.zeros(D))
    assert (fit.theta == 0.0).all()
    assert (fit.hessian == np.eye(D)).all()


@tries(40)
@given(st.integers(0, 10_000))
def test_the_log_likelihood_is_that_of_duel_after_duel(seed):
    z, wins, counts = example_duels(seed)
    theta = np.random.default_rng(seed).normal(size=(2, D))
    found = log_likelihood(Tally(z, wins, counts, np.zeros_like(counts)), theta)
    assert found == pytest.approx([-literal_loss(each, z, wins, counts, 0.0) for each in theta])


@pytest.mark.parametrize("most_cells", [0, 1_000_000])
def test_information_is_the_sum_over_pairs(monkeypatch, most_cells):
    monkeypatch.setattr(model, "MOST_CELLS", most_cells)
    rng = np.random.default_rng(0)
    z, weights = rng.normal(size=(7, D)), rng.random((2, 7))
    literal = [sum(w * np.outer(x, x) for w, x in zip(row, z, strict=True)) for row in weights]
    assert information(weights, z) == pytest.approx(np.array(literal))
    assert information(weights[0], z) == pytest.approx(literal[0])


def test_softplus_neither_overflows_nor_loses_small_values():
    assert softplus(np.array([-800.0, 0.0, 800.0])) == pytest.approx([0.0, np.log(2.0), 800.0])
    assert softplus(np.array([-40.0]))[0] == pytest.approx(np.exp(-40.0), rel=1e-12)


def distances(x):
    return np.linalg.norm(x[:, np.newaxis] - x, axis=2)


@tries(50)
@given(st.integers(0, 10_000))
def test_points_are_the_standardised_columns_up_to_a_rotation(seed):
    features = np.random.default_rng(seed).normal(size=(5, 3)) @ np.diag([1.0, 2000.0, 0.0]) + 7.0
    points = arm_points(features)
    assert points.shape == (5, 2)
    columns = (features - features.mean(axis=0))[:, :2] / features.std(axis=0)[:2]
    assert distances(points) == pytest.approx(distances(columns), abs=1e-6)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_the_unit_of_a_column_and_its_origin_do_not_matter(scale):
    features = np.random.default_rng(0).normal(size=(5, 2))
    moved = features * np.array([scale, 1.0]) + np.array([0.0, 40.0])
    assert distances(arm_points(moved)) == pytest.approx(distances(arm_points(features)), abs=1e-6)


def test_a_column_that_varies_by_rounding_alone_counts_as_constant():
    features = np.column_stack([[1.0, 2.0, 4.0], [0.3, 0.1 + 0.2, 0.3]])
    assert arm_points(features).shape == (3, 1)


def test_two_arms_that_no_duel_can_tell_apart_are_refused():
    same = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(
        InvalidParameter, match=r"add a feature in which arms 0 and 2 differ, .* got \[1.0, 0.0\]"
    ):
        arm_points(same)
    with pytest.raises(InvalidParameter, match="in which arms 0 and 1 differ"):
        arm_points(np.ones((3, 2)))

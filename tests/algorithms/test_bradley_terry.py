import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize, minimize_scalar
from structured_duels import sigma

from algorithms.best_duel.bradley_terry import fit_bradley_terry
from algorithms.best_duel.feature_space import arm_points
from algorithms.best_duel.structured_threshold import proven_threshold
from algorithms.errors import InvalidParameter

D, DELTA = 3, 0.05
UNBOUNDED = 1e9


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
@pytest.mark.parametrize("radius", [UNBOUNDED, 0.5])
def test_the_fit_is_that_of_a_general_purpose_solver_on_the_ball(seed, radius):
    duels = example_duels(seed)
    fit = fit_bradley_terry(*duels, ridge=0.2, radius=radius, start=np.zeros(D))
    ball = {"type": "ineq", "fun": lambda theta: min(radius, 100.0) ** 2 - theta @ theta}
    literal = minimize(
        literal_loss, np.zeros(D), (*duels, 0.2), method="SLSQP", constraints=[ball], options={"ftol": 1e-14}
    )
    assert fit.theta == pytest.approx(literal.x, abs=2e-5)
    assert np.linalg.norm(fit.theta) <= radius * (1.0 + 1e-8)


def test_the_hessian_and_the_residual_are_the_derivatives_of_the_log_likelihood():
    z, wins, counts = example_duels(0)
    for radius in (UNBOUNDED, 0.3):
        fit = fit_bradley_terry(z, wins, counts, ridge=0.2, radius=radius, start=np.zeros(D))
        h, units = 1e-4, np.eye(D)

        def loss(theta, ridge):
            return literal_loss(theta, z, wins, counts, ridge)

        slope = [(loss(fit.theta - h * e, 0.0) - loss(fit.theta + h * e, 0.0)) / (2 * h) for e in units]
        bends = [
            (loss(fit.theta + h * e, 0.2) - 2 * loss(fit.theta, 0.2) + loss(fit.theta - h * e, 0.2)) / h**2
            for e in units
        ]
        assert fit.residual == pytest.approx(np.array(slope), abs=1e-4)
        assert fit.hessian.diagonal() == pytest.approx(np.array(bends), rel=1e-3)


def test_arms_that_win_every_duel_leave_theta_on_the_boundary():
    z, _, counts = example_duels(1)
    counts = counts * 1_000
    wins = np.where(z[:, 0] > 0.0, counts, 0).astype(float)
    fit = fit_bradley_terry(z, wins, counts, ridge=1e-3, radius=4.0, start=np.zeros(D))
    assert np.linalg.norm(fit.theta) == pytest.approx(4.0, rel=1e-8)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 12.0), st.sampled_from([1.0, 30.0]))
def test_any_start_leads_to_the_same_theta(seed, radius, distance):
    duels = example_duels(seed, steepness=4.0)
    start = distance * np.random.default_rng(seed).normal(size=D)
    there, here = (
        fit_bradley_terry(*duels, ridge=0.05, radius=radius, start=begun) for begun in (start, np.zeros(D))
    )
    assert there.theta == pytest.approx(here.theta, abs=1e-6)


def test_no_duels_leave_theta_at_zero():
    empty = np.empty((0, D)), np.empty(0), np.empty(0, dtype=int)
    fit = fit_bradley_terry(*empty, ridge=1.0, radius=1.0, start=np.zeros(D))
    assert (fit.theta == 0.0).all()
    assert (fit.hessian == np.eye(D)).all()


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000))
def test_points_keep_all_distances_up_to_one_scale(seed):
    features = np.random.default_rng(seed).normal(size=(5, 3)) @ np.diag([1.0, 20.0, 0.0])
    points = arm_points(features)
    assert points.shape == (5, 2)

    def distances(x):
        return np.linalg.norm(x[:, np.newaxis] - x, axis=2)

    assert distances(points) == pytest.approx(distances(features) / distances(features).max(), abs=1e-9)


def test_two_arms_that_no_duel_can_tell_apart_are_refused():
    same = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    with pytest.raises(InvalidParameter, match=r"those of arms 0 and 2 are the same, got \[1.0, 0.0\]"):
        arm_points(same)
    with pytest.raises(InvalidParameter, match="arms 0 and 1"):
        arm_points(np.ones((3, 2)))


def threshold_and_parts(seed, radius, ridge=0.1, factor=1):
    z, wins, counts = example_duels(seed)
    wins, counts = wins * factor, counts * factor
    fit = fit_bradley_terry(z, wins, counts, ridge=ridge, radius=radius, start=np.zeros(D))
    information = (z.T * counts) @ z
    widest = max(np.sqrt(each @ np.linalg.solve(fit.hessian, each)) for each in z)
    found = proven_threshold(fit, information, widest, ridge=ridge, radius=radius, delta=DELTA)
    return found, fit, information, widest


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("radius", [0.3, 2.0, 10.0])
def test_the_proven_threshold_is_the_best_of_its_proof(seed, radius):
    found, fit, information, widest = threshold_and_parts(seed, radius)
    steepest, largest = np.linalg.norm(fit.residual), np.linalg.eigvalsh(information).max()

    def gamma(log_c):
        c = np.exp(log_c)
        drop = 2 * radius * c * steepest + (radius * c) ** 2 * largest / 2
        return np.log(1 / DELTA) - D * log_c + drop

    best = minimize_scalar(gamma, bounds=(-20.0, 0.0), method="bounded", options={"xatol": 1e-10}).fun
    bound = best + 0.1 * radius**2 / 2
    n = brentq(lambda n: n**2 / (2 + widest * n) - bound, 0.0, 1e6)
    assert found == pytest.approx(n**2 / 2, rel=1e-6)


def published_threshold(fit, information, ridge, radius):
    """Beta of equation (8) for L = 1 and the true smallest eigenvalue, and lambda_0 as large as that."""
    smallest = np.linalg.eigvalsh(information).min()
    log_volume = np.log(np.linalg.det(information) / smallest**D) + D * np.log(2.0)
    psi = 2.0 * (2.0 * np.log(1.0 / DELTA) + log_volume)
    m0 = sigma(radius) * (1.0 - sigma(radius))
    return (2.0 * (1.0 + 2.0 * radius) * (np.sqrt(psi / m0) + np.sqrt(ridge) * radius)) ** 2


@pytest.mark.parametrize("radius", [0.5, 2.0, 10.0])
@pytest.mark.parametrize("factor", [1, 100, 10_000])
def test_the_proven_threshold_is_a_small_part_of_the_published_one(radius, factor):
    ridge = 0.1 / np.sqrt(factor)
    found, fit, information, _ = threshold_and_parts(0, radius, ridge, factor)
    assert found < 0.1 * published_threshold(fit, information, ridge, radius)


def test_the_logistic_loss_is_as_self_concordant_as_the_proof_says():
    u, step = np.meshgrid(np.linspace(-8.0, 8.0, 81), np.linspace(-12.0, 12.0, 97))
    rise = np.logaddexp(0.0, u + step) - np.logaddexp(0.0, u) - sigma(u) * step
    assert (rise >= sigma(u) * sigma(-u) * step**2 / (2.0 + np.abs(step)) - 1e-12).all()

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from property_settings import tries
from scipy.optimize import linprog
from structured_duels import literal_allocation, published_instance, sigma

from tests.benchmarks.best_duel_hardness import characteristic_time_bt
from winnow.algorithms.papers.bradley_terry.feature_space import arm_points, differences
from winnow.algorithms.papers.bradley_terry.llm_po_bt import allocate, exploration_pairs, instance


def problem_of(seed, n_arms=6, d=3):
    features, theta = published_instance(seed, n_arms, d)
    pairs = np.argwhere(np.triu(np.ones((n_arms, n_arms)), 1))
    return instance(arm_points(features), features @ theta, pairs, np.arange(n_arms))


@pytest.mark.parametrize("seed", range(4))
def test_the_value_is_that_of_a_general_purpose_solver(seed):
    problem = problem_of(seed)
    highest, _ = literal_allocation(*problem, lambda psi, _: psi)
    found = allocate(problem, penalty=0.0, tolerance=1e-4, most_sweeps=20_000)
    assert found.gap <= 1e-4
    assert np.log(highest / found.value) == pytest.approx(0.0, abs=1.5e-4)


@pytest.mark.parametrize("penalty", [0.3, 3.0])
def test_with_a_penalty_the_shares_are_those_of_a_general_purpose_solver(penalty):
    problem = problem_of(0)
    _, shares = literal_allocation(*problem, lambda psi, omega: np.log(psi) - penalty * omega @ omega / 2)
    found = allocate(problem, penalty=penalty, tolerance=1e-6, most_sweeps=20_000)
    assert found.weights == pytest.approx(shares, abs=3e-3)


def test_the_penalty_of_the_paper_would_make_all_shares_of_a_hard_problem_nearly_equal():
    problem, penalty = problem_of(4), 5_000 ** (-1 / 8)  # U* is 604
    _, shares = literal_allocation(*problem, lambda psi, omega: psi - penalty * omega @ omega / 2)
    unpenalised = allocate(problem, penalty=0.0, tolerance=1e-3, most_sweeps=2_000)
    assert shares.max() < 1.1 / len(shares)
    assert unpenalised.weights.max() > 10.0 / len(shares)


@tries(25)
@given(st.integers(0, 10_000), st.integers(1, 40), st.floats(0.0, 2.0))
def test_stopped_at_any_time_the_gap_covers_what_is_missing(seed, most_sweeps, penalty):
    problem = problem_of(seed, 5, 2)
    early = allocate(problem, penalty=penalty, tolerance=0.0, most_sweeps=most_sweeps)
    late = allocate(problem, penalty=penalty, tolerance=1e-5, most_sweeps=3_000)
    early_objective, late_objective = (
        np.log(found.value) - penalty * found.weights @ found.weights / 2 for found in (early, late)
    )
    assert late_objective <= early_objective + early.gap + 1e-9
    assert early.weights.sum() == pytest.approx(1.0)


def test_a_warm_start_needs_fewer_sweeps_than_a_cold_one():
    features, theta = published_instance(0)
    points, pairs = arm_points(features), np.argwhere(np.triu(np.ones((32, 32)), 1))
    before, after = (instance(points, features @ at, pairs, np.arange(32)) for at in (theta, 1.02 * theta))
    last = allocate(before, penalty=0.0, tolerance=0.01, most_sweeps=2_000)
    warm, cold = (
        allocate(after, penalty=0.0, tolerance=0.0, most_sweeps=5, start=start) for start in (last, None)
    )
    assert warm.gap < 0.1 < cold.gap


def test_two_arms_need_two_over_the_squared_gap_times_the_curvature():
    # One pair, so omega = 1 and z^T H^-1 z = 1 / w: Psi = a^2 w / 2 with a = 0.8.
    features, theta = np.array([[0.0, 1.0], [2.0, 1.0]]), np.array([0.4, 5.0])
    curvature = sigma(0.8) * (1.0 - sigma(0.8))
    assert characteristic_time_bt(features, theta) == pytest.approx(2.0 / (0.8**2 * curvature), rel=1e-3)


@pytest.mark.parametrize("seed", [2694, 5, 6])
def test_the_characteristic_time_is_that_of_a_general_purpose_solver(seed):
    features, theta = published_instance(seed, 5, 2)
    points, pairs = arm_points(features), np.argwhere(np.triu(np.ones((5, 5)), 1))
    highest, _ = literal_allocation(
        *instance(points, features @ theta, pairs, np.arange(5)), lambda psi, _: psi
    )
    assert characteristic_time_bt(features, theta) * highest == pytest.approx(1.0, abs=1.5e-4)


def test_the_characteristic_time_of_a_near_tie_is_that_of_telling_the_two_apart():
    """Elfving's theorem: one rival alone takes 2 (sum |t|)^2 / a^2 with the shortest t of y = Z sqrt(w) t.

    The gap of the two best arms is less than a thousandth of the widest, so that nobody else matters.
    """
    z, curvature, rivals, gaps = (problem := problem_of(32, 5, 2))
    spans = (z * np.sqrt(curvature)[:, np.newaxis]).T  # (r, P)
    nearest = gaps.argmin()
    shortest = linprog(np.ones(2 * len(z)), A_eq=np.hstack((spans, -spans)), b_eq=rivals[nearest]).fun
    features, theta = published_instance(32, 5, 2)
    assert gaps[nearest] < 1e-3 * problem.gaps.max()
    exact = 2.0 * shortest**2 / gaps[nearest] ** 2
    assert characteristic_time_bt(features, theta) == pytest.approx(exact, rel=1.1e-4)


def test_the_characteristic_time_is_infinite_where_the_best_is_not_alone():
    features = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    assert characteristic_time_bt(features, np.array([1.0, 0.0])) == math.inf


@tries(15)
@given(st.integers(0, 10_000))
@example(2694)  # its change of coordinates stretches one direction 31 000 times as far as the other
def test_the_characteristic_time_does_not_depend_on_the_coordinates(seed):
    features, theta = published_instance(seed, 5, 2)
    change = np.random.default_rng(seed).normal(size=(2, 2)) + 2.0 * np.eye(2)
    moved = features @ change.T + np.array([3.0, -1.0])
    there = characteristic_time_bt(moved, np.linalg.solve(change.T, theta))
    assert there == pytest.approx(characteristic_time_bt(features, theta), rel=1.1e-4)


def test_arms_that_tie_with_the_best_leave_shares_for_the_others():
    problem = problem_of(0)
    tied = problem._replace(gaps=np.where(np.arange(5) == 2, 0.0, problem.gaps))
    found = allocate(tied, penalty=0.0, tolerance=0.01, most_sweeps=2_000)
    assert np.isfinite(found.weights).all()
    assert found.value > 0.0


@pytest.mark.parametrize(("n_arms", "d", "rank"), [(6, 3, 3), (4, 7, 3), (2, 4, 1)])
def test_the_exploration_pairs_are_a_basis_of_all_differences(n_arms, d, rank):
    features, _ = published_instance(1, n_arms, d)
    z = differences(features, np.argwhere(np.triu(np.ones((n_arms, n_arms)), 1)))
    chosen = z[exploration_pairs(z)]
    assert chosen.shape == (rank, d)
    assert np.linalg.matrix_rank(chosen) == rank

from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta
from structured_duels import example_tally, fitted, sigma

from winnow.algorithms.best_duel.bradley_terry import Tally
from winnow.algorithms.papers.bradley_terry.bounds import supremum
from winnow.algorithms.papers.bradley_terry.evidence import (
    is_misfit,
    log_saturated_mixture,
    log_unstructured_mixture,
    strength_points,
)

SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
LOW, HIGH = np.triu_indices(4, 1)
STRENGTH_Z = strength_points(4)[LOW] - strength_points(4)[HIGH]
NOTHING = np.zeros(6, int)


def fought(chances, each):
    """`each` duels of every pair of the square, with the shares of wins that are expected."""
    counts = np.full(6, each)
    return Tally(SQUARE[LOW] - SQUARE[HIGH], chances * counts, counts, NOTHING)


def refutes(tally, delta=0.05):
    return is_misfit(tally, log_unstructured_mixture(tally, STRENGTH_Z), fitted(tally), delta)


def test_the_mixture_over_preferences_is_the_integral_of_each_pair():
    tally = Tally(np.zeros((2, 1)), np.array([3.0, 5.5]), np.array([4, 9]), np.zeros(2, int))
    integrals = [
        quad(lambda q, w=w, n=n: q**w * (1 - q) ** (n - w) * beta.pdf(q, 0.5, 0.5), 0, 1)[0]
        for w, n in ((3.0, 4), (5.5, 9))
    ]
    assert log_saturated_mixture(tally) == pytest.approx(np.log(integrals).sum(), abs=1e-5)


def test_duels_without_a_score_make_it_what_the_worst_outcomes_would():
    tally = Tally(np.zeros((2, 1)), np.array([3.0, 0.0]), np.array([4, 1]), np.array([1, 6]))
    worst = min(
        log_saturated_mixture(Tally(tally.z, tally.wins + gained, np.array([5, 7]), np.zeros(2, int)))
        for gained in product(np.linspace(0, 1, 5), np.linspace(0, 6, 25))
    )
    assert log_saturated_mixture(tally) == pytest.approx(worst, abs=1e-9)


def test_strengths_of_their_own_have_a_coordinate_less_than_arms_and_equal_distances():
    points = strength_points(5)
    assert points.shape == (5, 4)
    spans = points[:, np.newaxis] - points
    assert (spans**2).sum(axis=2) == pytest.approx(2.0 * (1.0 - np.eye(5)))


def test_interacting_factors_refute_the_additive_model():
    utilities = np.array([1.0, -2.0, 0.8, 0.6])
    tally = fought(sigma(utilities[LOW] - utilities[HIGH]), 30)
    assert refutes(tally)
    assert log_unstructured_mixture(tally, STRENGTH_Z) > log_saturated_mixture(tally)


def test_a_cycle_refutes_it_though_no_strengths_fit_either():
    tally = fought(np.array([0.8, 0.5, 0.2, 0.8, 0.5, 0.8]), 40)
    assert refutes(tally)
    assert log_saturated_mixture(tally) > log_unstructured_mixture(tally, STRENGTH_Z)


@pytest.mark.parametrize("each", [1, 10, 100, 10_000])
def test_additive_factors_do_not(each):
    tally = fought(sigma((SQUARE[LOW] - SQUARE[HIGH]) @ np.array([1.0, 0.7])), each)
    assert not refutes(tally)


@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_ratio_to_the_supremum_that_refutes(seed):
    points, tally = example_tally(seed, unscored=1)
    low, high = np.triu_indices(len(points), 1)
    strengths = strength_points(len(points))
    fit, mixed = fitted(tally), log_unstructured_mixture(tally, strengths[low] - strengths[high])
    for nats in (-1e-6, 1e-6):
        delta = np.exp(supremum(tally, fit) - mixed + nats)
        assert is_misfit(tally, mixed, fit, delta) == (nats > 0.0)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from scipy.optimize import minimize
from structured_duels import example_tally, fitted, sigma

from winnow.algorithms.best_duel.bradley_terry import Fit, Tally, log_likelihood
from winnow.algorithms.papers.bradley_terry import bounds


def literal_supremum(tally, span, lead):
    """The supremum of l on the plane theta . y = lead, by a general-purpose solver and smaller ridges."""
    offset, basis = lead * span / (span @ span), np.linalg.svd(span[np.newaxis])[2][1:]

    def loss(free, ridge):
        theta = offset + free @ basis
        slope = (tally.wins - tally.counts * sigma(tally.z @ theta)) @ tally.z
        penalised = -log_likelihood(tally, theta) + ridge * free @ free
        return penalised, -basis @ slope + 2.0 * ridge * free

    free = np.zeros(len(basis))
    for ridge in (1e-3, 1e-6, 1e-9) if len(free) else ():
        free = minimize(loss, free, (ridge,), jac=True, method="BFGS", options={"gtol": 1e-9}).x
    return float(log_likelihood(tally, offset + free @ basis))


def rivals_of_the_best(points, fit):
    best = (points @ fit.theta).argmax()
    return np.delete(points, best, axis=0) - points[best]


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.parametrize("lead", [0.0, 0.4])
def test_the_suprema_are_those_of_a_general_purpose_solver_and_not_below(seed, lead):
    points, tally = example_tally(seed)
    fit = fitted(tally)
    spans = rivals_of_the_best(points, fit)
    found = bounds.half_space_suprema(tally, spans, lead, fit)
    literal = np.array([literal_supremum(tally, span, lead) for span in spans])
    assert (found >= literal - 1e-7).all()
    assert found == pytest.approx(literal, abs=2e-3)
    nearest = bounds.nearest_in_planes(spans, lead, fit)
    assert (nearest * spans).sum(axis=1) == pytest.approx(lead)
    assert (log_likelihood(tally, nearest) <= found + 1e-9).all()


@tries(60)
@given(st.integers(0, 10_000), st.integers(0, 3), st.floats(0.0, 5.0))
def test_a_search_cut_short_still_bounds_every_theta_of_the_half_space(seed, most_steps, distance):
    points, tally = example_tally(seed)
    rng = np.random.default_rng(seed)
    astray = Fit(distance * rng.normal(size=points.shape[1]), np.eye(points.shape[1]))
    spans = points[1:] - points[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MOST_STEPS", most_steps)
        found = bounds.half_space_suprema(tally, spans, 0.0, astray)
        highest = bounds.supremum(tally, astray)
    thetas = rng.normal(size=(200, points.shape[1])) * 10.0 ** rng.uniform(-2.0, 2.0, size=(200, 1))
    values = np.concatenate([log_likelihood(tally, thetas), log_likelihood(tally, fitted(tally).theta[None])])
    thetas = np.concatenate([thetas, fitted(tally).theta[None]])
    for span, bound in zip(spans, found, strict=True):
        assert values[thetas @ span >= 0.0].max(initial=-np.inf) <= bound + 1e-9
    assert values.max() <= highest + 1e-9


def test_a_search_cut_short_without_its_certificate_would_be_too_low():
    points, tally = example_tally(1)
    assert points.shape[1] > 1
    fit = fitted(tally)
    spans = rivals_of_the_best(points, fit)
    astray = bounds.nearest_in_planes(spans, 0.0, Fit(0.1 * fit.theta, np.eye(len(fit.theta))))
    assert (log_likelihood(tally, astray) < bounds.half_space_suprema(tally, spans, 0.0, fit) - 0.1).any()


@pytest.mark.parametrize("seed", range(4))
def test_duels_may_have_weights(seed):
    points, tally = example_tally(seed)
    halved = tally._replace(wins=0.3 * tally.wins, counts=0.3 * tally.counts)
    spans, fit = points[1:] - points[0], fitted(tally)
    found, whole = (bounds.half_space_suprema(each, spans, 0.2, fit) for each in (halved, tally))
    assert found == pytest.approx(0.3 * whole, abs=2e-3)


def test_weighed_sums_that_are_rounded_above_their_counts_make_no_bound_undefined():
    above = 1.0 + 3e-14
    tally = Tally(np.eye(2), np.array([above, 5.0]), np.array([1.0, 9.0]), np.zeros(2, int))
    spans = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    found = bounds.half_space_suprema(tally, spans, 0.0, fitted(tally))
    assert (found <= 0.0).all()
    assert found[2] < -np.log(2.0) + 1e-3


def test_arms_that_always_win_have_a_supremum_of_nothing_lost():
    tally = Tally(
        np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([9.0, 0.0]), np.array([9, 4]), np.zeros(2, int)
    )
    assert -1e-3 <= bounds.supremum(tally, fitted(tally)) <= 0.0
    # Where the first is not preferred, its nine duels were even at best.
    assert bounds.half_space_suprema(tally, np.array([[-1.0, 0.0]]), 0.0, fitted(tally))[0] == pytest.approx(
        -9.0 * np.log(2.0), abs=1e-3
    )


def test_the_known_values_of_one_pair():
    tally = Tally(np.array([[1.0]]), np.array([7.5]), np.array([10]), np.zeros(1, int))
    coin = 7.5 * np.log(0.75) + 2.5 * np.log(0.25)
    assert bounds.supremum(tally, fitted(tally)) == pytest.approx(coin, abs=1e-9)
    even = bounds.half_space_suprema(tally, np.array([[-1.0]]), 0.0, fitted(tally))[0]
    assert even == pytest.approx(-10.0 * np.log(2.0), abs=1e-9)
    assert bounds.half_space_suprema(tally, np.array([[1.0]]), 0.0, fitted(tally))[0] >= coin - 1e-9


@pytest.mark.parametrize("seed", range(25))
def test_the_least_log_odds_are_those_of_a_general_purpose_solver_and_not_above(seed):
    points, tally = example_tally(seed)
    fit = fitted(tally)
    level = bounds.supremum(tally, fit) - 4.0
    spans = points[1:] - points[0]
    found = bounds.least_log_odds(tally, spans, fit, level)
    for span, least in zip(spans, found, strict=True):
        literal = minimize(
            lambda theta, span=span: theta @ span,
            fit.theta,
            jac=lambda theta, span=span: span,
            constraints=[{"type": "ineq", "fun": lambda theta: log_likelihood(tally, theta) - level}],
            method="SLSQP",
            options={"maxiter": 500, "ftol": 1e-10},
        )
        if literal.success and log_likelihood(tally, literal.x) >= level - 1e-6:
            assert sigma(least) <= sigma(literal.x @ span) + 1e-6
            assert sigma(least) == pytest.approx(sigma(literal.x @ span), abs=2e-3)


@tries(40)
@given(st.integers(0, 10_000), st.integers(0, 4))
def test_no_theta_of_the_set_is_below_the_least_log_odds_however_short_the_search(seed, most_descents):
    points, tally = example_tally(seed)
    fit = fitted(tally)
    level = bounds.supremum(tally, fit) - 3.0
    spans = points[1:] - points[0]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounds, "MOST_DESCENTS", most_descents)
        found = bounds.least_log_odds(tally, spans, fit, level)
    rng = np.random.default_rng(seed)
    spread = np.linalg.cholesky(np.linalg.inv(fit.hessian))
    thetas = fit.theta + 3.0 * rng.normal(size=(300, len(fit.theta))) @ spread.T
    inside = thetas[log_likelihood(tally, thetas) >= level]
    assert (inside @ spans.T >= found - 1e-9).all()


def test_a_direction_without_duels_has_no_least_log_odds():
    tally = Tally(np.array([[1.0, 0.0]]), np.array([5.0]), np.array([10]), np.zeros(1, int))
    found = bounds.least_log_odds(tally, np.array([[0.0, 1.0], [1.0, 0.0]]), fitted(tally), -9.0)
    assert found[0] == -np.inf
    assert np.isfinite(found[1])


def test_parts_give_what_the_whole_gives(monkeypatch):
    points, tally = example_tally(1)
    spans = points[1:] - points[0]
    whole = bounds.least_log_odds(tally, spans, fitted(tally), -50.0)
    monkeypatch.setattr(bounds, "MOST_CELLS", 1)
    assert bounds.least_log_odds(tally, spans, fitted(tally), -50.0) == pytest.approx(whole, abs=1e-2)

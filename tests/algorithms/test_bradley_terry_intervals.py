"""Ends of many arms' intervals by few searches: what searching for every minimum gives."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structured_duels import example_tally, fitted, published_instance, random_pairs, sigma

from winnow.algorithms.best_duel.bradley_terry import Tally, log_likelihood
from winnow.algorithms.papers.bradley_terry import intervals
from winnow.algorithms.papers.bradley_terry.bounds import least_log_odds, quick_least_log_odds
from winnow.algorithms.papers.bradley_terry.intervals import MOST_SEARCHED, extreme_log_odds
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector

GAP = 12.0  # nats from the fit down to the level, as campaigns of some dozens of arms have it


def tally_of_many(seed, n_arms, n_duels, d=4):
    """Duels of random pairs, and everybody as an opponent of all others."""
    points, theta = published_instance(seed, n_arms, d)
    rng = np.random.default_rng(seed)
    arms, counts = np.unique(np.sort(random_pairs(n_arms, n_duels, rng), axis=1), axis=0, return_counts=True)
    z = points[arms[:, 0]] - points[arms[:, 1]]
    wins = rng.binomial(counts, sigma(3.0 * z @ theta)).astype(float)
    return points, Tally(z, wins, counts, np.zeros_like(counts)), ~np.eye(n_arms, dtype=bool)


def level_of(tally, fit, gap=GAP):
    return float(log_likelihood(tally, fit.theta)) - gap


def by_all_searches(tally, points, others, fit, level):
    spans = points[:, np.newaxis] - points
    least = np.full(others.shape, -np.inf)
    wanted = others | others.T
    least[wanted] = least_log_odds(tally, spans[wanted], fit, level)
    return np.where(others, least, np.inf).min(axis=1), -np.where(others.T, least, -np.inf).max(axis=0)


def counted(monkeypatch):
    """How many minima were searched for, in each call."""
    calls = []

    def counting(tally, spans, fit, level):
        calls.append(len(spans))
        return least_log_odds(tally, spans, fit, level)

    monkeypatch.setattr(intervals, "least_log_odds", counting)
    return calls


@pytest.mark.parametrize(("n_arms", "n_duels", "dropped"), [(40, 800, 0), (40, 20_000, 3), (60, 3_000, 0)])
def test_few_searches_give_the_ends_of_all_searches(monkeypatch, n_arms, n_duels, dropped):
    points, tally, others = tally_of_many(n_arms, n_arms, n_duels)
    others = others & (np.arange(n_arms) >= dropped)
    fit = fitted(tally)
    level = level_of(tally, fit)
    calls = counted(monkeypatch)
    lowest, highest = extreme_log_odds(tally, points, others, fit, level)
    assert sum(calls) < 6 * n_arms
    literal = by_all_searches(tally, points, others, fit, level)
    assert lowest == pytest.approx(literal[0], abs=1e-9)
    assert highest == pytest.approx(literal[1], abs=1e-9)


@pytest.mark.parametrize("n_duels", [0, 5, 60, 150])
def test_where_searches_do_not_settle_all_ends_they_are_only_further_out(monkeypatch, n_duels):
    points, tally, others = tally_of_many(n_duels, 30, n_duels)
    fit = fitted(tally)
    level = level_of(tally, fit)
    literal = by_all_searches(tally, points, others, fit, level)
    monkeypatch.setattr(intervals, "MOST_SEARCHED", 60)
    calls = counted(monkeypatch)
    lowest, highest = extreme_log_odds(tally, points, others, fit, level)
    assert sum(calls) <= 60 + 4 * 30
    assert (lowest <= literal[0] + 1e-9).all()
    assert (highest >= literal[1] - 1e-9).all()
    best = (points @ fit.theta).argmax()  # whose turn it is first
    assert lowest[best] == pytest.approx(literal[0][best], abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.1, 30.0))
def test_no_theta_that_is_likely_enough_lies_beyond_the_ball_or_a_quick_bound(seed, gap):
    points, tally = example_tally(seed)
    fit = fitted(tally)
    level = level_of(tally, fit, gap)
    spans = (points[:, np.newaxis] - points)[np.triu_indices(len(points), 1)]
    norms, radius = intervals._ball(tally, spans, fit, gap)
    quick = quick_least_log_odds(tally, spans, fit, level)
    thetas = likely(tally, fit, level, np.random.default_rng(seed))
    values = thetas @ spans.T
    assert (values >= quick - 1e-9 * (1.0 + np.abs(quick))).all()
    if radius < np.inf:
        assert (values >= fit.theta @ spans.T - radius * norms - 1e-9).all()


def likely(tally, fit, level, rng):
    """On 200 rays from the fit, the furthest theta, or nearly, where l is no lower than the level."""
    rays = rng.normal(size=(200, len(fit.theta)))
    least, most = np.zeros((200, 1)), np.full((200, 1), 1e3)
    for _ in range(60):
        middle = (least + most) / 2.0
        is_likely = (log_likelihood(tally, fit.theta + middle * rays) >= level)[:, np.newaxis]
        least, most = np.where(is_likely, middle, least), np.where(is_likely, most, middle)
    return fit.theta + least * rays


def test_the_check_sees_a_ball_that_is_an_ellipsoid_of_the_second_order(monkeypatch):
    # Where sigmoid' decays, l is above its parabola: a ball by that alone is too small.
    points, tally, _ = tally_of_many(1, 6, 40, d=2)
    fit = fitted(tally)
    level = level_of(tally, fit)
    spans = points[1:] - points[0]
    values = likely(tally, fit, level, np.random.default_rng(0)) @ spans.T
    norms, radius = intervals._ball(tally, spans, fit, GAP)
    assert (values >= fit.theta @ spans.T - radius * norms).all()
    assert (values < fit.theta @ spans.T - np.sqrt(2.0 * GAP) * norms).any()


def test_a_quick_bound_is_about_as_sharp_where_there_are_many_duels():
    points, tally, _ = tally_of_many(3, 12, 3_000)
    fit = fitted(tally)
    level = level_of(tally, fit)
    spans = points[1:] - points[0]
    found = least_log_odds(tally, spans, fit, level)
    assert quick_least_log_odds(tally, spans, fit, level) == pytest.approx(found, abs=0.01)


def test_a_decision_on_a_hundred_arms_takes_a_few_searches_for_each(monkeypatch):
    features, theta = published_instance(0, 100, 10)
    selector = create_selector("llm-po-bt", n_arms=100, n_examples=9, features=features, batch_size=100)
    rng, calls = np.random.default_rng(0), counted(monkeypatch)
    for round_ in range(4):
        batch = selector.ask(round_rng(0, round_))
        chances = sigma((features[batch.arms[:, 0]] - features[batch.arms[:, 1]]) @ theta)
        selector.tell(batch, rng.random(len(batch)) < chances)
        assert not calls  # intervals are for who looks at them
        decision = selector.decision()
        assert sum(calls) <= MOST_SEARCHED + 4 * 100  # of 9 900
        calls.clear()
        assert (decision.lower <= decision.estimates).all()
        assert (decision.estimates <= decision.upper).all()
    selector.decision()
    assert not calls  # nor are they worked out twice

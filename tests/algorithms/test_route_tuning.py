"""The kernel that a router chooses from its scores: by definition, by what was drawn, and when it resumes."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import multivariate_normal, norm
from selector_worlds import RouteWorld

from winnow.algorithms.protocols import round_rng
from winnow.algorithms.route.config import RouteConfig
from winnow.algorithms.route.metrics import cumulative_regret
from winnow.algorithms.route.posteriors import tuned as tuned_posteriors
from winnow.algorithms.route.posteriors.kernel_ridge import kernel_posteriors
from winnow.algorithms.route.posteriors.kernels import RandomFeatures
from winnow.algorithms.route.posteriors.linear_ridge import fourier_posteriors
from winnow.algorithms.route.posteriors.tuned import (
    ALPHAS,
    BANDWIDTHS,
    FIRST_CHOICE,
    LAST_CHOICE,
    LEAST_NOISE,
    MOST_SCORES,
    TunedPosteriors,
    most_probable,
)


def contexts_of(n, dim, rng):
    rows = rng.standard_normal((n, dim))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def covariance(contexts, bandwidth, alpha):
    squares = ((contexts[:, np.newaxis] - contexts) ** 2).sum(axis=2)
    return np.exp(-squares / (2.0 * bandwidth**2)) + alpha * np.eye(len(contexts))


def drawn(n_arms, bandwidth, alpha, rng, n=120, dim=3):
    """Scores of arms with a Gaussian process each, of amplitude 1/2."""
    arms, contexts, scores = rng.integers(n_arms, size=n), contexts_of(n, dim, rng), np.empty(n)
    for arm in range(n_arms):
        mine = arms == arm
        factor = np.linalg.cholesky(covariance(contexts[mine], bandwidth, alpha))
        scores[mine] = 0.5 * factor @ rng.standard_normal(mine.sum())
    return arms, contexts, scores


def test_the_choice_is_the_densest_point_of_the_grid_with_the_amplitude_at_its_best():
    rng = np.random.default_rng(0)
    arms, contexts, scores = drawn(2, 0.7, 0.3, rng, n=40)
    found = {}
    for bandwidth in (0.3, 0.7, 2.0):
        for alpha in (0.1, 1.0, 10.0):

            def density(log_amplitude, bandwidth=bandwidth, alpha=alpha):
                return -sum(
                    multivariate_normal.logpdf(
                        scores[arms == arm],
                        cov=np.exp(2.0 * log_amplitude) * covariance(contexts[arms == arm], bandwidth, alpha),
                    )
                    for arm in range(2)
                )

            best = minimize_scalar(density, bounds=(-6.0, 3.0), method="bounded", options={"xatol": 1e-10})
            prior = norm.logpdf(np.log(bandwidth) / np.log(3.0), scale=np.sqrt(0.5)) + norm.logpdf(
                np.log(alpha) / np.log(10.0), scale=np.sqrt(0.5)
            )
            found[bandwidth, alpha] = (prior - best.fun, np.exp(best.x) * np.sqrt(alpha))
    chosen = most_probable(arms, contexts, scores, (0.3, 0.7, 2.0), (0.1, 1.0, 10.0))
    wanted = max(found, key=lambda point: found[point][0])
    assert (chosen.bandwidth, chosen.alpha) == wanted
    assert chosen.noise == pytest.approx(found[wanted][1], rel=6e-3)  # it is kept to three digits


@pytest.mark.parametrize(("bandwidth", "alpha"), [(0.3, 0.1), (1.0, 0.1), (1.0, 1.0)])
def test_what_scores_were_drawn_with_is_found_again(bandwidth, alpha):
    rng = np.random.default_rng(1)
    chosen = most_probable(*drawn(3, bandwidth, alpha, rng, n=600))
    places = [BANDWIDTHS.index(each) for each in (bandwidth, chosen.bandwidth)]
    assert abs(places[0] - places[1]) <= 1
    assert abs(np.log(chosen.noise / (0.5 * np.sqrt(alpha)))) < 0.1


def test_scores_that_do_not_vary_leave_some_noise():
    contexts = contexts_of(70, 3, np.random.default_rng(2))
    chosen = most_probable(np.zeros(70, dtype=np.int64), contexts, np.zeros(70))
    assert chosen.noise == LEAST_NOISE


def kernels(config):
    return kernel_posteriors(config)


def features(config):
    return fourier_posteriors(config, RandomFeatures(config, 40, 3))


@pytest.mark.parametrize("make", [kernels, features])
def test_all_is_learned_anew_less_half_the_mean_with_what_was_chosen(make):
    config = RouteConfig(n_arms=2, n_examples=1, dim=3)
    arms, contexts, scores = drawn(2, 1.0, 1.0, np.random.default_rng(3), n=140)
    scores += 0.4
    tuned = TunedPosteriors(config, make)
    first = make(config)
    for t in range(140):
        tuned.learn(arms[t], contexts[t], scores[t])
        if t < FIRST_CHOICE - 1:
            first.learn(arms[t], contexts[t], scores[t])
            np.testing.assert_array_equal(
                tuned.predict(contexts[0], [0, 1]), first.predict(contexts[0], [0, 1])
            )
            assert tuned.eta is None
    chosen = most_probable(arms[:128], contexts[:128], scores[:128] - scores[:128].mean())
    assert tuned.smoothness == chosen
    assert tuned.eta == chosen.noise
    plain = make(replace(config, bandwidth=chosen.bandwidth, alpha=chosen.alpha))
    half = sum(scores[:128]) / 128 / 2.0  # of numpy's numbers, which are told: Python's are summed otherwise
    for arm, context, score in zip(arms.tolist(), contexts, scores.tolist(), strict=True):
        plain.learn(arm, context, score - half)
    means, deviations = plain.predict(contexts[5], [0, 1])
    np.testing.assert_array_equal(tuned.predict(contexts[5], [0, 1]), (means + half, deviations))
    usable = np.ones(2, dtype=np.bool_)
    np.testing.assert_allclose(tuned.policy(usable).scores(contexts[5]), means + half, atol=1e-6)


@pytest.mark.parametrize("name", ["pak-ucb", "rff-ucb"])
def test_an_exported_policy_has_the_bandwidth_that_was_chosen(name):
    world = RouteWorld(n_examples=100)
    selector = world.selector(name)
    fixed = world.selector(name, bandwidth=1.0)
    for batch, outcomes in world.rounds(selector):
        fixed.tell(batch, outcomes)
    chosen = selector._posteriors.smoothness
    policy, other = selector.policy(), fixed.policy()
    if name == "pak-ucb":
        assert policy.parameters["kernel"]["bandwidth"] == chosen.bandwidth
    else:
        frequencies = other.arrays["frequencies"] / chosen.bandwidth
        np.testing.assert_allclose(policy.arrays["frequencies"], frequencies)
    for context in world.contexts[:20]:
        np.testing.assert_allclose(policy.scores(context), selector.predict(context)[0], atol=1e-5)


def test_numbers_that_are_given_are_kept():
    world = RouteWorld(n_examples=100)
    selector = world.selector("pak-ucb", alpha=0.7, eta=0.4)
    list(world.rounds(selector))
    assert selector._posteriors.smoothness.alpha == 0.7
    assert selector._exploration() == 0.4
    published = world.selector("pak-ucb", bandwidth=3.0)
    list(world.rounds(published))
    assert published._exploration() == pytest.approx(np.sqrt(2.0 * np.log(2.0 * 4 / 0.05)))
    assert published.policy().parameters["kernel"]["bandwidth"] == 3.0
    assert published.policy().parameters["centre"] == 0.0


@pytest.mark.parametrize("name", ["pak-ucb", "rff-ucb"])
def test_a_router_that_chose_its_kernel_resumes_bit_for_bit_over_arms_that_come(name):
    world = RouteWorld(n_arms=5, n_examples=280, unscored=0.05)
    original, resumed = (RouteWorld(n_examples=280).selector(name, batch_size=9) for _ in range(2))
    history, played = [], 0
    while len(batch := world.ask(original, round_rng(7, played))):
        history.append((batch, world.outcomes(batch)))
        original.tell(*history[-1])
        if played == 10:
            original.add_arm()
        played += 1
    chosen = original._posteriors.smoothness
    for place, told in enumerate(history):
        assert world.ask(resumed, round_rng(7, place)) == told[0]
        resumed.tell(*told)
        if place == 10:
            resumed.add_arm()
    by_tell_alone = RouteWorld(n_examples=280).selector(name)
    for place, told in enumerate(history):
        by_tell_alone.tell(*told)
        if place == 10:
            by_tell_alone.add_arm()
    for each in (resumed, by_tell_alone):
        assert each._posteriors.smoothness == chosen
        np.testing.assert_array_equal(each.predict(world.contexts[0]), original.predict(world.contexts[0]))


def test_nothing_is_chosen_and_no_context_kept_after_the_last_choice(monkeypatch):
    # Of more scores than a choice looks at, but not of thousands: each such choice takes a third of a second.
    last = 1_024
    assert MOST_SCORES < last < LAST_CHOICE
    monkeypatch.setattr(tuned_posteriors, "LAST_CHOICE", last)
    config = RouteConfig(n_arms=1, n_examples=1, dim=2)
    tuned = TunedPosteriors(config, lambda given: fourier_posteriors(given, RandomFeatures(given, 3, 0)))
    rng = np.random.default_rng(4)
    contexts = contexts_of(last, 2, rng)
    for t in range(last):
        assert len(tuned._told) == t
        tuned.learn(0, contexts[t], float(np.sin(5.0 * contexts[t, 0])))
    chosen = tuned.smoothness
    assert tuned._told == []
    for t in range(last):
        tuned.learn(0, contexts[t], float(rng.uniform(-1.0, 1.0)))
    assert tuned.smoothness is chosen
    assert chosen.alpha in ALPHAS


@pytest.mark.statistical
def test_the_chosen_kernel_loses_less_than_the_fixed_one_where_one_arm_is_best_everywhere():
    """Of 20 worlds 17 are won with chance below 0.0013 by one that is no better.

    A narrow kernel is not: that it wins none of the first four is enough.
    """
    won = {"auto": 0, 0.3: 0}
    for seed in range(20):
        world = RouteWorld(n_examples=300, seed=seed)
        expected = np.tile([[0.4], [0.0], [-0.1], [-0.2]], 300)
        noise = np.random.default_rng([seed, 1]).random(expected.shape)
        world.scores = np.where(noise < (expected + 1.0) / 2.0, 1.0, -1.0)
        regrets = {}
        rivals = ("auto", 0.3) if seed < 4 else ("auto",)
        for bandwidth in (*rivals, 3.0):
            selector = world.selector("rff-ucb", bandwidth=bandwidth, n_features=20, batch_size=1)
            arms = np.concatenate([batch.arms for batch, _ in world.rounds(selector)])
            regrets[bandwidth] = cumulative_regret(arms, expected.T)[-1]
        for bandwidth in rivals:
            won[bandwidth] += regrets[bandwidth] < regrets[3.0]
    assert won["auto"] >= 17
    assert won[0.3] == 0

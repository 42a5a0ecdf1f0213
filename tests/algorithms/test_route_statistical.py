"""What a deviation promises, and that routing pays, each with a variant that is known to be wrong."""

import numpy as np
import pytest
from failure_rates import fails_too_often
from scipy.stats import binom
from selector_worlds import RouteWorld

from winnow.algorithms.route.metrics import cumulative_regret
from winnow.algorithms.route.posteriors.kernel_ridge import KernelRidge
from winnow.algorithms.route.posteriors.kernels import Kernel
from winnow.algorithms.route.posteriors.linear_ridge import LinearRidge

pytestmark = pytest.mark.statistical

DELTA, PATHS, ALPHA, N = 0.2, 1_500, 0.05, 40
ETA = np.sqrt(2.0 * np.log(2.0 / DELTA))


def misses(make, half_width):
    """Whether the expected score at a prompt is outside mean +- half_width(deviation).

    Scores are +1 or -1 with an expected score of norm 1/2, the prompts fixed beforehand, as Lemma 4 asks.
    """
    rng = np.random.default_rng(0)
    direction = np.array([0.5, 0.0, 0.0])
    for _ in range(PATHS):
        inputs = np.eye(3)[rng.integers(2, size=N)]
        ridge = make()
        for x in inputs:
            ridge.learn(x, 1.0 if rng.random() < (1.0 + x @ direction) / 2.0 else -1.0)
        mean, deviation = ridge.predict(np.eye(3)[0])
        yield abs(mean - 0.5) > half_width(deviation)


REGRESSIONS = {
    "kernel": lambda: KernelRidge(Kernel(name="linear", gamma=1.0, bandwidth=1.0), ALPHA, 3),
    "features": lambda: LinearRidge(3, ALPHA),
}


@pytest.mark.parametrize("make", REGRESSIONS.values(), ids=REGRESSIONS)
def test_the_expected_score_lies_within_eta_plus_root_alpha_deviations_of_the_mean(make):
    found = misses(make, lambda deviation: (ETA + np.sqrt(ALPHA)) * deviation)
    assert not fails_too_often(found, PATHS, DELTA)


@pytest.mark.parametrize("make", REGRESSIONS.values(), ids=REGRESSIONS)
def test_the_check_catches_a_deviation_that_was_not_divided_by_the_root_of_alpha(make):
    found = misses(make, lambda deviation: (ETA + np.sqrt(ALPHA)) * np.sqrt(ALPHA) * deviation)
    assert fails_too_often(found, PATHS, DELTA)


WORLDS, CHANCE = 20, 1e-6


def wins(name, **params):
    """In how many worlds of four types regret is below that of random choices."""
    won = 0
    for seed in range(WORLDS):
        world = RouteWorld(n_examples=110, seed=seed)
        regrets = []
        for each, given in ((name, params), ("random", {})):
            played = [batch.arms for batch, _ in world.rounds(world.selector(each, **given), seed)]
            regrets.append(cumulative_regret(np.concatenate(played), world.expected.T)[-1])
        won += regrets[0] < regrets[1]
    return won


def is_no_chance(won):
    """Whether a router as good as chance would win as often with probability below CHANCE: all 20 worlds."""
    return bool(binom.sf(won - 1, WORLDS, 0.5) < CHANCE)


@pytest.mark.parametrize("name", ["pak-ucb", "rff-ucb"])
def test_routing_has_less_regret_than_random_choices(name):
    assert is_no_chance(wins(name))


def test_the_check_catches_a_router_that_learns_nothing():
    assert not is_no_chance(wins("pak-ucb", alpha=1e9, eta=1e6))

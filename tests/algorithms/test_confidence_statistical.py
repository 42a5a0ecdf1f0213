"""Seeded simulations of what the intervals and the stopping rule promise, and of what would break it."""

import numpy as np
import pytest
from failure_rates import fails_too_often, too_many
from literal_betting import literal_capital
from selector_worlds import BestMeanWorld

from winnow.algorithms.best_mean import stopping
from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.stopping import single_levels
from winnow.algorithms.bounds.confidence_sequences import EndLevels, FinitePopulationIntervals
from winnow.algorithms.bounds.wealth import Wealth

N = 100
POPULATIONS = {
    "binary": np.repeat([0.0, 1.0], [50, 50]),
    "nearly all right": np.repeat([0.0, 1.0], [5, 95]),
    "nearly constant": np.random.default_rng(0).normal(0.5, 0.01, N),
    "one deviating example": np.repeat([0.0, 1.0], [1, 99]),
    "U-shaped": np.random.default_rng(0).beta(0.2, 0.2, N),
}

pytestmark = pytest.mark.statistical


def shuffled(population, paths):
    return np.random.default_rng(1).permuted(np.tile(population, (paths, 1)), axis=1)  # (P, N)


def are_ever_refuted(paths, mean, level):
    """Of each path (P, N), whether its mean is refuted when its scores have come, or at any time before."""
    wealth, arms = Wealth(len(paths), paths.shape[1], level, np.array([mean])), np.arange(len(paths))
    refuted = np.zeros(len(paths), dtype=bool)
    for t in range(0, paths.shape[1], 5):
        wealth.bet(arms, paths[:, t : t + 5], slice(None))
        refuted |= wealth.capital(arms)[:, 0] >= 1.0 / level
    return refuted


@pytest.mark.parametrize("name", POPULATIONS)
def test_the_true_mean_is_refuted_on_at_most_the_allowed_share_of_paths(name):
    # 1,000 paths at level 0.1, alarm at 150: a true rate of 0.2 is seen with probability above 0.9999.
    paths = shuffled(POPULATIONS[name], 1_000)
    assert not too_many(are_ever_refuted(paths, POPULATIONS[name].mean(), 0.1).sum(), 1_000, 0.1)


@pytest.mark.parametrize("name", ["nearly all right", "one deviating example"])
def test_the_check_catches_a_bet_without_a_cap(name):
    paths = shuffled(POPULATIONS[name], 1_000)
    capital = literal_capital(paths, POPULATIONS[name].mean(), N, 0.1, flaw="no cap")
    assert too_many((capital.max(axis=1) >= 10.0).sum(), len(paths), 0.1)


@pytest.mark.parametrize("name", ["binary", "nearly all right", "U-shaped"])
def test_the_check_catches_a_forgotten_union(name):
    # Both ends and three arms at the whole level: 0.6 where 0.1 was promised.
    paths = shuffled(POPULATIONS[name], 1_000)
    capital = literal_capital(paths, POPULATIONS[name].mean(), N, 0.6)
    assert too_many((capital.max(axis=1) >= 1.0 / 0.6).sum(), len(paths), 0.1)


def misses(alpha, paths, n_arms=3, n_examples=60):
    """Whether an adversary who knows the means, and draws where a miss is nearest, makes any arm miss."""
    for path in range(paths):
        rng = np.random.default_rng([3, path])
        scores = rng.permuted(np.tile(np.repeat([0.0, 1.0], [15, 45]), (n_arms, 1)), axis=1)
        means = scores.mean(axis=1)
        intervals = FinitePopulationIntervals(n_arms, n_examples, alpha)
        drawn = np.zeros(n_arms, dtype=int)
        missed = False
        while (drawn < n_examples).any() and not missed:
            slack = np.minimum(means - intervals.lower, intervals.upper - means)
            missed = bool((slack < 0).any())
            arm = int(np.where(drawn < n_examples, slack, np.inf).argmin())
            intervals.update(np.full(4, arm), scores[arm, drawn[arm] : drawn[arm] + 4])
            drawn[arm] += 4
        yield missed


def test_all_intervals_hold_at_once_under_adversarial_choice_of_arms():
    # Alarm at 121 of 400: a true rate of 0.4 is seen with probability above 0.998.
    assert not fails_too_often(misses(0.2, 400), 400, 0.2)


def test_the_adversary_catches_intervals_at_several_times_the_level():
    assert fails_too_often(misses(0.99, 400), 400, 0.2)  # 195


class PeekingIntervals:
    """Fixed-sample normal intervals, looked at after every batch."""

    def __init__(self, n_arms, n_examples, alpha, single=None):
        self.told, self.sums = np.zeros(n_arms), np.zeros(n_arms)  # of scores 0 and 1
        self.n_examples = n_examples

    def update(self, arms, scores, is_draw):
        np.add.at(self.told, arms, 1)
        np.add.at(self.sums, arms, scores)

    def end(self, sign):
        told = np.maximum(self.told, 1)
        means = self.sums / told
        ends = means + sign * 2 * np.sqrt(means * (1.0 - means) / told)
        return np.clip(
            np.where(self.told > 0, ends, sign),
            self.sums / self.n_examples,
            1.0 - (self.told - self.sums) / self.n_examples,
        )

    estimates = property(lambda self: self.end(0))
    lower = property(lambda self: self.end(-1))
    upper = property(lambda self: self.end(+1))
    single_lower, single_upper = lower, upper


def wrong_stops(delta, campaigns, variant="mended"):
    """Whether UCB-E says "confident" of the worse of two arms, which differ in 1 example of 60."""
    for seed in range(campaigns):
        world = BestMeanWorld(n_arms=2, n_examples=60)
        world.scores = np.repeat([[1.0, 0.0], [1.0, 0.0]], 30, axis=1)
        world.scores[1, 30] = 1.0
        selector = world.selector("ucb-e", delta=delta, batch_size=4, variant=variant)
        for _ in world.rounds(selector, seed=seed):
            pass
        decision = selector.decision()
        yield decision.reason == "confident" and decision.best != 1


@pytest.mark.parametrize("variant", ["mended", "paper"])
def test_a_confident_answer_is_wrong_in_at_most_a_share_delta_of_campaigns(variant):
    # Alarm at 37 of 300. A true rate of 0.2 is seen with probability above 0.999;
    # smaller faults of the bounds are for the exact tests.
    assert not fails_too_often(wrong_stops(0.05, 300, variant), 300, 0.05)


def wrong_ends(levels, campaigns, n_arms=12):
    """In how many campaigns a wrong arm's lower end, or the best one's upper end, ever misses the mean."""
    scores, rng = np.repeat([0.0, 1.0], [15, 45]), np.random.default_rng(4)
    rows = rng.permuted(np.tile(scores, (campaigns * n_arms, 1)), axis=1)
    above = are_ever_refuted(1.0 - rows[:campaigns], 1.0 - scores.mean(), levels.upper)
    below = are_ever_refuted(rows[campaigns:], scores.mean(), levels.lower)
    return (above | below.reshape(campaigns, n_arms - 1).any(axis=1)).sum()


def test_the_ends_that_a_wrong_answer_needs_miss_with_probability_delta():
    # Alarm at 146 of 500.
    levels = single_levels(BestMeanConfig(n_arms=12, n_examples=60, delta=0.2), "mended")
    assert not too_many(wrong_ends(levels, 500), 500, 0.2)


def test_the_check_catches_lower_ends_without_their_union():
    assert too_many(wrong_ends(EndLevels(lower=0.1, upper=0.1), 500), 500, 0.2)  # 263


def test_the_check_catches_peeking_at_normal_intervals(monkeypatch):
    monkeypatch.setattr(stopping, "FinitePopulationIntervals", PeekingIntervals)
    assert fails_too_often(wrong_stops(0.05, 300), 300, 0.05)  # 21 of the first 84

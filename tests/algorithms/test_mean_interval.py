"""Intervals for the mean of a sample, and what they are worth for two candidates that the data chose."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from failure_rates import fails_too_often

from winnow.algorithms.bounds.mean_interval import mean_interval
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector


def literal_lower_end(values, level, grid=4001):
    """The same by its definition: the highest of many means whose capital reaches 1 / level."""
    m = np.linspace(0.0, 1.0, grid)[1:]
    capital, total, squares = np.ones(grid - 1), 0.5, 0.25
    for t, x in enumerate(values):
        bet = np.minimum(np.sqrt(2.0 * np.log(1.0 / level) / (len(values) * squares / (t + 1))), 0.75 / m)
        capital *= 1.0 + bet * (x - m)
        mean = (total + x) / (t + 2)
        total, squares = total + x, squares + (x - mean) ** 2
    return m[capital >= 1.0 / level].max(initial=0.0)


@pytest.mark.parametrize("chance", [0.1, 0.5, 0.95])
def test_ends_are_those_of_the_definition(chance):
    values = (np.random.default_rng(3).random(40) < chance).astype(float)
    lower, upper = mean_interval(values, 0.1)
    assert lower == pytest.approx(literal_lower_end(values, 0.05), abs=3e-4)
    assert upper == pytest.approx(1.0 - literal_lower_end(1.0 - values, 0.05), abs=3e-4)


def test_no_value_says_nothing_and_ends_are_on_either_side_of_the_mean():
    assert mean_interval(np.empty(0), 0.05) == (0.0, 1.0)
    rng = np.random.default_rng(0)
    for n in (1, 2, 30, 1000):
        values = rng.random(n)
        lower, upper = mean_interval(values, 0.05)
        assert 0.0 <= lower <= values.mean() <= upper <= 1.0
        assert mean_interval(values, 0.5)[0] >= lower


@pytest.mark.statistical
@pytest.mark.parametrize("chance", [0.01, 0.3])
def test_the_interval_misses_the_mean_no_more_often_than_it_says(chance):
    """See `failure_rates` for the rate of false alarms."""

    def misses():
        for seed in range(2_000):
            values = (np.random.default_rng(seed).random(60) < chance).astype(float)
            lower, upper = mean_interval(values, 0.1)
            yield not lower <= chance <= upper

    assert not fails_too_often(misses(), 2_000, 0.1)


@cache
def chosen_pair(seed, n_arms=5, n_examples=80):
    """The best and the last of five equal arms, as UCB-E says, on the examples that both were asked on.

    No two arms are chosen more by their scores than these.
    """
    rng = np.random.default_rng([11, seed])
    difficulty = rng.random(n_examples)
    scores = (rng.random((n_arms, n_examples)) < difficulty).astype(float)
    selector = create_selector("ucb-e", n_arms=n_arms, n_examples=n_examples, batch_size=16, budget=240)
    asked = np.zeros(scores.shape, dtype=bool)
    while len(batch := selector.ask(round_rng(seed, int(asked.sum())))):
        asked[batch.arms, batch.examples] = True
        selector.tell(batch, scores[batch.arms, batch.examples])
    order = np.argsort(selector.decision().estimates)
    best, last = order[-1], order[0]
    both = asked[best] & asked[last]
    return (scores[best] - scores[last])[both]


@pytest.mark.statistical
def test_an_interval_for_all_pairs_covers_the_pair_that_adaptive_sampling_chose_and_a_plain_one_does_not():
    """The true difference is 0 whichever pair is chosen; see `failure_rates` for the rate of false alarms."""
    pairs = len(list(combinations(range(5), 2)))

    def missed(differences):
        lower, upper = mean_interval((differences + 1.0) / 2.0, 0.05 / pairs)
        return not lower <= 0.5 <= upper

    def missed_by_a_plain_interval(differences):
        error = 1.96 * differences.std(ddof=1) / np.sqrt(len(differences))
        return abs(differences.mean()) > error

    assert not fails_too_often((missed(chosen_pair(seed)) for seed in range(300)), 300, 0.05)
    plain = (missed_by_a_plain_interval(chosen_pair(seed)) for seed in range(300))
    assert fails_too_often(plain, 300, 0.05)

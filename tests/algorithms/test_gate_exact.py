"""Every order of tiny tables, and whole campaigns against the formulas written out draw by draw."""

import math
from itertools import permutations

import numpy as np
import pytest
from selector_worlds import BestMeanWorld

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.gate import Evidence

N = 5
ORDERS = list(permutations(range(N)))
BASELINE = np.array([1.0, 0.0, 0.5, 0.5, 0.0])
TABLES = {
    0.0: np.array([0.0, 1.0, 0.1, 0.6, 0.3]),  # as good
    0.2: np.array([0.0, 0.0, 0.7, 0.0, 0.3]),  # exactly epsilon worse
}
"""The other arm's scores, by epsilon."""


def paths(epsilon, delta=0.5):
    """Of every order, what the three bets made after each batch; batches depend on the scores."""
    scores = np.column_stack([TABLES[epsilon], BASELINE])
    for order in ORDERS:
        config = BestMeanConfig(n_arms=2, n_examples=N, delta=delta, epsilon=epsilon)
        evidence, left, found = Evidence(config, 0), list(order), []
        evidence._share = 1e-12  # nothing is ever shown, so that bets go on to the end
        while left:
            size = 2 if found and found[-1][0] > 1.0 else 1
            now, left = left[:size], left[size:]
            evidence.tell({1: scores[now]})
            found.append((*evidence._up.capital(1), evidence._down.capital(1)[0]))
        yield np.array(found)


@pytest.mark.parametrize(("epsilon", "fair"), [(0.0, (0, 1, 2)), (0.2, (0, 2))])
def test_at_its_own_difference_a_wealth_has_a_mean_of_1_over_all_orders(epsilon, fair):
    ends = np.array([path[-1] for path in paths(epsilon)])
    assert (ends.std(axis=0) > 0.01).all()
    np.testing.assert_allclose(ends.mean(axis=0)[list(fair)], 1.0, rtol=1e-12)


def test_against_a_higher_difference_the_same_bets_never_make_more():
    for path in paths(0.2):
        assert (path[:, 1] <= path[:, 0] + 1e-12).all()


@pytest.mark.parametrize("delta", [0.8, 0.6, 0.45])
@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_what_is_false_is_shown_in_at_most_a_share_delta_of_all_orders(delta, epsilon):
    highest = np.array([path.max(axis=0) for path in paths(epsilon, delta)])
    # The difference is exactly -epsilon: it is wrong to call it worse, and to call it better.
    is_wrong = (highest[:, 1] >= 2.0 / delta) | (highest[:, 2] >= 2.0 / delta)
    assert is_wrong.mean() <= delta


def capital(observations, null, level):
    """What bets that the mean of N values in [0, 1] is above `null` have made of 1, value by value."""
    horizons, capitals = [16.0], []
    while horizons[-1] * 4.0 <= N_LITERAL:
        horizons.append(horizons[-1] * 4.0)
    made = [1.0] * len(horizons)
    total, squares = 0.0, 0.0
    for count, value in enumerate(observations):
        variance = (0.25 + squares) / (count + 1)
        left = (N_LITERAL * null - total) / (N_LITERAL - count)
        for each, horizon in enumerate(horizons):
            bet = math.sqrt(2.0 * math.log(1.0 / level) / (horizon * variance))
            made[each] *= 1.0 + min(bet, 0.75 / max(left, 1e-12)) * (value - left)
        total += value
        squares += (value - (0.5 + total) / (count + 2)) ** 2
        capitals.append(sum(made) / len(made))
    return capitals[-1]


N_LITERAL = 70


@pytest.mark.parametrize("seed", range(6))
def test_a_whole_campaign_says_what_the_formulas_say(seed):
    rng = np.random.default_rng(seed)
    world = BestMeanWorld(n_arms=3, n_examples=N_LITERAL)
    world.scores = (rng.random((3, N_LITERAL)) < np.array([[0.5], [0.5 + 0.4 * (seed % 2)], [0.2]])) * 1.0
    world.scores[rng.random((3, N_LITERAL)) < 0.05] = np.nan
    delta, epsilon = 0.3, 0.1
    selector = world.selector("gate", delta=delta, epsilon=epsilon, batch_size=7)
    lows, highs, shown = {1: [], 2: []}, {1: [], 2: []}, {1: None, 2: None}
    share = delta / 2
    for batch, _ in world.rounds(selector, seed=seed):
        for arm in (1, 2):
            mine = batch.examples[batch.arms == arm]
            if shown[arm] is not None or len(mine) == 0:
                continue
            own, base = world.scores[arm, mine], world.scores[0, mine]
            lows[arm] += ((1 + np.nan_to_num(own, nan=0) - np.nan_to_num(base, nan=1)) / 2).tolist()
            highs[arm] += ((1 + np.nan_to_num(own, nan=1) - np.nan_to_num(base, nan=0)) / 2).tolist()
            mirrored = [1.0 - value for value in highs[arm]]
            no_worse = capital(lows[arm], (1 - epsilon) / 2, share) >= 1 / share
            better = capital(lows[arm], 0.5, share) >= 2 / share
            worse = capital(mirrored, (1 + epsilon) / 2, share / 2) >= 2 / share
            if no_worse or worse:
                shown[arm] = "worse" if worse else "better" if better else "no-worse"
        decision = selector.decision()
        if decision.claim.kind == "proven":
            by_bets = {arm: word for arm, word in shown.items() if word is not None}
            assert {arm: decision.status[arm] for arm in by_bets} == by_bets
    assert any(shown.values())

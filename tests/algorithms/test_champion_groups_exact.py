"""Every order of tiny tables with groups: what the wealth of an arm as good as the champion comes to."""

from functools import cache
from itertools import permutations, product

import numpy as np
import pytest

from winnow.algorithms.best_mean.groups import Groups, draw_weighted
from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.switch import Mode

TESTED = 1
OF_EXAMPLE = np.array([0, 1, 1, 0, 1])
WEIGHTED = Groups.of(OF_EXAMPLE, np.array([2.0, 1.0]))
SCORES = np.array(
    [
        [1.0, 0.0, 0.9, 0.5, 0.0],  # becomes the filled row, its value 0.6
        [0.7, 1.0, 0.1, 0.5, 0.7],  # is as good, and tested
        [0.1, 1.0, 0.9, 0.9, 0.5],  # as good, and told now and then: a control
    ]
)
HALVES = Groups.of(np.array([0, 1, 0, 1, 0, 1]), None)
LEVEL = np.array(
    [
        [1.0, 0.2, 0.0, 1.0, 0.2, 0.6],  # the filled row: means 0.4 and 0.6
        [0.0, 1.0, 0.9, 0.2, 0.3, 0.0],  # 0.4 in both groups: as good, and tested
        [0.1, 0.9, 0.8, 0.3, 0.0, 0.1],
    ]
)
ABOVE = LEVEL.copy()
ABOVE[TESTED, 1::2] = [1.0, 0.5, 0.3]  # better in the second group than it need be


def new_evidence(groups, weight):
    mode = Mode(weight, 1, leaves=True)
    return Evidence(len(SCORES), len(groups.weights), mode, level=np.inf, epsilon=0.0, groups=groups)


def rest_of(evidence, arm):
    rows = evidence.groups.rows_of(np.array([arm]))
    rows = rows[evidence.draws.count[rows] > 0]
    told = evidence.draws.history(rows).examples if rows.size else []
    return np.setdiff1d(np.arange(evidence.n_examples), told)


def tell(evidence, arm, examples, scores):
    """An arm's own draws."""
    groups, examples = evidence.groups, np.array(examples)
    arms = np.full(len(examples), arm)
    batch = Grouped.of(groups.row_of(arms, examples), examples, scores[arm, examples])
    is_left = np.isin(np.arange(evidence.n_examples), rest_of(evidence, arm))
    parts = batch.arms % groups.n_parts
    evidence.tell(batch, is_left & (groups.part_of == parts[:, np.newaxis]))


def weighted_wealths(order, columns):
    """A campaign with a race, a search and tests, in which batches follow from the tested arm's scores."""
    evidence, left, wealths = new_evidence(WEIGHTED, 0.5), list(order), []
    for _ in range(columns):
        arms, example = np.arange(len(SCORES)), left.pop(0)
        batch = Grouped.of(arms, np.full(len(arms), example), SCORES[:, example])
        evidence.tell_columns(batch, arms, SCORES[:, [example]])
    last = SCORES[TESTED, order[columns - 1]] if columns else 1.0
    if last > 0.3:
        tell(evidence, TESTED, [left.pop(0)], SCORES)
    tell(evidence, 0, rest_of(evidence, 0), SCORES)
    while left:
        tell(evidence, 2, rest_of(evidence, 2)[:1], SCORES)
        size = 2 if last < 0.6 else 1
        tell(evidence, TESTED, left[:size], SCORES)
        last = SCORES[TESTED, left[:size][-1]]
        del left[:size]
        wealths.append(float(evidence.wealths(np.array([TESTED]))[0]))
    return wealths


def probability(order, weights):
    """Of drawing examples in this order, each with a probability that goes as its weight."""
    left = weights[list(order)][::-1].cumsum()[::-1]
    return float(np.prod(weights[list(order)] / left))


ORDERS = list(permutations(range(len(OF_EXAMPLE))))
CHANCES = np.array([probability(order, WEIGHTED.weights) for order in ORDERS])


@cache
def weighted_paths(columns):
    return [weighted_wealths(order, columns) for order in ORDERS]


def test_the_rows_are_worth_the_same():
    by_group = [SCORES[:, group == OF_EXAMPLE].mean(axis=1) for group in (0, 1)]
    np.testing.assert_allclose(WEIGHTED.value(np.stack(by_group, axis=1)), 0.6)
    assert CHANCES.sum() == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("columns", [0, 1, 3])
def test_at_its_own_value_an_arm_has_a_mean_wealth_of_1_whenever_it_is_stopped(columns):
    paths = weighted_paths(columns)
    for level in (0.9, 1.05, 1.2, np.inf):
        stopped = [next((wealth for wealth in path if wealth >= level), path[-1]) for path in paths]
        assert np.std(stopped) > 0.01
        np.testing.assert_allclose(CHANCES @ stopped, 1.0, rtol=1e-12)


@pytest.mark.parametrize("delta", [0.8, 0.6])
def test_it_is_ever_ruled_out_with_probability_delta_at_most(delta):
    highest = np.array([max(path) for path in weighted_paths(3)])
    assert CHANCES @ (highest >= 1.0 / delta) <= delta


def test_uniform_draws_that_are_bet_on_as_weighted_ones_are_caught():
    assert abs(np.mean([path[-1] for path in weighted_paths(1)]) - 1.0) > 0.005


def test_examples_are_drawn_as_their_weights_say():
    """Each order of three: exact probabilities against 4 000 draws; false alarm below 1e-6 for all six."""
    weights, rng = np.array([3.0, 1.0, 2.0]), np.random.default_rng(3)
    drawn = [tuple(draw_weighted(np.arange(3), weights, 3, rng).tolist()) for _ in range(4_000)]
    for order in permutations(range(3)):
        chance = probability(order, weights)
        assert abs(drawn.count(order) / 4_000 - chance) < 5.2 * np.sqrt(chance * (1.0 - chance) / 4_000)


def least_wealths(orders, scores, choose):
    """Tests of the least mean alone: after each draw the scores seen choose the group of the next one."""
    evidence, left, wealths = new_evidence(HALVES, 0.0), [list(order) for order in orders], []
    seen = []

    def draw():
        group = int(choose(seen)) if all(left) else int(not left[0])
        example = left[group].pop(0)
        tell(evidence, TESTED, [example], scores)
        seen.append((group, scores[TESTED, example]))

    draw()
    tell(evidence, 0, rest_of(evidence, 0), scores)
    while any(left):
        tell(evidence, 2, rest_of(evidence, 2)[:1], scores)
        draw()
        by_group = evidence._wealths.since_start(HALVES.rows_of(np.array([TESTED])))
        wealths.append((float(evidence.wealths(np.array([TESTED]))[0]), float(by_group.max())))
    return wealths


CHOICES = {
    "in turn": lambda seen: len(seen) % 2,
    "where it was worse": lambda seen: bool(seen) and (seen[-1][1] > 0.35) != seen[-1][0],
    "the first one first": lambda _: 0,
}
HALF_ORDERS = list(product(permutations((0, 2, 4)), permutations((1, 3, 5))))


@pytest.mark.parametrize("name", CHOICES)
def test_the_mean_over_groups_has_a_mean_of_1_whichever_group_is_drawn_from(name):
    paths = [least_wealths(orders, LEVEL, CHOICES[name]) for orders in HALF_ORDERS]
    for level in (1.05, 1.3, np.inf):
        stopped = [next((mean for mean, _ in path if mean >= level), path[-1][0]) for path in paths]
        np.testing.assert_allclose(np.mean(stopped), 1.0, rtol=1e-12)


def test_it_is_below_1_where_one_group_is_better_than_it_need_be():
    paths = [least_wealths(orders, ABOVE, CHOICES["where it was worse"]) for orders in HALF_ORDERS]
    final = np.mean([path[-1][0] for path in paths])
    assert 0.3 < final < 0.99
    assert np.mean([max(mean for mean, _ in path) >= 1.0 / 0.7 for path in paths]) <= 0.7


def test_the_best_wealth_of_all_groups_in_the_place_of_their_mean_is_caught():
    paths = [least_wealths(orders, LEVEL, CHOICES["in turn"]) for orders in HALF_ORDERS]
    assert np.mean([path[-1][1] for path in paths]) > 1.1


def test_a_group_that_is_chosen_after_the_scores_are_seen_is_caught():
    """Of the next draws of both groups the lower one is told."""
    found = []
    for orders in HALF_ORDERS:
        evidence, left = new_evidence(HALVES, 0.0), [list(order) for order in orders]
        tell(evidence, 0, rest_of(evidence, 0), LEVEL)
        for _ in range(2):
            lower = min(left, key=lambda order: LEVEL[TESTED, order[0]])
            tell(evidence, TESTED, [lower.pop(0)], LEVEL)
        found.append(float(evidence.wealths(np.array([TESTED]))[0]))
    assert np.mean(found) > 1.02

"""Every order of tiny tables with constraints: what the wealth of the best arm that meets them comes to."""

from functools import cache
from itertools import permutations

import numpy as np
import pytest

from winnow.algorithms.champion.constraints import Constraints
from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.switch import Mode
from winnow.algorithms.protocols import Batch

FILLED, TESTED, OTHER = 0, 1, 2
SCORES = np.array(
    [
        [1.0, 0.0, 0.9, 0.1],  # is filled, its mean 0.5
        [0.7, 1.0, 0.1, 0.2],  # is as good, and tested
        [0.1, 1.0, 0.9, 0.9],  # told now and then: a control
    ]
)
VALUES = np.array(
    [
        [[1.0, 1.0, 1.0, 0.5], [0.3, 1.0, 0.0, 0.7], [1.0, 1.0, 1.0, 1.0]],
        [[0.9, 0.6, 0.5, 0.5], [0.0, 0.6, 0.6, 0.4], [0.2, 0.0, 0.0, 0.3]],
    ]
)
"""Shape (J, K, N): of the tested arm means of 0.5 and 0.4."""
AT_LEAST = np.array([0.5, 0.4])
ORDERS = list(permutations(range(4)))


def new_evidence(at_least):
    return Evidence(3, 4, Mode(0.0, 1, leaves=True), level=np.inf, epsilon=0.0, at_least=at_least)


def rest_of(evidence, arm):
    told = evidence.draws.history(np.array([arm])).examples if evidence.draws.count[arm] else []
    return np.setdiff1d(np.arange(4), told)


def tell(evidence, arm, examples, scores, values):
    arms, examples = np.full(len(examples), arm), np.array(examples)
    untold = np.isin(np.arange(4), rest_of(evidence, arm))
    evidence.constraints.tell(Batch(arms, examples), values[:, arm, examples].T)
    evidence.tell(Grouped.of(arms, examples, scores[arm, examples]), untold[np.newaxis])


def wealths_of(order, scores=SCORES, values=VALUES, at_least=AT_LEAST):
    """What the tested arm's wealth is once a row is filled; scores that were seen say how many are drawn."""
    evidence, left, found = new_evidence(at_least), list(order), []
    tell(evidence, TESTED, [left.pop(0)], scores, values)
    tell(evidence, FILLED, rest_of(evidence, FILLED), scores, values)
    last = scores[TESTED, order[0]]
    while left:
        tell(evidence, OTHER, rest_of(evidence, OTHER)[:1], scores, values)
        size = 2 if last < 0.6 else 1
        tell(evidence, TESTED, left[:size], scores, values)
        last = scores[TESTED, left[:size][-1]]
        del left[:size]
        found.append(float(evidence.wealths(np.array([TESTED]))[0]))
    return found


@cache
def paths():
    return [wealths_of(order) for order in ORDERS]


def final(**table):
    return np.mean([wealths_of(order, **table)[-1] for order in ORDERS])


def test_the_tested_arm_is_as_good_as_the_filled_one_and_meets_the_constraints_by_nothing():
    np.testing.assert_allclose(SCORES[:2].mean(axis=1), 0.5)
    np.testing.assert_allclose(VALUES[:, TESTED].mean(axis=1), AT_LEAST)
    assert (VALUES[:, FILLED].mean(axis=1) >= AT_LEAST).all()


def test_the_best_that_meets_the_constraints_has_a_mean_wealth_of_1_whenever_it_is_stopped():
    for level in (0.9, 1.05, 1.2, np.inf):
        stopped = [next((wealth for wealth in path if wealth >= level), path[-1]) for path in paths()]
        assert np.std(stopped) > 0.01
        # What rounding may take off, 1e-9 of a mean, is in its favour.
        np.testing.assert_allclose(np.mean(stopped), 1.0, rtol=1e-7)


@pytest.mark.parametrize("delta", [0.8, 0.6])
def test_it_is_ever_ruled_out_with_probability_delta_at_most(delta):
    assert np.mean([max(path) >= 1.0 / delta for path in paths()]) <= delta


def test_it_is_below_1_where_the_arm_is_better_than_it_need_be():
    better = VALUES.copy()
    better[0, TESTED] = [0.9, 1.0, 0.8, 0.7]
    assert 0.5 < final(values=better) < 0.99
    scores = SCORES.copy()
    scores[TESTED, 2] = 0.8
    assert 0.5 < final(scores=scores) < 0.99


def test_whatever_a_value_that_is_missing_would_have_been_it_is_below_1():
    hidden = VALUES.copy()
    hidden[0, TESTED, 2] = hidden[1, TESTED, 0] = np.nan  # they are the lowest
    assert 0.2 < final(values=hidden) < 0.99


def test_before_a_row_is_filled_the_bets_on_constraints_alone_count():
    found = []
    for order in ORDERS:
        evidence = new_evidence(AT_LEAST)
        for example in order:
            tell(evidence, TESTED, [example], SCORES, VALUES)
            if len(rest_of(evidence, TESTED)) == 1:  # its row, once filled, would be the champion's
                break
        found.append(float(evidence.wealths(np.array([TESTED]))[0]))
    assert np.std(found) > 0.01
    np.testing.assert_allclose(np.mean(found), 2.0 / 3.0, rtol=1e-7)


def test_a_constraint_that_one_failure_breaks_costs_nothing():
    """All values have to be 1: an arm that meets this has the wealth that it has without constraints."""
    for order in ORDERS[::5]:
        plain = wealths_of(order, values=VALUES[:0], at_least=None)
        assert wealths_of(order, values=np.ones((1, 3, 4)), at_least=np.ones(1)) == plain


def test_the_largest_wealth_in_the_place_of_the_average_is_caught(monkeypatch):
    def largest(self, arms, wealths):
        return np.max([wealths, *(each.wealths.since_start(arms) for each in self)], axis=0)

    monkeypatch.setattr(Constraints, "averaged", largest)
    assert final() > 1.1


def test_a_filled_row_that_misses_a_constraint_raises_nothing_and_is_caught_where_it_does(monkeypatch):
    scores = SCORES.copy()
    scores[FILLED, 1] = 1.0  # higher by 0.25
    values = VALUES.copy()
    values[1, FILLED] = 0.2
    evidence = new_evidence(AT_LEAST)
    tell(evidence, FILLED, list(range(4)), scores, values)
    assert evidence.champion is None
    assert evidence.is_out.tolist() == [True, False, False]
    # In the end the tested arm's own row is the first that is filled and meets them.
    np.testing.assert_allclose(final(scores=scores, values=values), 1.0, rtol=1e-7)
    monkeypatch.setattr(Constraints, "are_met", np.ones(3, dtype=bool))
    assert final(scores=scores, values=values) > 1.1

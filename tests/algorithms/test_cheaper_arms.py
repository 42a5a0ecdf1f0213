"""Champion with `prefer: cost`: the best arm, then the cheapest that is good enough."""

import numpy as np
import pytest
from failure_rates import fails_too_often
from selector_worlds import BestMeanWorld

from winnow.algorithms.champion.cheaper_arms import Thrift
from winnow.algorithms.claims import Claim
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import Batch, round_rng


def shares(n_examples, *counts, seed=0, noise=0.0):
    """Arms that are right on so many examples, mostly on the same ones; some are flipped in pairs."""
    rng = np.random.default_rng(seed)
    world = BestMeanWorld(n_arms=len(counts), n_examples=n_examples)
    order = rng.permutation(n_examples)
    world.scores = np.array([order < count for count in counts], dtype=float)
    for row in world.scores:
        size = int(noise * n_examples)
        right, wrong = (rng.permutation(np.flatnonzero(row == value))[:size] for value in (1.0, 0.0))
        size = min(len(right), len(wrong))
        row[right[:size]], row[wrong[:size]] = 0.0, 1.0
    return world


def played(world, costs, **params):
    given = {"delta": 0.1, "epsilon": 0.2, "batch_size": 16, "prefer": "cost", "start": "champion"}
    given["costs"] = np.array(costs)
    selector = world.selector("champion", **(given | params))
    return selector, [batch for batch, _ in world.rounds(selector)]


def test_the_cheapest_arm_that_is_good_enough_is_chosen_beside_the_best():
    world = shares(400, 300, 296, 294, 240, noise=0.05)
    selector, batches = played(world, [4.0, 3.0, 2.0, 1.0])
    decision = selector.decision()
    assert decision.status[0] == "best"
    assert decision.status[2] == "chosen"
    assert (decision.best, decision.reason) == (0, "confident")
    assert decision.claim == Claim(kind="proven", delta=0.1)
    assert sum(map(len, batches)) < 0.7 * world.scores.size


def test_where_no_cheaper_arm_is_good_enough_only_the_best_is_named():
    decision = played(shares(300, 270, 100, 60), [3.0, 2.0, 1.0])[0].decision()
    assert "chosen" not in decision.status
    assert (decision.best, decision.reason) == (0, "confident")
    assert decision.claim == Claim(kind="proven", delta=0.05)


def test_where_the_best_is_the_cheapest_nothing_more_is_asked():
    world = shares(300, 270, 100, 60)
    cheapest = sum(map(len, played(world, [1.0, 2.0, 3.0])[1]))
    alike = sum(map(len, played(world, [1.0, 1.0, 1.0])[1]))
    assert cheapest == alike


def test_a_budget_that_ends_before_an_arm_is_chosen_keeps_the_best_one():
    world = shares(400, 300, 296, 294, 200, noise=0.05)
    spent = sum(map(len, played(world, [4.0, 3.0, 2.0, 1.0])[1]))
    decision = played(world, [4.0, 3.0, 2.0, 1.0], budget=spent - 20)[0].decision()
    assert (decision.best, decision.reason, decision.status[0]) == (0, "budget", "best")
    assert "chosen" not in decision.status
    assert decision.claim == Claim(kind="proven", delta=0.05)


def test_a_fresh_selector_that_is_told_the_same_goes_on_in_the_same_way():
    world = shares(300, 220, 216, 214, 100, noise=0.05)
    given = {"delta": 0.1, "epsilon": 0.2, "batch_size": 16, "prefer": "cost", "start": "champion"}
    given["costs"] = np.array([4.0, 3.0, 2.0, 1.0])
    selector = world.selector("champion", **given)
    history = list(world.rounds(selector))
    assert "chosen" in selector.decision().status
    for told in range(0, len(history), 3):
        fresh = world.selector("champion", **given)
        for batch, outcomes in history[:told]:
            fresh.tell(batch, outcomes)
        assert fresh.ask(round_rng(7, told)) == history[told][0]


def test_a_row_that_no_test_filled_is_filled_before_cheaper_arms_are_tested():
    world = shares(60, 58, 10, 5)
    selector = played(world, [3.0, 2.0, 1.0], start="race")[0]
    assert selector._matrix.told[0] == 60
    assert selector.decision().status[0] == "best"


def test_no_arms_are_added_to_those_whose_costs_were_fixed():
    selector = shares(60, 58, 10).selector(
        "champion", delta=0.1, epsilon=0.1, prefer="cost", costs=np.ones(2)
    )
    with pytest.raises(InvalidParameter, match="prefer must be 'mean' if arms are added"):
        selector.add_arms(1)


def test_an_arm_that_is_dropped_on_the_way_is_not_chosen():
    world = shares(400, 300, 296, 294, 240, noise=0.05)
    given = {"delta": 0.1, "epsilon": 0.2, "batch_size": 16, "prefer": "cost", "start": "champion"}
    selector = world.selector("champion", costs=np.array([4.0, 3.0, 1.0, 2.0]), **given)
    for _ in world.rounds(selector):
        if selector._thrift.has_begun:
            world.scores[2] = np.nan
    assert selector.decision().status[:2] == ("best", "chosen")


def test_an_arm_that_rounds_in_flight_drop_once_it_was_chosen_is_not_chosen_any_more():
    world = shares(400, 300, 296, 294, 240, noise=0.05)
    given = {"delta": 0.1, "epsilon": 0.2, "batch_size": 16, "prefer": "cost", "start": "champion"}
    given["max_unscored"] = 0.1
    selector = world.selector("champion", costs=np.array([4.0, 3.0, 1.0, 2.0]), **given)
    list(world.rounds(selector))
    assert selector.decision().status[2] == "chosen"
    untold = np.flatnonzero(selector._matrix.untold(np.array([2]))[0])[:80]
    selector.tell(Batch(np.full(len(untold), 2), untold), np.full(len(untold), np.nan))
    assert selector.decision().status[2] == "dropped"
    assert selector.decision().claim == Claim(kind="proven", delta=0.05)
    assert not selector.decision().stop
    list(world.rounds(selector))
    assert selector.decision().status == ("best", "chosen", "dropped", "not-better")
    assert selector.decision().claim == Claim(kind="proven", delta=0.1)


def test_nothing_cheaper_is_tested_where_so_many_were_dropped_that_nothing_could_be_stated():
    """At (3 + 1) delta / 2 for the best and delta / 2 for the cheaper one a delta of 0.4 comes to 1."""
    world = shares(200, 170, 160, 20, 20, 20)
    world.scores[2:] = np.nan
    decision = played(world, [2.0, 1.0, 3.0, 3.0, 3.0], delta=0.4)[0].decision()
    assert decision.status == ("best", "not-better", "dropped", "dropped", "dropped")
    assert decision.claim == Claim(kind="proven", delta=0.8, raised_by=("dropped",))
    beside = played(world, [2.0, 1.0, 3.0, 3.0, 3.0], delta=0.3)[0].decision()
    assert beside.status[1] == "chosen"
    assert beside.claim == Claim(kind="proven", delta=0.75, raised_by=("dropped",))


@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"delta": None}, "delta must be set if prefer is 'cost'"),
        ({"epsilon": 0.0}, "epsilon must be above 0 if prefer is 'cost'"),
        ({"costs": None}, "costs must be set if prefer is 'cost'"),
        ({"costs": np.array([1.0, 2.0])}, "costs must be 4 finite numbers"),
        ({"costs": np.array([1.0, 2.0, -1.0, 0.0])}, "costs must be 4 finite numbers"),
    ],
)
def test_what_the_search_needs_is_asked_for(params, told):
    given = {"delta": 0.1, "epsilon": 0.1, "costs": np.ones(4), **params}
    with pytest.raises(InvalidParameter, match=told):
        BestMeanWorld().selector("champion", prefer="cost", **given)


def searched(scores, costs, told, margin, delta, batch_size=8, seed=0):
    """The arm that a search chooses after arm 0 was told in full and the others on `told` examples."""
    n_arms, n = scores.shape
    rng, thrift = np.random.default_rng(seed), Thrift(n, costs, margin, delta)
    orders = [rng.permutation(n) for _ in range(n_arms)]
    sizes = [n] + [told] * (n_arms - 1)
    active = np.ones(n_arms, dtype=bool)

    def tell(arm, examples):
        thrift.tell(Batch(np.full(len(examples), arm), examples), scores[arm, examples], active)

    for arm, size in enumerate(sizes):
        tell(arm, orders[arm][:size])
    thrift.begin(0, active)
    while (arm := thrift.next_arm) is not None:
        tell(arm, orders[arm][sizes[arm] : sizes[arm] + batch_size])
        sizes[arm] += batch_size
    return thrift.chosen


def test_unscored_examples_of_the_best_arm_count_against_those_that_are_cheaper():
    scores = np.array([[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, np.nan], [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]])
    # The best one's mean is 3/8 or 4/8; the other's is 3/8, and good enough at an epsilon of 1/8 and no less.
    assert searched(scores, np.array([2.0, 1.0]), 8, 1 / 16, 0.1) == 1
    assert searched(scores, np.array([2.0, 1.0]), 8, 1 / 17, 0.1) is None


@pytest.mark.statistical
@pytest.mark.parametrize("hides", [False, True])
def test_an_arm_that_is_not_good_enough_is_seldom_chosen(hides):
    def wrong():
        for seed in range(120):
            rng = np.random.default_rng([51, seed])
            truth = rng.permuted(np.arange(60) < np.array([40] + [33] * 5)[:, np.newaxis], axis=1) * 1.0
            scores = truth.copy()
            if hides:
                scores[1:][(truth[1:] == 0.0) & (rng.random((5, 60)) < 0.3)] = np.nan
            costs = np.array([9.0, 1.0, 2.0, 3.0, 4.0, 5.0])
            yield searched(scores, costs, 4 * (seed % 4), 0.1, 0.2, seed=seed) is not None

    assert not fails_too_often(wrong(), 120, 0.2)


@pytest.mark.statistical
def test_tests_that_do_not_share_delta_are_found_out(monkeypatch):
    begin = Thrift._begin_test

    def greedy(self, arm, differences):
        self._level = 1.0 / (2.0 * self.delta)
        begin(self, arm, differences)

    monkeypatch.setattr(Thrift, "_begin_test", greedy)

    def wrong():
        for seed in range(120):
            rng = np.random.default_rng([52, seed])
            scores = rng.permuted(np.arange(60) < np.array([40] + [33] * 15)[:, np.newaxis], axis=1) * 1.0
            yield searched(scores, np.array([99.0, *range(15)]), 0, 0.1, 0.2, seed=seed) is not None

    assert fails_too_often(wrong(), 120, 0.2)

"""What a gate asks, when it stops and what it then says."""

import numpy as np
import pytest
from selector_worlds import BestMeanWorld

from winnow.algorithms.claims import EXACT, NOTHING_CLAIMED, Claim
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import Batch, round_rng


def world_of(*rows):
    world = BestMeanWorld(n_arms=len(rows), n_examples=len(rows[0]))
    world.scores = np.array(rows, dtype=float)
    return world


def shares(n_examples, *counts, seed=0):
    """Arms that are right on so many examples, each on random ones of its own."""
    rng = np.random.default_rng(seed)
    rows = np.arange(n_examples) < np.array(counts)[:, np.newaxis]
    return world_of(*rng.permuted(rows, axis=1))


def played(world, **params):
    selector = world.selector("gate", **params)
    return selector, [batch for batch, _ in world.rounds(selector)]


def test_each_arm_is_called_by_what_was_shown_of_it():
    world = shares(600, 300, 420, 300, 150)
    selector, batches = played(world, delta=0.05, epsilon=0.1, batch_size=16)
    decision = selector.decision()
    assert decision.status[0] == "baseline"
    assert decision.status[1] in ("better", "no-worse")
    assert decision.status[2:] == ("no-worse", "worse")
    assert (decision.reason, decision.claim) == ("confident", Claim(kind="proven", delta=0.05))
    assert sum(map(len, batches)) < 1200


def test_an_arm_far_above_the_baseline_is_better():
    decision = played(shares(400, 20, 380), delta=0.05, epsilon=0.1, batch_size=64)[0].decision()
    assert decision.status == ("baseline", "better")
    assert decision.differences.lower[1] > 0.0


def test_until_better_goes_on_until_an_arm_is_better_or_that_is_in_vain():
    world = shares(400, 200, 260, 195, 100)
    decision, batches = {}, {}
    for until in ("no-worse", "better"):
        params = {"delta": 0.05, "epsilon": 0.2, "batch_size": 32, "until": until}
        selector, batches[until] = played(world, **params)
        decision[until] = selector.decision()
    assert decision["no-worse"].status == ("baseline", "no-worse", "no-worse", "worse")
    assert decision["better"].status == ("baseline", "better", "no-worse", "worse")
    assert sum(map(len, batches["no-worse"])) < sum(map(len, batches["better"])) < world.scores.size
    assert decision["better"].reason == "confident"


def test_the_baseline_may_be_any_arm():
    world = shares(400, 380, 20, 200)
    decision = played(world, delta=0.05, epsilon=0.1, baseline=2, batch_size=64)[0].decision()
    assert decision.status == ("better", "worse", "baseline")
    found = decision.differences
    means = world.scores.mean(axis=1)
    assert (found.against, found.delta) == (2, 0.05)
    assert np.isnan([found.estimates[2], found.lower[2], found.upper[2]]).all()
    assert (found.lower[:2] <= (means - means[2])[:2]).all()
    assert (found.upper[:2] >= (means - means[2])[:2]).all()


@pytest.mark.parametrize("baseline", [-1, 4])
def test_a_baseline_that_is_no_arm_is_refused(baseline):
    with pytest.raises(InvalidParameter, match="baseline must be an arm, from 0 to 3"):
        BestMeanWorld().selector("gate", baseline=baseline)


def test_all_in_question_are_asked_the_same_examples_and_settled_arms_no_more():
    world = shares(300, 150, 10, 140, 150)
    selector = world.selector("gate", delta=0.1, epsilon=0.05, batch_size=12)
    was_settled = np.zeros(4, dtype=bool)
    for batch, _ in world.rounds(selector):
        assert not was_settled[batch.arms].any()
        of_arm = [set(batch.examples[batch.arms == arm].tolist()) for arm in np.unique(batch.arms)]
        assert all(each == of_arm[0] for each in of_arm)
        assert 0 in batch.arms
        was_settled = np.array(
            [status not in ("baseline", "active") for status in selector.decision().status]
        )
    assert was_settled.tolist() == [False, True, True, True]


def test_a_larger_budget_first_fills_up_the_example_at_which_the_smaller_one_ended():
    world = shares(50, 25, 25, 25)
    spent = played(world, delta=0.05, budget=7, batch_size=3)[1]
    larger = world.selector("gate", delta=0.05, budget=50, batch_size=3)
    for batch in spent:
        larger.tell(batch, world.outcomes(batch))
    batch = larger.ask(round_rng(3, 0))
    assert batch.arms.tolist() == [1, 2]
    assert set(batch.examples.tolist()) == {spent[-1].examples[0]}
    larger.tell(batch, world.outcomes(batch))
    assert sorted(larger.ask(round_rng(3, 1)).arms.tolist()) == [0, 1, 2]


def test_what_was_told_of_other_examples_is_asked_of_the_baseline_too():
    world = shares(12, 6, 6)
    selector = world.selector("gate", delta=0.01)
    for pair in (Batch([1], [4]), Batch([0], [7])):
        selector.tell(pair, world.outcomes(pair))
    first = selector.ask(round_rng(0, 0))
    assert (first.arms.tolist(), first.examples.tolist()) == ([1], [7])
    selector.tell(first, world.outcomes(first))
    asked = [batch for batch, _ in world.rounds(selector)]
    on_its_own = [batch.arms.tolist() for batch in asked if 4 in batch.examples]
    assert on_its_own == [[0]]
    assert selector.decision().claim == EXACT


def test_what_is_known_of_every_example_is_exact_and_equal_means_are_no_worse():
    world = world_of([1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 0, 0], [1, 1, 1, 0])
    decision = played(world, delta=0.05)[0].decision()
    assert decision.status == ("baseline", "no-worse", "worse", "better")
    assert (decision.reason, decision.claim) == ("confident", EXACT)
    np.testing.assert_allclose(decision.differences.estimates[1:], [0.0, -0.25, 0.25], atol=1e-12)
    np.testing.assert_allclose(decision.differences.lower[1:], [0.0, -0.25, 0.25], atol=1e-12)


def test_without_delta_only_what_is_certain_is_said():
    world = shares(40, 5, 35)
    selector = world.selector("gate", epsilon=0.1)
    for _ in world.rounds(selector):
        decision = selector.decision()
        assert decision.claim in (NOTHING_CLAIMED, EXACT)
    assert decision.reason == "exhausted"
    assert decision.status == ("baseline", "better")


def test_unscored_pairs_that_could_change_the_answer_leave_it_open():
    world = shares(60, 30, 30)
    world.scores[1, world.scores[1] > 0] *= np.where(np.arange(30) < 6, np.nan, 1.0)
    decision = played(world, delta=0.01, epsilon=0.0)[0].decision()
    assert (decision.status, decision.reason) == (("baseline", "active"), "exhausted")
    assert decision.claim == NOTHING_CLAIMED


def test_a_spent_budget_keeps_what_was_shown():
    world = shares(600, 300, 300, 10)
    decision = played(world, delta=0.05, epsilon=0.01, budget=240, batch_size=24)[0].decision()
    assert (decision.status, decision.reason) == (("baseline", "active", "worse"), "budget")
    assert decision.claim == Claim(kind="proven", delta=0.05)


def test_nobody_can_be_judged_without_the_baseline():
    world = shares(60, 30, 50, 50)
    world.scores[0] = np.nan
    decision = played(world, delta=0.05)[0].decision()
    assert (decision.status[0], decision.reason, decision.best) == ("dropped", "all-dropped", None)
    assert decision.claim == NOTHING_CLAIMED


def test_what_was_shown_before_the_baseline_was_dropped_stays():
    world = shares(400, 200, 0, 200)
    selector = world.selector("gate", delta=0.05, epsilon=0.01, batch_size=15, max_unscored=0.3)
    for _ in world.rounds(selector):
        if selector.decision().status[1] == "worse":
            world.scores[0] = np.nan
    decision = selector.decision()
    assert (decision.status, decision.reason) == (("dropped", "worse", "active"), "exhausted")
    assert decision.claim == Claim(kind="proven", delta=0.05)


def test_a_dropped_arm_is_left_out_and_the_others_are_settled():
    world = shares(400, 100, 390, 200)
    world.scores[2] = np.nan
    decision = played(world, delta=0.05, epsilon=0.1, batch_size=12)[0].decision()
    assert decision.status[0::2] == ("baseline", "dropped")
    assert decision.status[1] in ("better", "no-worse")
    assert decision.reason == "confident"


def test_who_leads_is_nobody_that_was_shown_to_be_worse():
    world = shares(300, 290, 20)
    decision = played(world, delta=0.05, epsilon=0.1, batch_size=16)[0].decision()
    assert (decision.best, decision.status) == (0, ("baseline", "worse"))

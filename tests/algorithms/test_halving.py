"""Sequential halving and successive rejects: schedules by hand and literally, and what they find."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from selector_worlds import BestMeanWorld

from winnow.algorithms.best_mean.baselines.halving import rejection_target
from winnow.algorithms.claims import HEURISTIC
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector

NAN = np.nan
SCHEDULES = ("halving", "rejects")


def steps(scores, budget, batch_size=1_000, seed=0, schedule="halving"):
    """Which arms are asked how many examples each, part by part, and who is recommended."""
    world = BestMeanWorld(*scores.shape)
    world.scores = scores
    selector = world.selector("halving", budget=budget, batch_size=batch_size, schedule=schedule)
    parts = []
    for batch, _ in world.rounds(selector, seed=seed):
        arms, counts = np.unique(batch.arms, return_counts=True)
        parts.append((set(arms.tolist()), set(counts.tolist())))
    return parts, selector.decision()


def constant(*means, n_examples=60):
    return np.tile(np.array(means)[:, np.newaxis], (1, n_examples))


def test_the_budget_is_divided_by_halvings_and_arms_and_half_of_these_go_on():
    # 96 over 3 halvings: 32 over 8 arms; 64 over 2: 32 over 4; 32 over 2 arms.
    means = 0.1, 0.8, 0.3, 0.4, 0.5, 0.6, 0.7, 0.2
    parts, decision = steps(constant(*means), 96)
    assert parts == [(set(range(8)), {4}), ({1, 4, 5, 6}, {8}), ({1, 6}, {16})]
    assert (decision.best, decision.reason, decision.claim) == (1, "budget", HEURISTIC)
    np.testing.assert_allclose(decision.ranking, np.array([0, 3, 0, 0, 1, 1, 2, 0]) + means)


def test_of_an_odd_number_the_larger_half_goes_on_and_of_equal_arms_those_listed_first():
    # 60 over 3 halvings of 5 arms: 4 each; 40 over 2 of 3: 6 each; 22 over 2: 11 each.
    parts, decision = steps(constant(0.5, 0.5, 0.5, 0.5, 0.5), 60)
    assert parts == [(set(range(5)), {4}), ({0, 1, 2}, {6}), ({0, 1}, {11})]
    assert decision.best == 0


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_all_arms_that_are_in_are_asked_the_same_examples_whole_examples_at_a_time(schedule):
    world = BestMeanWorld(n_arms=6, n_examples=40)
    selector = world.selector("halving", budget=100, batch_size=13, schedule=schedule)
    asked = {arm: set() for arm in range(6)}
    for batch, _ in world.rounds(selector):
        of_arms = [set(batch.examples[batch.arms == arm]) for arm in np.unique(batch.arms)]
        assert len(batch) <= 13
        if len(of_arms) > 1 and len(batch) % len(of_arms) == 0:
            assert all(examples == of_arms[0] for examples in of_arms)
        for arm, examples in zip(batch.arms.tolist(), batch.examples.tolist(), strict=True):
            asked[arm].add(examples)
    assert sum(map(len, asked.values())) == 100


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_budget_for_less_than_an_example_of_all_is_spent_all_the_same(schedule):
    parts, decision = steps(constant(0.2, 0.9, 0.4), 2, schedule=schedule)
    assert [len(arms) for arms, _ in parts] == [2]
    assert decision.reason == "budget"


def test_what_the_halvings_leave_is_spent_on_those_that_went_on_longest():
    # 18 pairs over 2 halvings of 4 arms: 2 each; the rows of the two that go on end after 3 more.
    parts, decision = steps(constant(0.2, 0.9, 0.4, 0.6, n_examples=5), 18)
    assert parts[:2] == [(set(range(4)), {2}), ({1, 3}, {3})]
    assert set().union(*(arms for arms, _ in parts[2:])) <= {0, 2}
    assert (decision.best, decision.reason) == (1, "budget")


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_arm_that_is_dropped_goes_on_no_more_and_unscored_examples_are_in_no_mean(schedule):
    scores = constant(0.5, 0.6, 0.9, 0.4)
    scores[2] = NAN
    scores[1, ::8] = NAN
    parts, decision = steps(scores, 120, schedule=schedule)
    assert decision.best == 1
    assert decision.status[2] == "dropped"
    assert all(2 not in arms for arms, _ in parts[1:])


def test_with_a_larger_budget_the_same_batches_are_followed_by_others():
    world = BestMeanWorld(n_arms=8, n_examples=60)
    world.scores = constant(0.1, 0.2, 0.3, 0.4, 0.8, 0.7, 0.6, 0.5)
    history = list(world.rounds(world.selector("halving", budget=64, batch_size=16)))
    larger = world.selector("halving", budget=200, batch_size=16)
    for batch, outcomes in history:
        larger.tell(batch, outcomes)
    assert sum(len(batch) for batch, _ in history) == 64
    assert sum(len(batch) for batch, _ in world.rounds(larger)) == 136
    assert larger.decision().best == 4


def test_scores_of_a_part_may_come_late():
    selector = create_selector(
        "halving", n_arms=4, n_examples=50, budget=64, batch_size=16, schedule="halving"
    )
    first, second = (selector.ask(round_rng(0, t)) for t in range(2))
    third = selector.ask(round_rng(0, 2))
    assert [len(set(batch.arms)) for batch in (first, second, third)] == [4, 4, 4]
    for batch in (first, second):
        selector.tell(batch, batch.arms / 4)
    assert set(selector.ask(round_rng(0, 3)).arms) == {2, 3}
    selector.tell(third, third.arms / 4)
    assert selector.decision().best == 3


def test_rejects_give_up_the_worst_arm_after_each_phase():
    # 60 pairs: 9, 12 and 18 examples would take 57 of them (c = 36). Of the 24 that are left after the first
    # phase, 13 and 19 take all (c = 38).
    parts, decision = steps(constant(0.1, 0.8, 0.3, 0.9), 60, schedule="rejects")
    assert parts == [(set(range(4)), {9}), ({1, 2, 3}, {4}), ({1, 3}, {6})]
    assert (decision.best, decision.reason, decision.claim) == (3, "budget", HEURISTIC)
    np.testing.assert_allclose(decision.ranking, [0.1, 2.8, 1.3, 3.9])


def published(n_arms, budget):
    """Examples of each arm at the end of each phase, by the formula of Audibert and Bubeck (2010)."""
    log_bar = 0.5 + sum(1.0 / j for j in range(2, n_arms + 1))
    return [math.ceil((budget - n_arms) / log_bar / j) for j in range(n_arms, 1, -1)]


def planned(n_arms, n_examples, budget):
    """The same of the selector's schedule, and the pairs that it takes."""
    told, left, found = 0, budget, []
    for j in range(n_arms, 1, -1):
        target = rejection_target(j, told, n_examples, left)
        left -= j * (target - told)
        told = target
        found.append(told)
    return found, budget - left


@tries(100)
@given(st.integers(2, 40), st.integers(1, 50), st.integers(0, 30))
def test_rejects_follow_the_published_schedule_and_spend_what_it_leaves(n_arms, of_each, rest):
    budget = n_arms * of_each + rest
    found, spent = planned(n_arms, 10**6, budget)
    assert all(mine >= theirs for mine, theirs in zip(found, published(n_arms, budget), strict=True))
    assert budget - n_arms < spent <= budget
    assert found == sorted(found)


@tries(100)
@given(st.integers(2, 30), st.integers(1, 40), st.floats(0.0, 1.0))
def test_rejects_never_ask_more_than_the_budget_or_an_example_twice(n_arms, n_examples, share):
    budget = max(n_arms, round(share * n_arms * n_examples))
    found, spent = planned(n_arms, n_examples, budget)
    assert found[-1] <= n_examples
    assert spent <= budget
    assert found[0] == n_examples if share == 1.0 else spent > budget - n_arms or found[-1] == n_examples


def literally(scores, budget):
    """The arm that survives if the lowest mean of the first examples is rejected, phase by phase."""
    arms, told, left = list(range(len(scores))), 0, budget
    while len(arms) > 1:
        c = 0
        while True:  # the largest c that the budget allows, one by one
            ends = [
                max(told, 1, min(scores.shape[1], math.ceil((c + 1) / j))) for j in range(len(arms), 1, -1)
            ]
            sizes = range(len(arms), 1, -1)
            cost = sum(j * (end - before) for j, end, before in zip(sizes, ends, [told, *ends], strict=False))
            if cost > left or c > scores.size:
                break
            c += 1
        end = max(told, 1, min(scores.shape[1], math.ceil(c / len(arms))))
        left -= len(arms) * (end - told)
        told = end
        means = {arm: scores[arm, :told].mean() for arm in arms}
        arms.remove(min(arms, key=lambda arm: (means[arm], -arm)))
    return arms[0]


@pytest.mark.parametrize("seed", range(12))
def test_rejects_name_what_the_schedule_followed_literally_names(seed):
    rng = np.random.default_rng([9, seed])
    n_arms, n_examples = int(rng.integers(2, 12)), int(rng.integers(10, 40))
    scores = rng.random((n_arms, n_examples)).round(1)
    budget = int(rng.integers(n_arms, n_arms * n_examples))
    selector = create_selector(
        "halving", n_arms=n_arms, n_examples=n_examples, budget=budget, batch_size=1_000, schedule="rejects"
    )
    order, played = [], 0  # examples in the order in which arms were asked them together
    while len(batch := selector.ask(round_rng(seed, played))):
        order += [each for each in dict.fromkeys(batch.examples.tolist()) if each not in order]
        selector.tell(batch, scores[batch.arms, batch.examples])
        played += 1
    rest = [each for each in range(n_examples) if each not in order]
    assert selector.decision().best == literally(scores[:, order + rest], budget)


@pytest.mark.parametrize(("n_arms", "n_examples"), [(2, 30), (5, 100), (20, 1_000), (100, 300)])
def test_by_default_arms_are_rejected_from_the_budget_that_completes_two_rows(n_arms, n_examples):
    def schedule(budget):
        return create_selector("halving", n_arms=n_arms, n_examples=n_examples, budget=budget).schedule

    least = next(each for each in range(n_arms * n_examples) if schedule(each + 1) == "rejects") + 1
    assert planned(n_arms, n_examples, least)[0][-1] == n_examples
    assert planned(n_arms, n_examples, least - n_arms)[0][-1] < n_examples
    log_bar = 0.5 + sum(1.0 / j for j in range(2, n_arms + 1))
    assert least == pytest.approx(2 * n_examples * log_bar, rel=0.1)
    assert schedule(None) == "rejects"


def right(name, budget, tables=60, **params):
    """In how many tables, of 24 arms with correlated scores of which one is better, the best one is found."""
    found = 0
    for seed in range(tables):
        rng = np.random.default_rng([41, seed])
        chances = np.clip(0.5 + 0.3 * rng.standard_normal(400), 0.02, 0.98)
        means = np.concatenate([[0.12], rng.uniform(-0.3, 0.0, 23)])
        scores = (rng.random((24, 400)) < np.clip(chances + means[:, np.newaxis], 0, 1)).astype(float)
        selector = create_selector(
            name, n_arms=24, n_examples=400, budget=budget, batch_size=24, intervals=False, **params
        )
        played = 0
        while len(batch := selector.ask(round_rng(seed, played))):
            selector.tell(batch, scores[batch.arms, batch.examples])
            played += 1
        found += selector.decision().best == scores.mean(axis=1).argmax()
    return found / tables


@pytest.mark.statistical
def test_with_a_small_budget_it_finds_the_best_arm_more_often_than_uniform_pairs():
    # 0.97 against 0.60 of 60: less than 0.1 apart would be four standard errors off.
    assert right("halving", 600) > right("row-mean", 600) + 0.1


@pytest.mark.statistical
def test_rejects_find_the_best_arm_with_a_small_budget_too():
    assert right("halving", 600, schedule="rejects") > right("row-mean", 600) + 0.1

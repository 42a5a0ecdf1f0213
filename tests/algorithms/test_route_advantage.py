"""What routing brings over one arm: the interval by enumeration, by definition, and as arms are chosen."""

import itertools
import math
from copy import deepcopy
from itertools import islice

import numpy as np
import pytest
from failure_rates import fails_too_often
from scipy.optimize import brentq
from selector_worlds import RouteWorld

from winnow.algorithms.errors import MalformedBatch
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import selector_names
from winnow.algorithms.route.advantage import N_BETS, STAKED, AdvantageRecord
from winnow.algorithms.route.protocol import RoutedBatch

EXPLORE, DELTA = 0.3, 0.2


def record(n_arms=3, explore=EXPLORE, delta=DELTA, max_unscored=0.5):
    return AdvantageRecord(n_arms, explore=explore, delta=delta, max_unscored=max_unscored)


def propensities_of(sums, counts, n_arms, explore):
    """What a router that is greedy by the means so far gives each arm: it learns, and is often wrong."""
    chances = np.full(n_arms, explore / n_arms)
    chances[int((sums / (counts + 1)).argmax())] += 1.0 - explore
    return chances


def played(scores, explore, rng):
    """Arms, scores and propensities of a greedy router on a table of scores, shape (K, T), and the truth.

    Every other prompt is of another type, and it has means of each: so the prompts that an arm was given are
    those that it is good at. The truth, shape (T, K), is how much more it scores than each arm.
    """
    n_arms, n_prompts = scores.shape
    sums, counts = np.zeros((2, n_arms)), np.zeros((2, n_arms))
    arms, chances, truths = np.empty(n_prompts, dtype=np.int64), np.empty(n_prompts), []
    for t in range(n_prompts):
        p = propensities_of(sums[t % 2], counts[t % 2], n_arms, explore)
        arm = int(np.searchsorted(p.cumsum(), rng.random() * p.sum(), side="right"))
        arms[t], chances[t] = arm, p[arm]
        truths.append(p @ scores[:, t] - scores[:, t])
        sums[t % 2, arm] += scores[arm, t]
        counts[t % 2, arm] += 1
    return arms, scores[arms, np.arange(n_prompts)], chances, np.array(truths)


def test_over_all_that_could_be_drawn_differences_are_unbiased_and_capital_does_not_grow_on_average():
    rng = np.random.default_rng(0)
    scores = rng.uniform(-1.0, 1.0, (3, 4))
    sums, truths, capital, total = np.zeros(3), np.zeros(3), np.zeros((2, 3, N_BETS)), 0.0
    for arms in itertools.product(range(3), repeat=4):
        told, chance, thetas = record(), 1.0, np.zeros(3)
        seen, counts, chances = np.zeros(3), np.zeros(3), []
        for t, arm in enumerate(arms):
            p = propensities_of(seen, counts, 3, EXPLORE)
            thetas += p @ scores[:, t] - scores[:, t]
            chance *= p[arm]
            chances.append(p[arm])
            seen[arm] += scores[arm, t]
            counts[arm] += 1
        told.tell(np.array(arms), scores[list(arms), range(4)], np.array(chances))
        signs = np.array([1.0, -1.0])[:, np.newaxis, np.newaxis]
        total += chance
        sums += chance * told._sums
        truths += chance * thetas
        capital += chance * np.exp(told._log_capital - signs * told._bets * thetas[:, np.newaxis])
    assert total == pytest.approx(1.0)
    np.testing.assert_allclose(sums, truths, atol=1e-12)
    assert (capital <= 1.0 + 1e-12).all()
    assert (capital > 0.8).all()


def literal(arms, scores, chances, n_arms, explore, delta):
    """Estimates and ends of every arm, prompt by prompt and root by root."""
    largest = 2.0 * max(1.0, n_arms / explore - 1.0)
    bets = [STAKED / largest / 2.0**j for j in range(N_BETS)]
    level = delta / (n_arms + 1) / 2.0
    found = []
    for a in range(n_arms):
        seen, z = {b: [] for b in range(n_arms)}, []
        for arm, score, chance in zip(arms.tolist(), scores.tolist(), chances.tolist(), strict=True):
            m = sum(seen[a]) / (len(seen[a]) + 1)
            z.append(score - (m + ((score - m) / chance if arm == a else 0.0)))
            seen[arm].append(score)
        ends = []
        for sign in (1.0, -1.0):

            def excess(total, sign=sign, z=z):
                capital = [
                    math.prod(1.0 + bet * sign * each for each in z) * math.exp(-bet * total) for bet in bets
                ]
                return math.log(sum(capital) / len(capital)) - math.log(1.0 / level)

            ends.append(sign * brentq(excess, -3e3, 3e3, xtol=1e-9) / len(z))
        found.append((sum(z) / len(z), *ends))
    return np.array(found)


def test_the_interval_is_that_of_the_definition():
    rng = np.random.default_rng(1)
    table = np.clip(rng.normal([[0.3], [0.0], [-0.2]], 0.5, (3, 400)), -1.0, 1.0)
    arms, scores, chances, _ = played(table, EXPLORE, rng)
    told = record()
    told.tell(arms, scores, chances)
    wanted = literal(arms, scores, chances, 3, EXPLORE, DELTA)
    found = told.advantage()
    single = wanted[:, 0].argmin()
    assert (found.single, found.delta) == (single, DELTA)
    assert found.estimate == pytest.approx(wanted[:, 0].min(), abs=1e-12)
    assert found.lower == pytest.approx(max(wanted[:, 1].min(), -2.0), abs=1e-7)
    assert found.upper == pytest.approx(min(wanted[:, 2].min(), 2.0), abs=1e-7)
    assert found.lower > -2.0


def test_batches_make_no_difference_and_the_estimate_lies_between_the_ends():
    rng = np.random.default_rng(2)
    table = rng.choice([-1.0, 1.0], (3, 300), p=[0.4, 0.6])
    arms, scores, chances, _ = played(table, EXPLORE, rng)
    scores[::17] = np.nan
    whole, one_by_one = record(), record()
    for t in range(300):
        one = slice(t, t + 1)
        one_by_one.tell(arms[one], scores[one], chances[one])
        found = one_by_one.advantage()
        assert -2.0 <= found.lower <= found.estimate <= found.upper <= 2.0
    whole.tell(arms, scores, chances)
    assert whole.advantage() == found


def test_with_unscored_prompts_the_interval_holds_that_of_every_completion():
    rng = np.random.default_rng(3)
    table = rng.uniform(-1.0, 1.0, (2, 40))
    arms, scores, chances, _ = played(table, EXPLORE, rng)
    missing = [5, 11, 30]
    holed = scores.copy()
    holed[missing] = np.nan
    told = record(n_arms=2, max_unscored=1.0)
    told.tell(arms, holed, chances)
    whole = told.advantage()
    for values in itertools.product([-1.0, 0.0, 1.0], repeat=3):
        filled = scores.copy()
        filled[missing] = values
        other = record(n_arms=2)
        other.tell(arms, filled, chances)
        found = other.advantage()
        # Scores that are known change what is predicted of later prompts, and so the ends a little.
        assert whole.lower <= found.lower + 0.05
        assert whole.upper >= found.upper - 0.05
    complete = record(n_arms=2)
    complete.tell(arms, scores, chances)
    assert whole.upper - whole.lower > complete.advantage().upper - complete.advantage().lower


def test_an_arm_without_scores_is_compared_no_more_and_one_that_comes_later_since_then():
    told = record(n_arms=2, explore=1.0, max_unscored=0.3)
    half = np.array([0, 1] * 8)
    told.tell(half, np.where(half == 1, np.nan, 0.5), np.full(16, 0.5))
    assert told.eligible.tolist() == [True, False]
    assert told.advantage().single == 0
    told.add_arm()
    told.tell(np.array([0, 2] * 40), np.tile([0.5, 1.0], 40), np.full(80, 0.5))
    found = told.advantage()
    assert found.single == 2
    # What it scores on the first prompts is not known: over the 80 others routing has 0.75 and it has 1.
    assert found.estimate == pytest.approx(-0.25, abs=0.05)
    told.remove_arm(2)
    assert told.advantage().single == 0


def test_prompts_asked_before_an_arm_came_are_not_compared_with_it():
    world = RouteWorld(n_arms=3, n_examples=200)
    early, late = (world.selector("pak-ucb", explore=0.5) for _ in range(2))
    for selector, first in ((early, True), (late, False)):
        batch = selector.ask(round_rng(0, 0), world.contexts[:40])
        if first:
            selector.add_arm()
        selector.tell(batch, world.outcomes(batch))
        if not first:
            selector.add_arm()
        assert selector._advantage._counts.tolist() == [40, 40, 40, 0]
    assert early.advantage() == late.advantage()


def rest_of(batch, removed):
    """What is told of a batch whose arm was removed."""
    left = batch.arms != removed
    return RoutedBatch(
        batch.arms[left],
        batch.examples[left],
        batch.contexts[left],
        propensities=batch.propensities[left],
        changes=batch.changes,
    )


@pytest.mark.parametrize("name", ["pak-ucb", "random"])
def test_prompts_in_flight_when_an_arm_is_removed_take_no_part_and_telling_alone_gives_the_same(name):
    world = RouteWorld(n_arms=4, n_examples=400)
    live, told_alone, patient = (world.selector(name, explore=0.5, delta=0.3) for _ in range(3))
    batches = [live.ask(round_rng(0, t), world.contexts[20 * t : 20 * t + 20]) for t in range(3)]
    assert all((batch.arms == 2).any() for batch in batches[1:])
    for selector in (live, told_alone, patient):
        selector.tell(batches[0], world.outcomes(batches[0]))
        selector.remove_arm(2)
    for selector in (live, told_alone):
        for batch in batches[1:]:
            rest = rest_of(batch, 2)
            selector.tell(rest, world.outcomes(rest))
    assert live._advantage._counts.tolist() == [20, 20, 20, 20]
    for selector in (live, told_alone):
        later = selector.ask(round_rng(0, 3), world.contexts[60:80])
        assert later.examples[0] == batches[1].examples[batches[1].arms == 2][0]
        selector.tell(later, world.outcomes(later))
    assert live._advantage._counts.tolist() == [40, 40, 20, 40]
    assert live.advantage() == told_alone.advantage()
    assert live.decision() == told_alone.decision()
    last = [each.ask(round_rng(0, 4), world.contexts[80:100]) for each in (live, told_alone)]
    assert last[0] == last[1]
    # Scores of the rest are learned from all the same.
    assert patient.decision() != live.decision()


def test_an_arm_that_comes_while_prompts_are_in_flight_is_known_to_have_come_later_by_telling_alone():
    world = RouteWorld(n_arms=3, n_examples=200)
    live, told_alone = (world.selector("pak-ucb", explore=0.5) for _ in range(2))
    batch = live.ask(round_rng(0, 0), world.contexts[:40])
    for selector in (live, told_alone):
        selector.add_arm()
        selector.tell(batch, world.outcomes(batch))
        assert selector._advantage._counts.tolist() == [40, 40, 40, 0]
    assert live.advantage() == told_alone.advantage()


@pytest.mark.parametrize(("n_known", "is_fair"), [(0, True), (None, False)])
def test_over_all_draws_prompts_asked_before_a_removal_would_bias_the_differences(n_known, is_fair):
    scores = np.array([[0.5, -0.4, 0.3, 0.2], [-0.1, 0.8, 0.1, -0.6], [-0.9, -0.7, 0.0, 0.0]])
    sums, truth = np.zeros(2), np.zeros(2)
    for first in itertools.product(range(3), repeat=2):
        for then in itertools.product(range(2), repeat=2):
            told, chance = record(explore=1.0), 1.0 / 9.0 / 4.0
            told.remove_arm(2)
            left = [t for t, arm in enumerate(first) if arm != 2]  # arm 2's prompts are never told
            arms = np.array([first[t] for t in left], dtype=np.int64)
            told.tell(arms, scores[arms, left], np.full(len(left), 1.0 / 3.0), n_known)
            told.tell(np.array(then), scores[then, (2, 3)], np.full(2, 0.5))
            sums += chance * told._sums[:2]
            truth += chance * (0.5 * (scores[:2, 2:].sum(axis=0) - 2.0 * scores[:2, 2:])).sum(axis=1)
            asked_before = scores.mean(axis=0)[left] - scores[:2, left]
            truth += chance * asked_before.sum(axis=1) * (not is_fair)
    assert np.allclose(sums, truth, atol=1e-12) == is_fair


DRAWS = 1_000


def test_the_probability_of_the_arm_is_that_of_its_draw():
    world = RouteWorld(n_arms=3, n_examples=10_000)
    for name in ("pak-ucb", "random"):
        selector = world.selector(name, explore=EXPLORE)
        list(islice(world.rounds(selector), 6))
        counts, claimed = np.zeros(3), np.full(3, np.nan)
        for draw in range(DRAWS):
            fresh = deepcopy(selector)
            one = fresh.ask(np.random.default_rng([9, draw]), world.contexts[50:51], examples=[50])
            counts[one.arms[0]] += 1
            claimed[one.arms[0]] = one.propensities[0]
        assert claimed.sum() == pytest.approx(1.0)
        # Five standard errors: a false alarm in fewer than one of 500 000 cases for each of six shares.
        np.testing.assert_allclose(counts / DRAWS, claimed, atol=5.0 * np.sqrt(0.25 / DRAWS))
    assert claimed.tolist() == pytest.approx([1.0 / 3.0] * 3)


@pytest.mark.parametrize("name", selector_names("route"))
def test_a_router_that_explores_resumes_bit_for_bit_with_its_advantage(name):
    world = RouteWorld(unscored=0.1, seed=4, n_examples=60)
    params = {"explore": 0.2, "batch_size": 4}
    original, resumed = (world.selector(name, **params) for _ in range(2))
    for played, (batch, outcomes) in enumerate(world.rounds(original)):
        assert world.ask(deepcopy(resumed), round_rng(7, played)) == batch
        assert len(batch.propensities) == 4
        resumed.tell(batch, outcomes)
        assert (resumed.decision(), resumed.advantage()) == (original.decision(), original.advantage())
    advantage = resumed.advantage()
    assert advantage.lower < advantage.estimate < advantage.upper


def test_without_exploring_there_are_neither_propensities_nor_an_advantage():
    world = RouteWorld()
    selector = world.selector("pak-ucb")
    for batch, _ in world.rounds(selector):
        assert batch.propensities is None
    assert selector.advantage() is None
    assert world.selector("pak-ucb", explore=0.1).advantage() is None


@pytest.mark.parametrize(
    ("propensities", "message"),
    [
        (None, "propensities must be an array, because explore is above 0"),
        ([0.5, 0.01], r"propensities must be at least 0\.05, got 0\.01"),
    ],
)
def test_propensities_that_cannot_be_right_are_refused_and_change_nothing(propensities, message):
    world = RouteWorld()
    selector = world.selector("pak-ucb", explore=0.2)
    before = selector.decision()
    with pytest.raises(MalformedBatch, match=message):
        selector.tell(RoutedBatch([0, 1], [0, 1], world.contexts[:2], propensities=propensities), [0.1, 0.2])
    assert selector.decision() == before
    assert selector.advantage() is None
    with pytest.raises(MalformedBatch, match=r"propensities must be in \(0, 1\]"):
        RoutedBatch([0], [0], world.contexts[:1], propensities=[0.0])
    with pytest.raises(MalformedBatch, match=r"propensities must be of shape \(1,\)"):
        RoutedBatch([0], [0], world.contexts[:1], propensities=[0.5, 0.5])


RUNS, PROMPTS, LOOK = 200, 1_000, 100


def misses(tell):
    """Whether the interval ever missed the truth, in runs of the greedy router."""
    rng = np.random.default_rng(5)
    chances = np.tile([[0.9, 0.1], [0.1, 0.9], [0.4, 0.4]], PROMPTS // 2)  # (K, T)
    for _ in range(RUNS):
        table = np.where(rng.random(chances.shape) < chances, 1.0, -1.0)
        arms, scores, drawn, truths = played(table, EXPLORE, rng)
        so_far = np.cumsum(truths, axis=0) / np.arange(1, PROMPTS + 1)[:, np.newaxis]
        told, missed = record(), False
        for start in range(0, PROMPTS, LOOK):
            part = slice(start, start + LOOK)
            tell(told, arms[part], scores[part], drawn[part])
            found, truth = told.advantage(), so_far[start + LOOK - 1].min()
            missed |= not found.lower <= truth <= found.upper
        yield missed


@pytest.mark.statistical
def test_the_interval_misses_at_no_time_more_often_than_promised_under_adaptive_routing():
    assert not fails_too_often(misses(AdvantageRecord.tell), RUNS, DELTA)


@pytest.mark.statistical
def test_the_check_catches_propensities_that_are_ignored():
    def ignorant(told, arms, scores, chances):
        told.tell(arms, scores, np.ones_like(chances))

    assert fails_too_often(misses(ignorant), RUNS, DELTA)

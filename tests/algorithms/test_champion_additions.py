"""Arms that are added to champion and race in the middle: what stays, what follows, and what is stated."""

from itertools import permutations

import numpy as np
import pytest
from failure_rates import fails_too_often
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries

from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.switch import Mode
from winnow.algorithms.claims import EXACT, NOTHING_CLAIMED, Claim
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector, takes_more_arms

NAN = np.nan
PLANNED = ("planned-additions",)


def claim_of(delta, raised_by):
    """What is claimed at this error probability, for these reasons."""
    return Claim(
        kind="proven",
        delta=pytest.approx(delta),
        raised_by=raised_by,
        assumptions=PLANNED if "added" in raised_by else (),
    )


def rows(*right, n=200, seed=0):
    """Rows of n with so many ones each, in random places."""
    rng = np.random.default_rng(seed)
    return rng.permuted(np.arange(n) < np.array(right)[:, np.newaxis], axis=1).astype(float)


def new(scores, n_arms, name="champion", **params):
    """A selector that has the first arms of a table."""
    params = {"delta": 0.05, "batch_size": 16, **params}
    return create_selector(name, n_arms=n_arms, n_examples=scores.shape[1], **params)


def go_on(selector, scores, first=0, most=10_000, seed=0):
    """Ask and tell to the end, or for some rounds; the number of the next round."""
    for number in range(first, most):
        if len(batch := selector.ask(round_rng(seed, number))) == 0:
            return number
        selector.tell(batch, scores[batch.arms, batch.examples])
    return most


@pytest.mark.parametrize("name", ["champion", "race"])
@pytest.mark.parametrize("first", [1, 4, 10_000])
def test_a_better_arm_that_is_added_wins_and_what_is_told_of_the_others_is_not_asked_again(name, first):
    scores = rows(120, 100, 80, 60, 150)
    selector = new(scores, 4, name)
    number = go_on(selector, scores, most=first)
    told, out, wealths = selector.evidence.draws.count, selector.evidence.is_out, selector.wealths
    selector.add_arms(1)
    np.testing.assert_array_equal(selector.evidence.draws.count, [*told, 0])
    np.testing.assert_array_equal(selector.evidence.is_out, [*out, False])
    np.testing.assert_array_equal(selector.wealths[:4], wealths)
    decision = selector.decision()
    assert (decision.stop, decision.claim, decision.status[4]) == (False, NOTHING_CLAIMED, "active")
    go_on(selector, scores, number)
    decision = selector.decision()
    assert decision.best == 4
    assert decision.claim == claim_of(0.1, ("added",))
    assert selector.out_in_round.shape == selector.out_at.shape == selector.levels.shape == (5,)


@pytest.mark.parametrize(
    ("params", "stated", "levels"),
    [
        ({}, (0.15, ("added",)), (20.0, 20.0, 20.0)),
        ({"additions": "expected"}, (0.05, ()), (40.0, 120.0, 240.0)),
    ],
)
def test_every_list_raises_what_the_answer_states_or_what_it_takes(params, stated, levels):
    scores = rows(150, 100, 100, 90, 80, 30)
    selector = new(scores, 3, **params)
    number = go_on(selector, scores, most=3)
    selector.add_arms(2)
    number = go_on(selector, scores, number, most=6)
    selector.add_arms(1)
    go_on(selector, scores, number)
    delta, raised_by = stated
    assert selector.decision().claim == claim_of(delta, raised_by)
    assert selector.levels == pytest.approx(np.repeat(levels, [3, 2, 1]))


@pytest.mark.parametrize(
    ("dropping", "additions", "stated", "raised_by", "level"),
    [
        ("stated", "stated", 4, ("dropped", "added"), 1),
        ("reserved", "stated", 2, ("added",), 6),
        ("stated", "expected", 2, ("dropped",), 2),
        ("reserved", "expected", 1, (), 12),
    ],
)
def test_a_drop_and_an_addition_each_raise_it_where_they_are_not_reserved_for(
    dropping, additions, stated, raised_by, level
):
    scores = rows(150, 100, 90, 60)
    scores[1] = NAN
    selector = new(scores, 3, dropping=dropping, additions=additions)
    number = go_on(selector, scores, most=8)
    selector.add_arms(1)
    go_on(selector, scores, number)
    assert selector.decision().claim == claim_of(0.05 * stated, raised_by)
    assert selector.levels[0] == pytest.approx(20.0 * level)


@pytest.mark.parametrize("dropping", ["stated", "reserved"])
def test_where_no_probability_below_1_could_be_stated_only_certain_answers_are_given(dropping):
    scores = rows(180, 40, 20)
    selector = new(scores, 2, delta=0.5, dropping=dropping)
    number = go_on(selector, scores)
    assert selector.decision().claim.kind == "proven"
    selector.add_arms(1)
    assert np.isinf(selector.levels).all()
    assert not selector.evidence.is_out.any()
    go_on(selector, scores, number)
    assert (selector.decision().claim, selector.decision().best) == (EXACT, 0)


def test_where_nothing_is_bet_on_common_examples_many_arms_take_no_room_for_pairs_of_them():
    n_arms, n_examples = 3_000, 100
    selector = create_selector("champion", n_arms=n_arms, n_examples=n_examples, delta=0.05, batch_size=64)
    batch = selector.ask(round_rng(0, 0))
    selector.tell(batch, np.zeros(len(batch)))
    selector.add_arms(1)
    race = selector.evidence.race
    held = sum(each.nbytes for each in vars(race).values() if isinstance(each, np.ndarray))
    assert held < 500 * n_arms  # K x K numbers would take 24,000 bytes an arm
    assert not race.met_any(np.ones(n_arms + 1, dtype=bool)).any()


def test_of_nothing_no_list_is_made_and_others_take_none():
    with pytest.raises(InvalidParameter, match="count must be at least 1, got 0"):
        new(rows(3, 2, n=5), 2).add_arms(0)
    with pytest.raises(InvalidParameter, match="additions must be 'stated' or 'expected', got 1"):
        new(rows(3, 2, n=5), 2, additions=1)
    assert takes_more_arms("champion")
    assert takes_more_arms("race")
    assert not takes_more_arms("ucb-e")


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["champion", "race"]),
    st.lists(st.integers(0, 9), min_size=1, max_size=3),
    st.integers(1, 3),
)
@tries(15)
def test_told_the_same_rounds_with_the_same_lists_between_them_a_selector_is_the_same(
    seed, name, places, in_flight
):
    """Also with batches in flight when a list is added."""
    rng = np.random.default_rng(seed)
    n_arms, n_examples = 3 + 2 * len(places), int(rng.integers(2, 40))
    scores = rng.choice([0.0, 0.5, 1.0, NAN], size=(n_arms, n_examples), p=[0.3, 0.2, 0.4, 0.1])
    params = {"delta": 0.3, "batch_size": int(rng.integers(1, 20)), "additions": "expected"}
    selector, replayed = new(scores, 3, name, **params), new(scores, 3, name, **params)
    waiting, asked, told = [], 0, 0
    while True:
        while len(waiting) < in_flight and len(batch := selector.ask(round_rng(seed, asked))):
            waiting.append(batch)
            asked += 1
        if not waiting and told > max(places):
            break
        for each in (selector, replayed):
            if waiting:
                each.tell(waiting[0], scores[waiting[0].arms, waiting[0].examples])
            for _ in range(places.count(told)):
                each.add_arms(2)
        waiting, told = waiting[1:], told + 1
        assert selector.decision() == replayed.decision()
        np.testing.assert_array_equal(selector.wealths, replayed.wealths)
        np.testing.assert_array_equal(selector.out_at, replayed.out_at)
    assert selector.n_arms == n_arms
    assert len(selector.ask(round_rng(seed, asked))) == len(replayed.ask(round_rng(seed, asked))) == 0


N = 5
FIRST = np.array([[1.0, 0.0, 0.5, 0.5, 0.0], [0.0, 1.0, 0.2, 0.0, 0.4]])
ADDED = np.array([0.0, 1.0, 0.0, 0.6, 0.4])  # as good as the first one, which becomes the filled row


def wealth_of_added(order, *, uses_first_draw=False):
    """Of an arm added after a race of two others, told in this order; with a flaw, its first draw is seen."""
    evidence = Evidence(2, N, Mode(0.5, 1, leaves=True), level=np.inf, epsilon=0.0)
    for example in (3, 1):
        batch = Grouped.of(np.arange(2), np.full(2, example), FIRST[:, example])
        evidence.tell_columns(batch, np.arange(2), FIRST[:, [example]])
    if uses_first_draw and ADDED[order[0]] > 0.5:
        return 1.0  # not added where it would begin well
    evidence.add_arms(np.full(3, np.inf))
    assert not evidence.can_race
    told = {0: [3, 1], 1: [3, 1], 2: []}

    def tell(arm, examples):
        untold = ~np.isin(np.arange(N), told[arm])[np.newaxis]
        told[arm] += examples
        scores = np.vstack([FIRST, ADDED])[arm, examples]
        evidence.tell(Grouped.of(np.full(len(examples), arm), np.array(examples), scores), untold)

    tell(2, list(order[:1]))
    tell(0, [0, 2, 4])
    for place in range(1, N):
        tell(2, [order[place]])
        if ADDED[order[place]] > 0.5 and len(told[1]) < N:
            tell(1, [next(each for each in range(N) if each not in told[1])])
    return float(evidence.wealths(np.array([2]))[0])


def test_at_the_mean_of_the_champion_an_added_arm_has_a_mean_wealth_of_1_over_all_orders():
    orders = list(permutations(range(N)))
    wealths = np.array([wealth_of_added(order) for order in orders])
    assert wealths.std() > 0.01
    np.testing.assert_allclose(wealths.mean(), 1.0, rtol=1e-12)
    flawed = np.mean([wealth_of_added(order, uses_first_draw=True) for order in orders])
    assert abs(flawed - 1.0) > 0.005


DELTA, RUNS, LISTS = 0.1, 60, 3


def wrong_at_last(runs=RUNS, n_examples=60, *, seen=1, **params):
    """Whether the answer is wrong where somebody adds a slightly better arm for as long as it is right.

    The order of an added arm's examples is the one that begins worst of so many.
    """
    ones = np.arange(n_examples) < np.concatenate([[0], 25 + np.arange(LISTS + 1)])[:, np.newaxis]
    for seed in range(runs):
        rng = np.random.default_rng([41, seed])
        scores = rng.permuted(ones, axis=1).astype(float)
        selector = new(scores, 2, delta=DELTA, start="champion", **params)
        for arm in (0, 1):
            selector.tell(Batch(np.full(n_examples, arm), np.arange(n_examples)), scores[arm])
        for arm in range(2, len(scores)):
            selector.add_arms(1)
            orders = [rng.permutation(n_examples) for _ in range(seen)]
            order = min(orders, key=lambda each, row=scores[arm]: row[each[:10]].sum())
            for examples in np.split(order, n_examples // 5):
                selector.tell(Batch(np.full(5, arm), examples), scores[arm, examples])
                if selector.evidence.is_out[arm]:
                    break
            if selector.evidence.is_out[arm]:
                break
        decision = selector.decision()
        assert decision.claim.kind in ("exact", "proven")
        yield decision.best != selector.n_arms - 1


@pytest.mark.statistical
def test_answers_are_wrong_as_seldom_as_they_state_however_arms_are_added():
    # Alarm at 20 of 60 where it is reserved for, at 43 where four times delta is stated.
    assert not fails_too_often(wrong_at_last(additions="expected"), RUNS, DELTA)
    assert not fails_too_often(wrong_at_last(), RUNS, (LISTS + 1) * DELTA)


@pytest.mark.statistical
def test_the_check_catches_arms_whose_first_scores_were_seen_before_they_were_added():
    assert fails_too_often(wrong_at_last(seen=200), RUNS, (LISTS + 1) * DELTA)


@pytest.mark.parametrize("name", ["champion", "race"])
def test_arms_that_are_added_while_the_first_round_is_in_flight_draw_from_all_of_their_examples(name):
    """By common examples they would never be asked what was in flight, here a third of all."""
    n_shared = 0
    for seed in range(100):
        selector, resumed = (new(rows(3, 3, 2, 2, n=6), 3, name) for _ in range(2))
        in_flight = selector.ask(round_rng(seed, 0))
        assert len(set(in_flight.examples.tolist())) == 2
        for each in (selector, resumed):
            each.add_arms(1)
        resumed.take_up(in_flight)
        batch = selector.ask(round_rng(seed, 1))
        assert resumed.ask(round_rng(seed, 1)) == batch
        n_shared += batch.examples[batch.arms == 3][0] in in_flight.examples
    assert 15 <= n_shared <= 55

"""What every selector of the registry promises; a new entry is held to it without an edit here."""

from collections import deque
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from selector_worlds import (
    WORLDS,
    BestDuelWorld,
    BestMeanWorld,
    CertifyWorld,
    FixedDuelWorld,
    RouteWorld,
)

from winnow.algorithms.claims import EXACT
from winnow.algorithms.errors import (
    ArmAgainstItself,
    ArmRemoved,
    MalformedBatch,
    NoArmToRemove,
    OutcomeOutOfRange,
    PairAlreadyTold,
    PairOutsideGrid,
    PairRepeated,
    PromptTaken,
    RefusedTell,
    ToldOutOfOrder,
    UnusableContexts,
)
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import describe, looks_ahead, selector_names
from winnow.algorithms.route.protocol import RoutedBatch

best_mean = pytest.mark.parametrize("name", selector_names("best-mean"))
names_the_best = pytest.mark.parametrize("name", sorted(set(selector_names("best-mean")) - {"gate"}))
best_duel = pytest.mark.parametrize("name", selector_names("best-duel"))
certify = pytest.mark.parametrize("name", selector_names("certify"))
route = pytest.mark.parametrize("name", selector_names("route"))
by_counts = pytest.mark.parametrize("name", sorted(set(selector_names("best-duel")) - {"llm-po-bt"}))
looking_ahead = pytest.mark.parametrize("name", sorted(filter(looks_ahead, selector_names())))
every_selector = pytest.mark.parametrize("name", selector_names())


def pairs(batch):
    return set(zip(batch.arms.tolist(), batch.examples.tolist(), strict=True))


def duels(batch):
    """The arms, the lower one first, and the example of each duel."""
    rows = zip(np.sort(batch.arms, axis=1).tolist(), batch.examples.tolist(), strict=True)
    return [(*arms, example) for arms, example in rows]


def check_resumed(world, original, resumed):
    """Hold one that is told the same, and asked as a copy only, against the original; how many rounds."""
    n_rounds = 0
    for batch, outcomes in world.rounds(original):
        assert world.ask(deepcopy(resumed), round_rng(7, n_rounds)) == batch
        resumed.tell(batch, outcomes)
        assert resumed.decision() == original.decision()
        n_rounds += 1
    return n_rounds


@every_selector
def test_a_resumed_selector_asks_and_decides_what_the_original_did_at_every_prefix(name):
    world = WORLDS[describe(name).objective]()
    original, resumed = (world.selector(name, delta=0.2) for _ in range(2))
    assert resumed.decision() == original.decision()
    assert check_resumed(world, original, resumed) > 3


@every_selector
def test_asking_does_not_change_what_is_believed(name):
    world = WORLDS[describe(name).objective]()
    asked, told_only = world.selector(name), world.selector(name)
    first = world.ask(asked, round_rng(0, 0))
    world.ask(asked, round_rng(0, 1))
    assert asked.decision() == told_only.decision()
    for selector in (asked, told_only):
        selector.tell(first, world.outcomes(first))
    assert asked.decision() == told_only.decision()


@every_selector
@pytest.mark.parametrize("budget", [1, 7, 40, 200])
def test_the_budget_is_never_exceeded(name, budget):
    world = WORLDS[describe(name).objective]()
    selector = world.selector(name, budget=budget)
    spent = world.spent(batch for batch, _ in world.rounds(selector))
    assert spent == min(budget, world.n_outcomes)
    assert selector.decision().stop
    assert selector.decision().reason == world.end(budget)


@every_selector
def test_the_budget_holds_with_several_batches_in_flight(name):
    world = WORLDS[describe(name).objective]()
    selector = world.selector(name, budget=8)
    assert world.spent(world.ask(selector, round_rng(0, t)) for t in range(10)) == 8


@every_selector
def test_with_batches_in_flight_it_believes_what_a_fresh_one_told_the_same_and_not_asked_does(name):
    world = WORLDS[describe(name).objective]()
    selector, fresh = (world.selector(name, delta=0.2) for _ in range(2))
    waiting, asked, told = deque(), 0, 0
    while True:
        while len(waiting) < 3 and len(batch := world.ask(selector, round_rng(7, asked))):
            waiting.append((batch, world.outcomes(batch, asked)))
            asked += 1
        if not waiting:
            break
        for each in (selector, fresh):
            each.tell(*waiting[0])
        waiting.popleft()
        told += 1
        assert selector.decision() == fresh.decision()
        if told == 6:  # without those in flight, both ask the same from here
            while waiting:
                for each in (selector, fresh):
                    each.tell(*waiting[0])
                waiting.popleft()
            assert selector.decision() == fresh.decision()
            going_on = [world.ask(each, round_rng(8, 0)) for each in (selector, fresh)]
            assert going_on[0] == going_on[1]
            outcomes = world.outcomes(going_on[0], asked)
            for each in (selector, fresh):
                each.tell(going_on[0], outcomes)
    assert told > 3


@looking_ahead
@pytest.mark.parametrize(("ahead", "params"), [(2, {"delta": 0.2, "budget": 26}), (1, {"batch_size": 9})])
def test_resumed_among_batches_in_flight_it_asks_and_decides_what_the_original_did(name, ahead, params):
    world = BestMeanWorld(n_arms=5, n_examples=14, unscored=0.1, seed=2)
    original, told_only = (world.selector(name, **params) for _ in range(2))
    waiting, told, asked, ends = deque(), 0, 0, 0
    while True:
        resumed = deepcopy(told_only)
        for batch in waiting:
            resumed.take_up(batch)
        assert resumed.decision() == original.decision()
        while len(waiting) <= ahead:
            batch = original.ask(round_rng(7, asked))
            assert resumed.ask(round_rng(7, asked)) == batch
            if len(batch) == 0:
                ends += 1
                break
            waiting.append(batch)
            asked += 1
        if not waiting:
            break
        batch = waiting.popleft()
        for each in (original, told_only):
            each.tell(batch, world.outcomes(batch))
        told += 1
    assert told >= 3
    assert ends > 0


@every_selector
def test_batches_told_in_another_order_or_in_part_are_refused_and_change_nothing(name):
    world = WORLDS[describe(name).objective]()
    selector, untouched = (world.selector(name) for _ in range(2))
    first, second = ([world.ask(each, round_rng(0, t)) for t in range(2)] for each in (selector, untouched))
    assert first == second
    columns = {name: getattr(first[0], name, None) for name in ("arms", "examples", "contexts")}
    part = replace(first[0], **{name: values[:1] for name, values in columns.items() if values is not None})
    for wrong in (first[1], part):
        with pytest.raises(ToldOutOfOrder, match="tell whole batches, in the order in which"):
            selector.tell(wrong, world.outcomes(wrong))
    assert selector.decision() == untouched.decision()
    for batch in first:
        for each in (selector, untouched):
            each.tell(batch, world.outcomes(batch))
    assert selector.decision() == untouched.decision()


@best_mean
def test_no_pair_is_asked_twice_and_the_exhausted_matrix_gives_the_exact_best(name):
    world = BestMeanWorld()
    selector = world.selector(name)
    asked = [pair for batch, _ in world.rounds(selector) for pair in pairs(batch)]
    assert len(asked) == len(set(asked)) == world.scores.size
    decision = selector.decision()
    assert decision.best == world.scores.mean(axis=1).argmax()
    assert (decision.stop, decision.reason) == (True, "exhausted")
    np.testing.assert_allclose(decision.estimates, world.scores.mean(axis=1), rtol=1e-12)


@best_mean
def test_batches_in_flight_never_overlap_and_together_cover_the_matrix(name):
    world = BestMeanWorld()
    selector = world.selector(name)
    asked = []
    while len(batch := selector.ask(round_rng(1, len(asked)))):
        asked.append(batch)
    assert sum(map(len, asked)) == len(set().union(*map(pairs, asked))) == world.scores.size
    assert not selector.decision().stop
    for batch in asked:
        selector.tell(batch, world.outcomes(batch))
    assert selector.decision().reason == "exhausted"


@best_mean
def test_bounds_hold_the_mean_of_every_arm(name):
    world = BestMeanWorld(n_examples=30)
    selector = world.selector(name)
    means = world.scores.mean(axis=1)
    for _ in world.rounds(selector):
        decision = selector.decision()
        assert np.isfinite([decision.lower, decision.upper]).all()
        assert not (decision.lower > means + 1e-12).any()
        assert not (decision.upper < means - 1e-12).any()


@best_mean
def test_unscored_pairs_are_spent_and_are_not_zeros(name):
    world = BestMeanWorld(unscored=0.2, seed=3)
    selector = world.selector(name)
    spent = sum(len(batch) for batch, _ in world.rounds(selector))
    assert spent == world.scores.size
    np.testing.assert_allclose(selector.decision().estimates, np.nanmean(world.scores, axis=1), rtol=1e-12)


@best_mean
def test_an_arm_without_scores_is_dropped_and_does_not_hold_up_the_end(name):
    world = BestMeanWorld(n_examples=40)
    world.scores[2] = np.nan
    world.scores[1] = 0.9
    selector = world.selector(name, delta=0.5)
    spent = sum(int((batch.arms == 2).sum()) for batch, _ in world.rounds(selector))
    assert 8 <= spent < 8 + 3
    decision = selector.decision()
    assert (decision.best, decision.stop, decision.reason) == (1, True, "confident")


@best_mean
def test_there_is_no_best_when_every_arm_is_dropped(name):
    world = BestMeanWorld(unscored=1.1)
    selector = world.selector(name)
    assert len(list(world.rounds(selector))) > 0
    decision = selector.decision()
    assert (decision.best, decision.stop, decision.reason) == (None, True, "all-dropped")


@names_the_best
def test_a_campaign_that_is_confident_asks_nothing_more(name):
    world = BestMeanWorld(n_examples=200)
    world.scores[:] = np.array([0.0, 1.0, 0.0, 0.0])[:, np.newaxis]
    selector = world.selector(name, delta=0.1)
    assert sum(len(batch) for batch, _ in world.rounds(selector)) < world.n_examples
    decision = selector.decision()
    assert (decision.best, decision.reason) == (1, "confident")
    assert decision.status == ("eliminated", "best", "eliminated", "eliminated")


def hard_world(seed):
    """Five arms with many ties, unscored pairs and an arm that is dropped."""
    rng = np.random.default_rng(seed)
    world = BestMeanWorld(n_arms=5, n_examples=24)
    easy = rng.random(24) < 0.7
    world.scores = np.where(rng.random((5, 1)) < 0.5, easy, rng.random((5, 24)) < 0.6).astype(float)
    world.scores[1] = world.scores[0]
    world.scores[rng.random((5, 24)) < [[0.0], [0.0], [0.0], [0.2], [0.9]]] = np.nan
    return world


def check_claims(decision, told, epsilon):
    """Hold a decision against what was told, shape (K, n): inf where nothing was told."""
    status, best, n_examples = np.array(decision.status), decision.best, told.shape[1]
    fully_scored = np.isfinite(told).all(axis=1)
    sums, unknown = np.where(np.isfinite(told), told, 0.0).sum(axis=1), (~np.isfinite(told)).sum(axis=1)
    least, most = sums / n_examples, (sums + unknown) / n_examples
    left = status != "dropped"
    is_proven = decision.claim.kind in ("exact", "proven")
    assert decision.stop or decision.claim.kind == "none"
    assert (status == "best").sum() == (is_proven and status[best] != "tied")
    assert not is_proven or status[best] in ("best", "tied")
    assert is_proven or not np.isin(status, ["best", "tied", "not-better"]).any()
    assert best is None or status[best] not in ("dropped", "eliminated")
    assert fully_scored[status == "tied"].all()
    assert (status == "tied").sum() != 1
    # What is proven to be out may still be anything by its scores alone.
    in_question = left & ~(np.isin(status, ["eliminated", "not-better"]) & (decision.claim.kind == "proven"))
    for tied in np.flatnonzero(status == "tied"):
        assert least[tied] >= most[in_question].max() - epsilon - 1e-9
    unscored = np.isnan(told).sum(axis=1)
    assert (unscored > np.isfinite(told).sum(axis=1))[~left].all()
    if decision.claim.kind == "exact":
        others = left & (np.arange(len(status)) != best)
        assert least[best] >= most.max(initial=0.0, where=others) - epsilon - 1e-9
        worst = least.max(initial=0.0, where=left)
        assert (most[status == "eliminated"] < worst).all()
    known = ~np.isnan(decision.estimates)
    assert (decision.lower <= decision.upper).all()
    assert (decision.lower >= least - 1e-9).all()
    assert (decision.upper <= most + 1e-9).all()
    assert (decision.estimates[known] >= decision.lower[known] - 1e-12).all()
    assert (decision.estimates[known] <= decision.upper[known] + 1e-12).all()
    np.testing.assert_allclose(decision.estimates[fully_scored], least[fully_scored], atol=1e-12)


@names_the_best
@pytest.mark.parametrize(
    ("delta", "epsilon", "budget"), [(None, 0.0, None), (0.3, 0.0, None), (0.3, 0.1, None), (0.3, 0.0, 40)]
)
def test_statuses_and_claims_say_what_the_scores_and_the_intervals_prove(name, delta, epsilon, budget):
    for seed in range(3):
        world = hard_world(seed)
        selector = world.selector(name, delta=delta, epsilon=epsilon, budget=budget, batch_size=8)
        told = np.full(world.scores.shape, np.inf)
        check_claims(selector.decision(), told, epsilon)
        for batch, outcomes in world.rounds(selector):
            told[batch.arms, batch.examples] = outcomes
            check_claims(selector.decision(), told, epsilon)
        assert selector.decision().status[4] == "dropped" or budget or delta


@names_the_best
def test_an_arm_that_is_unreadable_where_it_fails_is_not_crowned(name):
    world = BestMeanWorld(n_arms=2, n_examples=150)
    rng = np.random.default_rng(4)
    world.scores = rng.permuted([np.arange(150) < 134, np.arange(150) < 90], axis=1).astype(float)
    world.scores[1][world.scores[1] == 0.0] = np.nan
    selector = world.selector(name, delta=0.05, batch_size=16)
    list(world.rounds(selector))
    decision = selector.decision()
    assert (decision.stop, decision.reason, decision.claim.kind) == (True, "exhausted", "none")
    assert decision.status == ("active", "active")
    np.testing.assert_allclose((decision.lower[1], decision.upper[1]), (0.6, 1.0))


def check_alike(world, selector, untouched):
    """Hold two selectors against each other from here to the end of their campaigns."""
    for (asked, _), (wanted, _) in zip(world.rounds(selector), world.rounds(untouched), strict=True):
        assert asked == wanted
    assert selector.decision() == untouched.decision()


def check_refused(world, bad, selector, untouched):
    """Tell a selector what is refused, and hold it against one that was not told."""
    for case, (batch, outcomes, error) in bad.items():
        with pytest.raises(error):
            selector.tell(batch, outcomes)
        assert selector.decision() == untouched.decision(), case
    check_alike(world, selector, untouched)


BAD_TELLS = {
    "arm outside": (Batch([4], [0]), [0.5], PairOutsideGrid),
    "negative arm": (Batch([-1], [0]), [0.5], PairOutsideGrid),
    "example outside": (Batch([0, 0], [0, 11]), [0.5, 0.5], PairOutsideGrid),
    "repeated pair": (Batch([0, 1, 0], [3, 3, 3]), [0.5, 0.5, 0.5], PairRepeated),
    "missing outcome": (Batch([0, 1], [0, 0]), [0.5], MalformedBatch),
    "matrix of outcomes": (Batch([0], [0]), [[0.5]], MalformedBatch),
    "duels": (Batch([[0, 1]], [0]), [0.5], MalformedBatch),
    "too high": (Batch([0, 1], [0, 0]), [0.5, 1.5], OutcomeOutOfRange),
    "too low": (Batch([0], [0]), [-0.1], OutcomeOutOfRange),
    "infinite": (Batch([0], [0]), [np.inf], OutcomeOutOfRange),
}


@every_selector
def test_an_outcome_that_rounding_puts_outside_of_its_range_is_the_bound(name):
    world = WORLDS[describe(name).objective]()
    told, exact = (world.selector(name, delta=0.2) for _ in range(2))
    for number in range(3):
        batch = world.ask(told, round_rng(7, number))
        world.ask(exact, round_rng(7, number))
        outcomes = np.array(world.outcomes(batch, number), dtype=np.float64)
        told.tell(batch, outcomes + np.select([outcomes == 1.0, outcomes == 0.0], [3e-16, -9e-10]))
        exact.tell(batch, outcomes)
        assert told.decision() == exact.decision()


@best_mean
def test_a_tell_that_cannot_be_right_is_refused_and_changes_nothing(name):
    world = BestMeanWorld()
    check_refused(world, BAD_TELLS, *(world.selector(name) for _ in range(2)))


@best_mean
def test_a_pair_told_before_is_refused_with_its_numbers(name):
    world = BestMeanWorld()
    selector = world.selector(name)
    selector.tell(Batch([1, 2], [5, 6]), [0.5, np.nan])
    before = selector.decision()
    with pytest.raises(PairAlreadyTold, match=r"\(arm 2, example 6\) was already observed") as caught:
        selector.tell(Batch([0, 2], [0, 6]), [0.5, 0.5])
    assert (caught.value.arm, caught.value.example) == (2, 6)
    assert isinstance(caught.value, RefusedTell)
    assert selector.decision() == before


DUEL_CAMPAIGNS = [{"features"}, {"deterministic"}, {"assume_winner"}, {"epsilon", "assume_winner"}]
"""Parameters that change how duels are drawn and weighed."""


def duel_params(name, world, chosen):
    """Values of the chosen parameters, but for those that a method cannot do with."""
    some = np.arange(world.n_arms) != 1  # arms 0, 2 and 3 answer alike whenever asked
    values = {"features": world.features, "deterministic": some, "assume_winner": True, "epsilon": 0.05}
    if name == "llm-po-bt":
        chosen = (chosen | {"features"}) - {"deterministic"}
    return {parameter: values[parameter] for parameter in sorted(chosen)}


@best_duel
@pytest.mark.parametrize("chosen", DUEL_CAMPAIGNS, ids=lambda chosen: " ".join(sorted(chosen)))
def test_a_resumed_campaign_of_duels_goes_on_bit_for_bit_with_unscored_duels(name, chosen):
    world = BestDuelWorld(unscored=0.2, broken=(2,))
    params = {**duel_params(name, world, chosen), "delta": 0.2, "batch_size": 5}
    assert check_resumed(world, *(world.selector(name, **params) for _ in range(2))) > 3


@best_duel
def test_duels_are_of_two_arms_that_exist_on_examples_that_exist(name):
    world = BestDuelWorld()
    for batch, _ in world.rounds(world.selector(name, batch_size=7)):
        assert batch.arms.shape == (len(batch), 2)
        assert (batch.arms[:, 0] != batch.arms[:, 1]).all()
        assert ((batch.arms >= 0) & (batch.arms < world.n_arms)).all()
        assert ((batch.examples >= 0) & (batch.examples < world.n_examples)).all()


@best_duel
def test_nothing_grows_with_the_number_of_examples(name):
    world = BestDuelWorld()
    world.n_examples = 10**15
    assert sum(len(batch) for batch, _ in world.rounds(world.selector(name))) == 60


@best_duel
def test_every_pair_that_matters_is_asked_and_the_preferred_arm_is_found(name):
    world = BestDuelWorld(spread=6.0, ties=0.0)
    selector = world.selector(name, budget=400)
    asked = np.concatenate([batch.arms for batch, _ in world.rounds(selector)])
    assert (np.bincount(asked.ravel(), minlength=world.n_arms) > 0).all()
    assert selector.decision().best == 1


@best_duel
def test_the_order_of_two_arms_in_a_duel_does_not_matter(name):
    world = BestDuelWorld()
    selector, mirrored = world.selector(name), world.selector(name)
    for batch, outcomes in world.rounds(selector):
        mirrored.tell(Batch(batch.arms[:, ::-1], batch.examples), 1.0 - outcomes)
    assert mirrored.decision() == selector.decision()


@best_duel
def test_a_tie_is_half_a_win_for_each_arm(name):
    world = BestDuelWorld()
    tied, split = world.selector(name), world.selector(name)
    arms = np.array([[0, 1], [1, 2], [3, 0], [2, 3], [1, 3], [0, 2]])
    twice = Batch(np.repeat(arms, 2, axis=0), np.arange(12))
    tied.tell(twice, np.full(12, 0.5))
    split.tell(twice, np.tile([1.0, 0.0], 6))
    assert tied.decision() == split.decision()


@best_duel
def test_unscored_duels_are_spent_and_estimates_leave_them_out(name):
    world = BestDuelWorld(unscored=0.3, seed=3)
    selector, scored_only = (world.selector(name, max_unscored=1.0) for _ in range(2))
    n_unscored = 0
    for batch, outcomes in world.rounds(selector):
        told = ~np.isnan(outcomes)
        n_unscored += int((~told).sum())
        scored_only.tell(Batch(batch.arms[told], batch.examples[told]), outcomes[told])
    assert n_unscored > 5
    spent, unspent = selector.decision(), scored_only.decision()
    assert (spent.reason, unspent.reason) == ("budget", "running")
    assert spent.best == unspent.best
    np.testing.assert_allclose(spent.estimates, unspent.estimates, rtol=1e-6)
    assert (spent.lower <= unspent.lower + 1e-6).all()
    assert (spent.upper >= unspent.upper - 1e-6).all()


@by_counts
def test_deterministic_arms_meet_an_example_once_and_the_exhausted_duels_give_the_exact_best(name):
    world = FixedDuelWorld()
    selector = world.selector(name, budget=10_000)
    asked = [duel for batch, _ in world.rounds(selector) for duel in duels(batch)]
    assert len(asked) == len(set(asked)) == 6 * world.n_examples
    decision = selector.decision()
    preferences = world.outcomes_by_pair.mean(axis=2)
    worst = np.where(np.eye(world.n_arms, dtype=bool), 1.0, preferences).min(axis=1)
    assert (decision.best, decision.stop, decision.reason) == (worst.argmax(), True, "exhausted")
    assert decision.claim == EXACT
    for field in ("estimates", "lower", "upper"):
        np.testing.assert_allclose(getattr(decision, field), worst, rtol=1e-12)


@by_counts
def test_batches_of_deterministic_arms_in_flight_never_overlap(name):
    world = FixedDuelWorld()
    selector, asked = world.selector(name, budget=None, batch_size=7), []
    while len(batch := selector.ask(round_rng(1, len(asked)))):
        asked.append(batch)
    together = [duel for batch in asked for duel in duels(batch)]
    assert len(together) == len(set(together)) == 6 * world.n_examples
    assert not selector.decision().stop
    for batch in asked:
        selector.tell(batch, world.outcomes(batch))
    assert selector.decision().reason == "exhausted"


@by_counts
def test_a_duel_of_deterministic_arms_told_before_is_refused_and_changes_nothing(name):
    world = FixedDuelWorld()
    selector = world.selector(name)
    selector.tell(Batch([[1, 2], [0, 1]], [5, 6]), [1.0, np.nan])
    before = selector.decision()
    with pytest.raises(PairAlreadyTold, match=r"the duel \(arms 1 and 0, example 6\) was already observed"):
        selector.tell(Batch([[0, 2], [1, 0]], [0, 6]), [0.5, 0.5])
    with pytest.raises(PairRepeated, match=r"the duel \(arms 3 and 2, example 0\) occurs twice"):
        selector.tell(Batch([[2, 3], [3, 2]], [0, 0]), [0.5, 0.5])
    assert selector.decision() == before


@by_counts
def test_a_campaign_of_some_deterministic_arms_ends_by_its_budget(name):
    world = FixedDuelWorld()
    selector = world.selector(name, deterministic=np.arange(4) < 3, budget=200)
    asked = [duel for batch, _ in world.rounds(selector) for duel in duels(batch)]
    once = [duel for duel in asked if 3 not in duel[:2]]
    assert len(once) == len(set(once)) <= 3 * world.n_examples
    assert len(asked) == 200
    assert selector.decision().reason == "budget"


@best_duel
@pytest.mark.parametrize("batch_size", [1, 3, 32])
def test_an_arm_that_cannot_be_judged_is_dropped_and_its_opponents_are_not(name, batch_size):
    world = BestDuelWorld(spread=8.0, ties=0.0, broken=(2,))
    selector = world.selector(name, delta=0.1, budget=2_000, batch_size=batch_size)
    broken = sum(int((batch.arms == 2).sum()) for batch, _ in world.rounds(selector))
    assert 8 <= broken < 8 + batch_size
    decision = selector.decision()
    assert (decision.best, decision.reason) == (1, "confident")
    assert decision.status == ("eliminated", "best", "dropped", "eliminated")


@best_duel
def test_there_is_no_preferred_arm_when_every_arm_is_dropped(name):
    world = BestDuelWorld(unscored=1.1)
    selector = world.selector(name)
    assert len(list(world.rounds(selector))) > 0
    decision = selector.decision()
    assert (decision.best, decision.stop, decision.reason) == (None, True, "all-dropped")


@best_duel
@pytest.mark.parametrize("n_arms", [2, 4])
def test_a_confident_campaign_of_duels_asks_nothing_more(name, n_arms):
    world = BestDuelWorld(n_arms, spread=30.0, ties=0.0)
    selector = world.selector(name, delta=0.1, budget=2_000)
    assert sum(len(batch) for batch, _ in world.rounds(selector)) < 2_000
    decision = selector.decision()
    assert (decision.best, decision.stop, decision.reason) == (1, True, "confident")
    assert len(selector.ask(round_rng(0, 0))) == 0


@best_duel
def test_a_pending_duel_is_told_once_and_may_be_told_again(name):
    world = BestDuelWorld()
    selector = world.selector(name, budget=6)
    batch = selector.ask(round_rng(0, 0))
    selector.tell(batch, world.outcomes(batch))
    selector.tell(batch, world.outcomes(batch))
    assert selector.decision().reason == "budget"


BAD_DUELS = {
    "arm outside": (Batch([[1, 4]], [0]), [0.5], PairOutsideGrid),
    "negative arm": (Batch([[-1, 0]], [0]), [0.5], PairOutsideGrid),
    "example outside": (Batch([[0, 1], [0, 1]], [0, 1_000]), [0.5, 0.5], PairOutsideGrid),
    "arm against itself": (Batch([[0, 1], [2, 2]], [0, 0]), [0.5, 0.5], ArmAgainstItself),
    "missing outcome": (Batch([[0, 1], [1, 2]], [0, 0]), [0.5], MalformedBatch),
    "matrix of outcomes": (Batch([[0, 1]], [0]), [[0.5]], MalformedBatch),
    "single arms": (Batch([0], [0]), [0.5], MalformedBatch),
    "too high": (Batch([[0, 1], [1, 2]], [0, 0]), [0.5, 1.5], OutcomeOutOfRange),
    "too low": (Batch([[0, 1]], [0]), [-0.1], OutcomeOutOfRange),
    "infinite": (Batch([[0, 1]], [0]), [np.inf], OutcomeOutOfRange),
}


@best_duel
def test_a_tell_of_duels_that_cannot_be_right_is_refused_and_changes_nothing(name):
    world = BestDuelWorld()
    check_refused(world, BAD_DUELS, *(world.selector(name) for _ in range(2)))


every_procedure = pytest.mark.parametrize("procedure", ["fixed-sequence", "bonferroni"])
RISKS = (0.0, 0.01, 0.9, 0.0)
NAIVE = {"eval", "autoeval"}
"""Nothing is certified by a plain mean: arms pass."""


@certify
@every_procedure
@pytest.mark.parametrize("betting", ["star", "up", "wsr"])
def test_a_resumed_campaign_of_certificates_goes_on_bit_for_bit_with_unscored_losses(
    name, procedure, betting
):
    world = CertifyWorld((0.0, 0.05, 0.4), unscored=0.05)
    params = {"alpha": 0.4, "delta": 0.4, "procedure": procedure, "betting": betting, "batch_size": 4}
    assert check_resumed(world, *(world.selector(name, **params) for _ in range(2))) > 3


@certify
@every_procedure
def test_the_cheapest_arm_whose_risk_is_low_is_certified_in_the_way_of_the_procedure(name, procedure):
    world = CertifyWorld(RISKS, n_examples=400, agreement=1.0)
    selector = world.selector(name, alpha=0.2, procedure=procedure, batch_size=10)
    rounds = list(world.rounds(selector))
    decision = selector.decision()
    assert (decision.stop, decision.reason) == (True, "passed" if name in NAIVE else "certified")
    if procedure == "bonferroni":
        assert decision.best == 3
        assert not selector.certified[2]
    else:  # the arm that fails ends the tests
        assert decision.best == 1
        assert selector.certified.tolist() == [True, True, False, False]
        assert not any((batch.arms == 3).any() for batch, _ in rounds)


@certify
@every_procedure
def test_a_label_is_bought_once_and_serves_every_arm_in_the_same_order(name, procedure):
    world = CertifyWorld((0.0, 0.01, 0.25, 0.25), n_examples=200)  # the last two stay open to the end
    selector = world.selector(name, alpha=0.2, procedure=procedure, budget=100, batch_size=7)
    rounds = list(world.rounds(selector))
    orders = {arm: [] for arm in range(world.n_arms)}
    for batch, _ in rounds:
        for arm, example in zip(batch.arms.tolist(), batch.examples.tolist(), strict=True):
            orders[arm].append(example)
    longest = max(orders.values(), key=len)
    assert len(longest) == len(set(longest)) == 100 == selector.n_labels
    assert all(order == longest[: len(order)] for order in orders.values())


@certify
@every_procedure
def test_no_pair_of_certificates_is_asked_twice_with_batches_in_flight(name, procedure):
    world = CertifyWorld()
    selector = world.selector(name, procedure=procedure, budget=30)
    asked = []
    while len(batch := selector.ask(round_rng(1, len(asked)))):
        asked.append(batch)
    n_under_test = 1 if procedure == "fixed-sequence" else world.n_arms
    assert sum(map(len, asked)) == len(set().union(*map(pairs, asked))) == 30 * n_under_test
    assert not selector.decision().stop
    for batch in asked:
        selector.tell(batch, world.outcomes(batch))
    assert selector.decision().reason == "none-certified"


@certify
@every_procedure
def test_an_arm_without_losses_is_dropped_and_is_never_certified(name, procedure):
    world = CertifyWorld((0.0, 0.0, 0.0), n_examples=300, broken=(1,))
    selector = world.selector(name, alpha=0.3, procedure=procedure, batch_size=6)
    spent = sum(int((batch.arms == 1).sum()) for batch, _ in world.rounds(selector))
    assert 8 <= spent < 8 + 6
    decision = selector.decision()
    assert (decision.stop, decision.reason) == (True, "passed" if name in NAIVE else "certified")
    assert decision.best == (0 if procedure == "fixed-sequence" else 2)
    assert np.isnan(decision.estimates[1])


@certify
def test_there_is_no_certificate_when_every_arm_is_dropped(name):
    world = CertifyWorld(unscored=1.1)
    selector = world.selector(name, procedure="bonferroni")
    assert len(list(world.rounds(selector))) > 0
    decision = selector.decision()
    assert (decision.best, decision.stop, decision.reason) == (None, True, "all-dropped")


BAD_LOSSES = {
    "arm outside": (Batch([3], [0]), [[0.5, 0.5, 0.5]], PairOutsideGrid),
    "negative example": (Batch([0], [-1]), [[0.5, 0.5, 0.5]], PairOutsideGrid),
    "example outside": (Batch([0, 0], [0, 40]), [[0.5] * 3] * 2, PairOutsideGrid),
    "repeated pair": (Batch([0, 1, 0], [3, 3, 3]), [[0.5] * 3] * 3, PairRepeated),
    "missing outcome": (Batch([0, 1], [0, 0]), [[0.5] * 3], MalformedBatch),
    "one loss per pair": (Batch([0, 1, 2], [0, 0, 0]), [0.5, 0.5, 0.5], MalformedBatch),
    "duels": (Batch([[0, 1]], [0]), [[0.5] * 3], MalformedBatch),
    "human loss too high": (Batch([0, 1], [0, 0]), [[0.5] * 3, [1.5, 0.5, 0.5]], OutcomeOutOfRange),
    "autoevaluator's loss too low": (Batch([0], [0]), [[0.5, -0.1, 0.5]], OutcomeOutOfRange),
    "infinite": (Batch([0], [0]), [[0.5, 0.5, np.inf]], OutcomeOutOfRange),
}


@certify
def test_a_tell_of_losses_that_cannot_be_right_is_refused_and_changes_nothing(name):
    world = CertifyWorld()
    check_refused(world, BAD_LOSSES, *(world.selector(name) for _ in range(2)))


@certify
def test_losses_told_before_are_refused_with_their_numbers(name):
    world = CertifyWorld()
    selector = world.selector(name)
    selector.tell(Batch([0, 2], [5, 6]), [[0.5] * 3, [np.nan] * 3])
    before = selector.decision()
    with pytest.raises(PairAlreadyTold, match=r"\(arm 2, example 6\) was already observed"):
        selector.tell(Batch([0, 2], [0, 6]), [[0.5] * 3, [0.5] * 3])
    assert selector.decision() == before


@route
def test_every_prompt_is_asked_once_in_order_with_batches_in_flight(name):
    world = RouteWorld()
    selector = world.selector(name)
    asked = []
    while len(batch := world.ask(selector, round_rng(1, len(asked)))):
        np.testing.assert_array_equal(batch.contexts, world.contexts[batch.examples])
        asked.append(batch)
    assert np.concatenate([batch.examples for batch in asked]).tolist() == list(range(world.n_examples))
    assert not selector.decision().stop
    for batch in asked:
        selector.tell(batch, world.outcomes(batch))
    assert selector.decision().reason == "exhausted"


@route
def test_a_resumed_router_goes_on_bit_for_bit_with_unscored_prompts_and_rounds_in_flight(name):
    world = RouteWorld(unscored=0.2, broken=(2,), seed=1)
    assert check_resumed(world, *(world.selector(name) for _ in range(2))) > 3
    in_flight, again = (world.selector(name) for _ in range(2))
    for selector in (in_flight, again):
        first, second = (world.ask(selector, round_rng(7, t)) for t in range(2))
        for batch in (first, second):
            selector.tell(batch, world.outcomes(batch))
    assert world.ask(in_flight, round_rng(7, 2)) == world.ask(again, round_rng(7, 2))


@route
def test_there_is_no_prompt_to_ask_when_every_arm_is_dropped(name):
    world = RouteWorld(unscored=1.1, n_examples=100)
    selector = world.selector(name)
    assert len(list(world.rounds(selector))) > 0
    decision = selector.decision()
    assert (decision.best, decision.stop, decision.reason) == (None, True, "all-dropped")
    assert selector.policy().choose(world.contexts[0]) == 0


@route
def test_an_arm_without_scores_is_dropped_and_the_others_are_routed_to(name):
    world = RouteWorld(broken=(1,), n_examples=300)
    selector = world.selector(name)
    broken = sum(int((batch.arms == 1).sum()) for batch, _ in world.rounds(selector))
    assert broken < 8 + 3
    assert selector.decision().best != 1
    assert np.isnan(selector.policy().scores(world.contexts[0])[1])


@route
def test_a_prompt_that_comes_again_or_out_of_turn_has_an_index_of_its_own(name):
    world = RouteWorld()
    selector = world.selector(name)
    batch = selector.ask(round_rng(0, 0), world.contexts[[5, 5]], examples=[5, 1])
    assert batch.examples.tolist() == [5, 1]
    assert selector.next_examples().tolist() == [0, 2, 3]
    with pytest.raises(PromptTaken, match="prompt 5 was already proposed or observed"):
        selector.ask(round_rng(0, 1), world.contexts[[5]], examples=[5])
    assert selector.next_examples().tolist() == [0, 2, 3]


UNIT = np.eye(6)
BAD_CONTEXTS = {
    "another dimension": (np.eye(5)[:1], r"shape \(B, 6\), got shape \(1, 5\)"),
    "no batch": (UNIT[0], r"shape \(B, 6\), got shape \(6,\)"),
    "not a number": (
        np.where(UNIT[:2] == 1.0, np.nan, 0.0),
        r"row 0 of the contexts must be finite, got nan",
    ),
    "infinite": (np.where(UNIT[:1] == 1.0, np.inf, 0.0), "must be finite, got inf"),
    "zero": (UNIT[:2] * [[1.0], [0.0]], "row 1 of the contexts must be of length 1.* got length 0"),
    "too long": (UNIT[:1] * 1.01, r"divide each by its length, got length 1\.01"),
    "words": (np.full((1, 6), "a"), "must be numbers, got dtype"),
}


@route
def test_contexts_that_cannot_be_used_are_refused_and_change_nothing(name):
    world = RouteWorld()
    selector, untouched = world.selector(name), world.selector(name)
    for contexts, message in BAD_CONTEXTS.values():
        with pytest.raises(UnusableContexts, match=message):
            selector.ask(round_rng(0, 0), contexts)
        with pytest.raises(UnusableContexts):
            selector.tell(
                RoutedBatch([0] * len(contexts), range(len(contexts)), contexts), np.zeros(len(contexts))
            )
    check_alike(world, selector, untouched)


BAD_ROUTES = {
    "arm outside": (RoutedBatch([4], [0], UNIT[:1]), [0.5], PairOutsideGrid),
    "negative arm": (RoutedBatch([-1], [0], UNIT[:1]), [0.5], PairOutsideGrid),
    "prompt outside": (RoutedBatch([0, 0], [0, 50], UNIT[:2]), [0.5, 0.5], PairOutsideGrid),
    "repeated pair": (RoutedBatch([0, 1, 0], [3, 3, 3], UNIT[:3]), [0.5] * 3, PairRepeated),
    "missing outcome": (RoutedBatch([0, 1], [0, 1], UNIT[:2]), [0.5], MalformedBatch),
    "matrix of outcomes": (RoutedBatch([0], [0], UNIT[:1]), [[0.5]], MalformedBatch),
    "duels": (RoutedBatch([[0, 1]], [0], UNIT[:1]), [0.5], MalformedBatch),
    "no contexts": (Batch([0], [0]), [0.5], MalformedBatch),
    "too high": (RoutedBatch([0, 1], [0, 1], UNIT[:2]), [0.5, 1.5], OutcomeOutOfRange),
    "too low": (RoutedBatch([0], [0], UNIT[:1]), [-1.1], OutcomeOutOfRange),
    "infinite": (RoutedBatch([0], [0], UNIT[:1]), [np.inf], OutcomeOutOfRange),
    "removed arm": (RoutedBatch([0, 3], [0, 1], UNIT[:2]), [0.5, 0.5], ArmRemoved),
}


@route
def test_a_tell_of_routes_that_cannot_be_right_is_refused_and_changes_nothing(name):
    world = RouteWorld()
    selector, untouched = world.selector(name), world.selector(name)
    for each in (selector, untouched):
        each.remove_arm(3)
    check_refused(world, BAD_ROUTES, selector, untouched)


@route
def test_an_added_arm_is_tried_and_what_was_learned_of_the_others_stays(name):
    world = RouteWorld(n_arms=5, n_examples=60)
    selector, whole = RouteWorld(n_examples=60).selector(name), world.selector(name)
    for batch, outcomes in list(world.rounds(world.selector(name, budget=30))):
        told = batch.arms < 4
        part = RoutedBatch(batch.arms[told], batch.examples[told], batch.contexts[told])
        for each in (selector, whole):
            each.tell(part, outcomes[told])
    before = selector.policy()
    assert selector.add_arm() == 4
    after, context = selector.policy(), world.contexts[0]
    np.testing.assert_allclose(after.scores(context)[:4], before.scores(context), rtol=1e-12)
    assert np.isnan(after.scores(context)[4])
    assert selector.decision() == whole.decision()
    assert any((batch.arms == 4).any() for batch, _ in world.rounds(selector))


@route
def test_a_removed_arm_is_chosen_no_more_and_its_pending_pairs_cannot_be_told(name):
    world = RouteWorld()
    selector = world.selector(name, batch_size=8, budget=20)
    batch = world.ask(selector, round_rng(0, 0))
    removed = int(batch.arms[0])
    selector.remove_arm(removed)
    with pytest.raises(ArmRemoved, match=f"arm {removed} was removed: tell the batch without"):
        selector.tell(batch, world.outcomes(batch))
    rest = batch.arms != removed
    selector.tell(
        RoutedBatch(batch.arms[rest], batch.examples[rest], batch.contexts[rest]),
        world.outcomes(batch)[rest],
    )
    later = [batch.arms for batch, _ in world.rounds(selector)]
    assert len(np.concatenate(later)) == 20 - rest.sum()
    assert removed not in np.concatenate(later)
    assert selector.decision().reason == "budget"
    assert selector.decision().best != removed


@route
def test_arms_that_cannot_be_removed_are_named(name):
    selector = RouteWorld(n_arms=2).selector(name)
    with pytest.raises(NoArmToRemove, match="arm 2 cannot be removed: the arms are 0 to 1"):
        selector.remove_arm(2)
    selector.remove_arm(0)
    with pytest.raises(NoArmToRemove, match="it was removed before"):
        selector.remove_arm(0)
    with pytest.raises(NoArmToRemove, match="it is the only arm left"):
        selector.remove_arm(1)


@route
def test_nothing_is_spent_on_prompts_that_have_not_come(name):
    world = RouteWorld()
    world.n_examples = 10**15
    selector = world.selector(name)
    for t in range(10):
        batch = selector.ask(round_rng(0, t), world.contexts[3 * t : 3 * t + 3])
        selector.tell(batch, world.outcomes(batch))
    assert selector.next_examples().tolist() == [30, 31, 32]
    assert not selector.decision().stop

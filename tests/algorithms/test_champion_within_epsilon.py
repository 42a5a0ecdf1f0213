"""The end of a race at an epsilon: its wealths in every order of a tiny table, and whole campaigns."""

from itertools import combinations, permutations

import numpy as np
import pytest
from failure_rates import fails_too_often
from selector_worlds import BestMeanWorld

from winnow.algorithms.champion import within_epsilon as module
from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.race import Race, log_growth
from winnow.algorithms.champion.switch import Goal, Mode, mode_of, race_costs_more
from winnow.algorithms.champion.within_epsilon import WithinEpsilon
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector

N, EPSILON = 5, 0.2
SCORES = np.array(
    [
        [1.0, 0.2, 0.8, 0.6, 0.4],  # is the best
        [0.0, 1.0, 0.0, 0.9, 0.1],  # is below it by epsilon
        [0.5, 0.0, 0.5, 0.0, 1.0],  # so is this one
    ]
)
ORDERS = list(permutations(range(N)))


def path(order, epsilon=EPSILON):
    """After each batch of a race, the best arm's wealth of 1 with regard to each other; shape (batches, 2).

    How many examples make a batch depends on the scores.
    """
    race = Race(3, N)
    within = WithinEpsilon(race, N, epsilon)
    left, found = list(order), []
    while left:
        size = 2 if found and found[-1][0] < 1.0 else 1
        race.tell(np.arange(3), SCORES[:, left[:size]])
        del left[:size]
        found.append([2.0 * within.wealths(np.array([0]), other)[0] for other in (1, 2)])
    return np.array(found)


def stopped(level):
    """Of every order, the wealths where the first of them reaches a level, or at the end."""
    return np.array([next((each for each in p if each.max() >= level), p[-1]) for p in map(path, ORDERS)])


@pytest.mark.parametrize("level", [1.1, 1.3, np.inf])
def test_an_arm_that_is_above_by_epsilon_has_a_mean_wealth_of_1_whenever_it_is_stopped(level):
    wealths = stopped(level)
    assert wealths.std(axis=0).min() > 0.01
    np.testing.assert_allclose(wealths.mean(axis=0), 1.0, rtol=1e-12)


def test_with_regard_to_one_chosen_in_sight_of_all_it_has_no_more_if_it_shares_its_stake():
    highest = stopped(1.3).max(axis=1)
    assert (highest / 2.0).mean() <= 1.0
    assert highest.mean() > 1.05  # a stake that is not shared is caught


def test_one_further_above_has_less_and_one_less_above_has_more():
    assert np.mean([path(order, EPSILON - 0.05)[-1] for order in ORDERS[::7]]) < 1.0
    assert np.mean([path(order, EPSILON + 0.05)[-1] for order in ORDERS[::7]]) > 1.0


def test_bets_that_forget_that_examples_are_drawn_without_replacement_are_caught(monkeypatch):
    def with_replacement(lead, level, grown, adaptive):
        return log_growth(lead, np.full_like(level, -EPSILON), grown, adaptive)

    monkeypatch.setattr(module, "log_growth", with_replacement)
    assert abs(stopped(np.inf).mean() - 1.0) > 0.005


def test_bets_that_are_made_in_sight_of_the_scores_are_caught(monkeypatch):
    def peeking(lead, level, grown, adaptive):
        is_won = lead.sum(axis=1, keepdims=True) > level.sum(axis=1, keepdims=True)
        return log_growth(lead, level, grown, np.where(is_won, adaptive, 0.0))

    monkeypatch.setattr(module, "log_growth", peeking)
    assert stopped(np.inf).mean() > 1.02


def literal(scores, other_scores, weights, n_examples, epsilon, starts):
    """V of an arm with regard to another one, example by example; batches begin at `starts`."""
    fixed, adaptive, bet = [1.0] * 4, 1.0, 0.0
    leads = np.nan_to_num(other_scores, nan=0.0) - np.nan_to_num(scores, nan=1.0)
    for t, lead in enumerate(leads):
        before, ahead = leads[:t], leads[:t] + epsilon
        if t in starts:
            mean = ahead.mean() if t else 0.0
            bet = max(mean, epsilon) / (((ahead**2).sum() + 0.1) / (t + 1))
        left = n_examples - weights[:t].sum()
        level = -(n_examples * epsilon + (weights[:t] * before).sum()) / left
        most = 0.8 / (1.0 + level)
        for k, each in enumerate((1.2, 0.5, 0.2, 0.07)):
            fixed[k] *= 1.0 + min(each * n_examples / left, most) * (lead - level)
        adaptive *= 1.0 + min(bet, most) * (lead - level)
    return 0.5 * np.mean(fixed) + 0.5 * adaptive


def test_the_wealths_are_those_of_the_formulas_written_out_whomever_they_are_asked_for():
    rng = np.random.default_rng(3)
    scores = np.round(rng.random((4, 30)), 2)
    scores[rng.random(scores.shape) < 0.1] = np.nan
    weights = rng.choice([0.5, 1.5], size=30)
    weights *= 30 / weights.sum()
    race, starts = Race(4, 30), [0, 2, 7, 19]
    within = WithinEpsilon(race, 30, 0.1)
    for first, end in zip(starts, [*starts[1:], 24], strict=True):
        race.tell(np.arange(4), scores[:, first:end], weights[first:end])
        other, arm = rng.permutation(4)[:2].tolist()
        wanted = literal(scores[arm, :end], scores[other, :end], weights[:end], 30, 0.1, starts)
        assert within.wealths(np.array([arm]), other)[0] == pytest.approx(wanted / 3.0, rel=1e-9)


def test_only_where_arms_of_one_mean_can_be_told_from_arms_epsilon_apart_it_is_bet_on():
    def share(n_arms, n_examples, start, epsilon):
        return mode_of(n_arms, n_examples, start, delta=0.05, epsilon=epsilon).within

    assert share(3, 4000, "auto", 0.05) == share(3, 4000, "race", 0.05) == 0.5
    assert share(3, 4000, "auto", 0.0) == share(3, 4000, "race", 0.0) == 0.0
    assert share(3, 4000, "champion", 0.05) == 0.0  # which does not race
    assert share(200, 4000, "auto", 0.05) == 0.0
    assert share(3, 4000, "auto", 0.005) == share(3, 4000, "race", 0.005) == 0.0


def test_a_race_that_an_epsilon_will_end_is_not_left_for_a_row():
    means, products = np.full(8, 0.6), np.full((8, 8), 0.45) + 0.15 * np.eye(8)
    for epsilon, is_left in ((0.06, False), (0.0, True)):
        goal = Goal.of(mode_of(8, 4000, "auto", delta=0.05, epsilon=epsilon), 8, 0.05, epsilon)
        found = race_costs_more(4000, 400, goal, means, products, 8, np.random.default_rng(0))
        assert found == is_left


def alike(rng, n_arms=3, n_examples=1000):
    """Arms of one mean."""
    row = np.arange(n_examples) < 0.6 * n_examples
    return rng.permuted(np.tile(row, (n_arms, 1)), axis=1).astype(float)


def played(selector, scores, seed):
    """Ask and tell until nothing is asked; how many pairs were told."""
    n_told, number = 0, 0
    while len(batch := selector.ask(round_rng(seed, number))):
        selector.tell(batch, scores[batch.arms, batch.examples])
        n_told, number = n_told + len(batch), number + 1
    return n_told


@pytest.mark.parametrize("name", ["champion", "race"])
def test_arms_that_are_alike_are_decided_upon_long_before_a_row_is_full(name):
    scores = alike(np.random.default_rng(5))
    selector = create_selector(name, n_arms=3, n_examples=1000, delta=0.05, epsilon=0.1, batch_size=32)
    assert played(selector, scores, seed=1) < 900
    decision = selector.decision()
    assert decision.claim.kind == "proven"
    assert sorted(decision.status) == ["best", "not-better", "not-better"]
    out = np.arange(3) != decision.best
    assert (selector.wealths[out] >= selector.levels[out]).all()
    assert selector.wealths[decision.best] < selector.levels[decision.best]


def ended_race(n_arms=3, n_examples=200):
    """Evidence of a race of arms that are alike, told until one is named; and what was told of which."""
    scores = alike(np.random.default_rng(6), n_arms, n_examples)
    mode = Mode(0.5, 1, leaves=True, within=0.5)
    evidence = Evidence(n_arms, n_examples, mode, level=5.0, epsilon=0.3)
    order, arms = np.random.default_rng(7).permutation(n_examples), np.arange(n_arms)
    for n_told, example in enumerate(order, 1):
        batch = Grouped.of(arms, np.full(n_arms, example), scores[:, example])
        evidence.tell_columns(batch, arms, scores[:, [example]])
        if evidence.is_decided:
            return evidence, scores, order[n_told:]
    raise AssertionError("nobody was named")


def test_where_the_row_of_another_arm_is_full_first_who_was_out_is_in_question_again():
    """It was in flight when the race ended: the others were shown to be near another arm, not this one."""
    evidence, scores, left = ended_race()
    named = int(np.flatnonzero(evidence.alive)[0])
    other, third = (arm for arm in range(3) if arm != named)
    assert evidence.is_out[[other, third]].all()
    assert not evidence.is_beaten.any()
    batch = Grouped.of(np.full(len(left), other), left, scores[other, left])
    evidence.tell(batch, np.isin(np.arange(200), left)[np.newaxis])
    assert evidence.champion == other
    assert evidence.is_out[third] == (evidence.wealths(np.array([third]))[0] >= 5.0)


def test_added_arms_put_in_question_again_who_was_out():
    evidence, _, _ = ended_race()
    evidence.add_arms(np.full(4, 5.0))
    assert evidence.alive.all()
    assert not evidence.is_decided


def test_they_do_not_so_once_the_row_of_who_was_named_is_full():
    evidence, scores, left = ended_race()
    named = int(np.flatnonzero(evidence.alive)[0])
    batch = Grouped.of(np.full(len(left), named), left, scores[named, left])
    evidence.tell(batch, np.isin(np.arange(200), left)[np.newaxis])
    evidence.add_arms(np.full(4, 5.0))
    assert np.flatnonzero(evidence.alive).tolist() == [named, 3]


def wealth_after_an_addition(order, n_columns, within):
    """Of the best arm of two, after a race and an added arm; whose row is then full follows from the race.

    Both others are below it by epsilon.
    """
    scores = np.array([[1.0, 0.0, 0.5, 0.5, 0.0], [0.0, 0.6, 0.0, 0.4, 0.0], [0.2] * 5])
    evidence = Evidence(2, N, Mode(0.5, 1, leaves=True, within=within), level=np.inf, epsilon=EPSILON)
    for example in order[:n_columns]:
        batch = Grouped.of(np.arange(2), np.full(2, example), scores[:2, example])
        evidence.tell_columns(batch, np.arange(2), scores[:2, [example]])
    is_behind = WithinEpsilon(evidence.race, N, EPSILON).wealths(np.array([0]), 1)[0] < 1.0
    evidence.add_arms(np.full(3, np.inf))
    filled = 2 if is_behind else 1
    left = np.setdiff1d(np.arange(N), [] if is_behind else order[:n_columns])
    batch = Grouped.of(np.full(len(left), filled), left, scores[filled, left])
    evidence.tell(batch, np.isin(np.arange(N), left)[np.newaxis])
    assert evidence.champion == filled
    return evidence.wealths(np.array([0]))[0]


@pytest.mark.parametrize("n_columns", [1, 2, 3])
def test_with_regard_to_an_arm_that_is_added_later_nothing_is_bet(n_columns):
    wealths = [wealth_after_an_addition(order, n_columns, 0.5) for order in ORDERS]
    assert np.mean(wealths) <= 1.0


@pytest.mark.parametrize("name", ["champion", "race"])
def test_arms_that_are_added_before_anything_is_told_share_the_stake_with_all_others(name):
    """Two examples show every pair of them on which one arm is right; the best is above all by epsilon."""
    n_examples = 14
    pairs = np.array([*combinations(range(n_examples), 2)])
    scores = np.zeros((1 + len(pairs), n_examples))
    scores[0] = 0.8 + 2.0 / n_examples + 1e-6
    scores[np.arange(1, len(scores))[:, np.newaxis], pairs] = 1.0
    for seed in range(3):
        selector = create_selector(
            name, n_arms=2, n_examples=n_examples, delta=0.2, epsilon=0.8, batch_size=1
        )
        selector.add_arms(len(scores) - 2)
        played(selector, scores, seed)
        decision = selector.decision()
        assert decision.best == 0 or decision.claim.kind not in ("exact", "proven")


def test_an_arm_without_a_score_is_not_named():
    scores = np.zeros((3, 200))
    scores[0] = np.nan
    selector = create_selector(
        "champion", n_arms=3, n_examples=200, delta=0.2, epsilon=0.3, batch_size=10, max_unscored=1.0
    )
    played(selector, scores, seed=0)
    assert selector.decision().best in (1, 2)


def test_a_dropped_arm_is_not_named_and_the_others_are_compared_without_it():
    evidence, _, _ = ended_race()
    named = int(np.flatnonzero(evidence.alive)[0])
    evidence.drop(np.arange(3) != named, np.full(3, 10.0))
    left = np.flatnonzero(evidence.active)
    assert evidence.alive[left].any()
    assert not evidence.alive[named]


DELTA, RUNS = 0.2, 80


def just_beyond(rng):
    """All arms but the best one are below it by little more than epsilon."""
    rights = np.array([78, 47, 47, 47])[:, np.newaxis]
    return rng.permuted(np.arange(120) < rights, axis=1).astype(float)


def chained(rng):
    """Each arm is within epsilon of the next one, and the last is not within it of the first."""
    base = rng.random(120)
    return np.array([base < level for level in (0.75, 0.53, 0.31)], dtype=float)


def unreadable_where_wrong(rng):
    scores = just_beyond(rng)
    scores[1:][(scores[1:] == 0.0) & (rng.random((3, 120)) < 0.5)] = np.nan
    return scores


def wrong_answers(worlds=(just_beyond, chained, unreadable_where_wrong), runs=RUNS, name="champion"):
    for seed in range(runs):
        scores = worlds[seed % len(worlds)](np.random.default_rng([81, seed]))
        world = BestMeanWorld(n_arms=len(scores), n_examples=120)
        world.scores = scores
        selector = world.selector(name, delta=DELTA, epsilon=0.25, batch_size=10, max_unscored=1.0)
        assert selector.evidence.mode.within > 0.0
        for _ in world.rounds(selector, seed=seed):
            pass
        decision, means = selector.decision(), np.nan_to_num(scores).mean(axis=1)
        yield decision.claim.kind in ("exact", "proven") and means[decision.best] < means.max() - 0.25 - 1e-9


@pytest.mark.statistical
@pytest.mark.parametrize("name", ["champion", "race"])
def test_answers_are_wrong_in_at_most_a_share_delta_of_campaigns(name):
    # Alarm at 36 of 80: a true rate of 0.7 is seen with probability above 0.9999.
    assert not fails_too_often(wrong_answers(name=name), RUNS, DELTA)


@pytest.mark.statistical
def test_the_check_catches_unscored_outputs_that_count_as_right_for_who_is_named(monkeypatch):
    tell = Race.tell

    def flattering(self, arms, scores, weights=None):
        tell(self, arms, np.nan_to_num(scores, nan=1.0), weights)

    monkeypatch.setattr(Race, "tell", flattering)
    assert fails_too_often(wrong_answers([unreadable_where_wrong]), RUNS, DELTA)

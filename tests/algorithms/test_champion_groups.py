"""Means of groups as what arms are compared by: whole campaigns of champion and race."""

from collections import deque
from copy import deepcopy

import numpy as np
import pytest
from failure_rates import fails_too_often
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries

from winnow.algorithms.best_mean import score_matrix
from winnow.algorithms.best_mean.groups import Groups, groups_of
from winnow.algorithms.best_mean.metrics import true_values
from winnow.algorithms.champion.draw_order import Grouped
from winnow.algorithms.champion.elimination import Evidence
from winnow.algorithms.champion.switch import mode_of
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector

DELTA, RUNS = 0.2, 80
TEST_BETS = (3.0, 1.0, 0.35, 0.12)


def world(seed, n_arms=4, n_examples=40, n_groups=3, unscored=0.0):
    """Scores of 0 and 1, and a group of each example, the groups of very different sizes."""
    rng = np.random.default_rng([41, seed])
    groups = np.minimum(rng.geometric(0.5, n_examples) - 1, n_groups - 1)
    groups[:n_groups] = np.arange(n_groups)
    groups = rng.permutation(groups)
    chances = np.clip(0.6 + rng.normal(0.0, 0.15, (n_arms, n_groups)), 0.05, 0.95)[:, groups]
    scores = (rng.random((n_arms, n_examples)) < chances).astype(float)
    scores[rng.random(scores.shape) < unscored] = np.nan
    return scores, groups


def selector_of(scores, groups, weights, name="champion", **params):
    n_arms, n_examples = scores.shape
    given = {"delta": DELTA, "batch_size": 8, "max_unscored": 1.0, **params}
    return create_selector(
        name, n_arms=n_arms, n_examples=n_examples, groups=groups, group_weights=weights, **given
    )


def ended(selector, scores, seed=0, ahead=0):
    """The decision at the end and how many pairs were asked, with rounds in flight beside the first."""
    in_flight, asked, told = deque(), 0, 0
    while True:
        while len(in_flight) <= ahead and len(batch := selector.ask(round_rng(seed, asked))):
            in_flight.append(batch)
            asked += 1
        if not in_flight:
            return selector.decision(), told
        batch = in_flight.popleft()
        selector.tell(batch, scores[batch.arms, batch.examples])
        told += len(batch)


WEIGHTS = {"weighted": np.array([1.0, 2.0, 1.0]), "worst": None}
both = pytest.mark.parametrize("weights", WEIGHTS.values(), ids=WEIGHTS)


def test_values_are_what_the_words_say():
    scores = np.array([[1.0, 0.0, 0.5, 1.0], [0.0, 1.0, 1.0, 0.25]])
    of_example = np.array([0, 0, 0, 1])
    weighted = true_values(scores, Groups.of(of_example, np.array([1.0, 3.0])))
    np.testing.assert_allclose(weighted, [0.875, 17 / 48])
    assert true_values(scores, Groups.of(of_example, None)).tolist() == [0.5, 0.25]
    sizes = np.array([3.0, 1.0])
    np.testing.assert_allclose(true_values(scores, Groups.of(of_example, sizes)), scores.mean(axis=1))
    lacking = np.array([[1.0, 0.0, 0.5, np.nan]])
    assert true_values(lacking, Groups.of(of_example, None)).tolist() == [0.5]


@both
def test_the_arm_with_the_highest_value_is_named_though_another_has_the_highest_mean(weights):
    groups = np.repeat([0, 1, 2], [60, 20, 20])
    scores = np.zeros((3, 100))
    scores[0, :60] = 1.0  # the highest mean
    for arm, share in ((1, 0.6), (2, 0.3)):
        for group in range(3):
            mine = np.flatnonzero(groups == group)
            scores[arm, mine[: round(share * len(mine))]] = 1.0
    scores[1, 0] = 0.0
    assert scores.mean(axis=1).argmax() == 0
    decision, told = ended(selector_of(scores, groups, weights), scores)
    assert (decision.best, decision.reason) == (1, "confident")
    assert decision.claim.kind in ("exact", "proven")
    assert told < scores.size
    values = true_values(scores, Groups.of(groups, weights))
    assert ((decision.lower <= values + 1e-9) & (values <= decision.upper + 1e-9)).all()


@pytest.mark.parametrize(
    ("name", "weights"), [("champion", np.ones(3)), ("race", np.ones(3)), ("champion", None)]
)
def test_equal_rows_are_tied_and_lacking_scores_leave_it_open(name, weights):
    rng = np.random.default_rng(5)
    row, groups = (rng.random(24) < 0.6).astype(float), np.arange(24) % 3
    scores = np.array([row, row, np.zeros(24)])
    for group in range(3):  # the same in each group, on other examples
        mine = groups == group
        scores[1, mine] = rng.permutation(row[mine])
    decision, _ = ended(selector_of(scores, groups, weights, name, delta=1e-6), scores)
    assert (decision.status[:2], decision.claim.kind) == (("tied", "tied"), "exact")
    scores[1, scores[1] == 0.0] = np.nan  # might have been right
    scores[1, [np.flatnonzero((scores[1] == 1.0) & (groups == each))[0] for each in range(3)]] = 0.0
    decision, _ = ended(selector_of(scores, groups, weights, name, delta=1e-6), scores)
    assert (decision.status[:2], decision.claim.kind) == (("active", "active"), "none")


@tries(12, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    weights=st.sampled_from([None, np.array([1.0, 5.0, 0.1]), np.array([1.0, 1.0, 1.0])]),
    batch_size=st.sampled_from([1, 5, 16]),
    unscored=st.sampled_from([0.0, 0.15]),
)
def test_wealths_are_those_of_the_formulas_and_never_less_at_a_higher_level(
    seed, weights, batch_size, unscored
):
    scores, groups = world(seed, unscored=unscored)
    selector = selector_of(
        scores, groups, weights, start="champion", delta=1e-290, batch_size=batch_size, epsilon=0.02
    )
    evidence, n_compared = selector.evidence, 0
    for round_ in range(60):
        batch = selector.ask(round_rng(seed, round_))
        if len(batch) == 0:
            break
        selector.tell(batch, scores[batch.arms, batch.examples])
        value = selector.decision().estimates
        assert ((value >= -1e-9) & (value <= 1.0 + 1e-9) | np.isnan(value)).all()
        if evidence.champion is None or round_ % 3:
            continue
        for arm in np.flatnonzero(evidence.alive):
            if arm != evidence.champion and not evidence._is_full()[arm]:
                level = evidence.total / scores.shape[1]
                found = [literal_wealth(evidence, groups, weights, arm, level + up) for up in (-0.05, 0.0)]
                np.testing.assert_allclose(evidence.wealths(np.array([arm]))[0], found[1], rtol=1e-9)
                assert found[0] <= found[1] * (1.0 + 1e-9)
                n_compared += 1
    lows = np.nan_to_num(scores)
    if evidence.champion is not None:
        value = true_values(lows, Groups.of(groups, weights))[evidence.champion]
        assert evidence.total / scores.shape[1] == pytest.approx(value + 0.02, abs=1e-9)


def literal_wealth(evidence, groups, weights, arm, level):
    """The average over what is tested by itself: all examples with their weights, or those of each group."""
    n, sizes = len(groups), np.bincount(groups)
    if weights is None:
        parts = [(np.flatnonzero(groups == each), np.ones(n)) for each in range(len(sizes))]
    else:
        parts = [(np.arange(n), (n * weights / weights.sum() / sizes)[groups])]
    return float(
        np.mean(
            [
                literal_part(evidence, arm * len(parts) + part, members, of_example, level)
                for part, (members, of_example) in enumerate(parts)
            ]
        )
    )


def literal_part(evidence, row, members, of_example, level):
    if evidence.draws.count[row] == 0:
        return 1.0
    told = evidence.draws.history(np.array([row]))
    total = of_example[members].sum()
    fixed, tested, entered, before, left = [1.0] * 4, 1.0, None, 0.0, total
    for place, example in enumerate(told.examples):
        x, control, most = (
            values[place] for values in (told.played.scores, told.played.control, told.played.most)
        )
        m = (total * level - before) / left
        cap = 0.8 / max(1.0 - m + most, 1e-9)
        if place == evidence._untested[row]:
            entered = np.mean(fixed)
        for each, bet in enumerate(TEST_BETS):
            fixed[each] *= 1.0 + min(bet * total / left, cap) * (m - x + control)
        if place >= evidence._untested[row]:
            tested *= 1.0 + min(told.played.adaptive[place], cap) * (m - x + control)
        before += of_example[example] * x
        left -= of_example[example]
    return 0.5 * np.mean(fixed) + 0.5 * (np.mean(fixed) if entered is None else entered) * tested


@both
@pytest.mark.parametrize("ahead", [0, 3])
def test_a_fresh_selector_that_is_told_the_same_goes_on_bit_for_bit(weights, ahead):
    scores, groups = world(3, n_examples=60, unscored=0.05)
    original, told_only = (selector_of(scores, groups, weights) for _ in range(2))
    in_flight, told, asked = deque(), 0, 0
    while True:
        resumed = deepcopy(told_only)
        for batch in in_flight:
            resumed.take_up(batch)
        assert resumed.decision() == original.decision()
        while len(in_flight) <= ahead and len(batch := original.ask(round_rng(7, asked))):
            assert resumed.ask(round_rng(7, asked)) == batch
            in_flight.append(batch)
            asked += 1
        if not in_flight:
            break
        batch = in_flight.popleft()
        for each in (original, told_only):
            each.tell(batch, scores[batch.arms, batch.examples])
        told += 1
    assert told > 5


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"groups": np.array([0, 2, 0, 2, 0, 0])}, "each of these at least once"),
        ({"groups": np.array([0, 1])}, "6 integers"),
        ({"groups": np.array([-1, 1, 0, 0, 0, 0])}, "each of these at least once"),
        ({"group_weights": np.ones(2)}, "None without groups"),
        ({"groups": np.arange(6) % 2, "group_weights": np.array([1.0, 0.0])}, "2 finite numbers above 0"),
        ({"groups": np.arange(6) % 2, "group_weights": np.ones(3)}, "2 finite numbers above 0"),
        (
            {"groups": np.arange(6) % 2, "group_weights": np.array([1.0, 1e7])},
            "at most 1000000 times",
        ),
        ({"groups": np.arange(6) % 2, "top_m": 2}, "1 if groups are compared"),
        ({"groups": np.arange(6) % 2, "start": "race"}, "for the least mean of groups"),
    ],
)
def test_what_are_no_groups_or_cannot_be_asked_of_them_is_refused(params, message):
    with pytest.raises(InvalidParameter, match=message):
        create_selector("champion", n_arms=3, n_examples=6, **params)


@pytest.mark.parametrize("scale", [1e308, 5e-324])
def test_weights_at_the_ends_of_what_floats_hold_are_as_good_as_any(scale):
    scores, groups = world(1, n_examples=24)
    weights = np.array([1.0, 1.0, 1.0])
    plain, told = ended(selector_of(scores, groups, weights), scores)
    assert ended(selector_of(scores, groups, scale * weights), scores) == (plain, told)


def test_groups_that_are_not_given_are_one_of_all():
    assert groups_of(None, None, 5).weights.tolist() == [1.0] * 5
    assert groups_of(None, None, 5).are_alike


def nearly_level(rng):
    """All arms are nearly level in each of eight groups; the first is better than the others by a hair."""
    groups = np.repeat(np.arange(8), 8)
    scores = np.zeros((4, 64))
    for group in range(8):
        for arm in range(4):
            scores[arm, 8 * group + rng.choice(8, 4, replace=False)] = 1.0
    for arm in (1, 2, 3):
        mine = 8 * int(rng.integers(8)) + np.arange(8)
        scores[arm, mine[np.flatnonzero(scores[arm, mine])[0]]] = 0.0
    return scores, groups


def rare_group(rng):
    """A group of few examples that counts as much as one of many decides against what the many say."""
    groups = np.repeat([0, 1], [8, 56])
    scores = np.zeros((4, 64))
    for arm, (few, many) in enumerate([(6, 26), (4, 38), (4, 38), (5, 30)]):
        scores[arm, rng.choice(8, few, replace=False)] = 1.0
        scores[arm, 8 + rng.choice(56, many, replace=False)] = 1.0
    return scores, groups


def hidden_where_wrong(rng):
    scores, groups = nearly_level(rng)
    scores[1:3][(scores[1:3] == 0.0) & (rng.random((2, 64)) < 0.4)] = np.nan
    return scores, groups


WORLDS = (nearly_level, rare_group, hidden_where_wrong)


def wrong_answers(is_weighted, name="champion", worlds=WORLDS, runs=RUNS, **params):
    """Whether a campaign claims an arm that is not the best, missing scores counting 0; worlds in turn."""
    for seed in range(runs):
        scores, groups = worlds[seed % len(worlds)](np.random.default_rng([43, seed]))
        weights = np.ones(groups.max() + 1) if is_weighted else None
        selector = selector_of(scores, groups, weights, name, **params)
        decision, _ = ended(selector, scores, seed, ahead=seed % 4)
        assert decision.claim.delta in (None, DELTA)
        values = true_values(np.nan_to_num(scores), Groups.of(groups, weights))
        yield decision.claim.kind in ("exact", "proven") and values[decision.best] < values.max() - 1e-9


@pytest.mark.statistical
@pytest.mark.parametrize(("is_weighted", "name"), [(True, "champion"), (True, "race"), (False, "champion")])
def test_answers_are_wrong_in_at_most_a_share_delta_of_campaigns(is_weighted, name):
    """False alarm 1e-6 each; alarm at 36 of 80."""
    assert not fails_too_often(wrong_answers(is_weighted, name), RUNS, DELTA)


def refuted(pick, paths=150, n_groups=8, size=24):
    """Whether an arm that is just as good as the filled row in every group is ever out."""
    groups = Groups.of(np.repeat(np.arange(n_groups), size), None)
    n, mode = n_groups * size, mode_of(2, n_groups * size, "champion", delta=0.05, epsilon=0.0)
    for path in range(paths):
        rng = np.random.default_rng([45, path])
        row = (np.arange(n) % 2).astype(float)
        scores = np.array([row, rng.permuted(row.reshape(n_groups, size), axis=1).ravel()])
        evidence = Evidence(2, n, mode, level=np.inf, epsilon=0.0, groups=groups)
        untold, highest = np.ones((2, n), dtype=bool), 0.0
        for arm, step in [(0, size), *[(1, 2)] * (size // 2 - 1)]:
            drawn = [
                rng.choice(np.flatnonzero(untold[arm] & (groups.part_of == each)), step, replace=False)
                for each in range(n_groups)
            ]
            examples = np.concatenate(drawn)
            rows = groups.row_of(np.full(len(examples), arm), examples)
            batch = Grouped.of(rows, examples, scores[arm, examples])
            parts = (batch.arms % n_groups)[:, np.newaxis]
            evidence.tell(batch, untold[[arm] * n_groups] & (groups.part_of == parts))
            untold[arm, examples] = False
            if arm == 1:
                highest = max(highest, pick(evidence._wealths.since_start(groups.rows_of(np.array([1])))))
        yield highest >= 1.0 / DELTA


@pytest.mark.statistical
def test_the_mean_of_the_groups_wealths_rarely_speaks_against_a_best_arm_and_the_best_of_them_often():
    """False alarm 1e-6: alarm at 56 of 150."""
    assert not fails_too_often(refuted(np.mean), 150, DELTA)
    assert fails_too_often(refuted(np.max), 150, DELTA)


@pytest.mark.statistical
def test_the_check_catches_uniform_draws_that_are_bet_on_as_weighted_ones(monkeypatch):
    def uniform(free, weights, size, rng):
        return rng.permutation(free)[:size]

    monkeypatch.setattr(score_matrix, "draw_weighted", uniform)
    assert fails_too_often(wrong_answers(True, worlds=[rare_group]), RUNS, DELTA)


@pytest.mark.statistical
@both
def test_no_interval_ever_misses_in_more_than_a_share_delta_of_campaigns(weights):
    def misses():
        for seed in range(RUNS):
            scores, groups = world(seed, n_arms=3, n_examples=30)
            values = true_values(scores, Groups.of(groups, weights))
            selector, failed = selector_of(scores, groups, weights), False
            for round_ in range(200):
                batch = selector.ask(round_rng(seed, round_))
                if len(batch) == 0:
                    break
                selector.tell(batch, scores[batch.arms, batch.examples])
                found = selector.decision()
                failed |= bool(((found.lower > values + 1e-9) | (found.upper < values - 1e-9)).any())
            yield failed

    assert not fails_too_often(misses(), RUNS, DELTA)

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from structured_duels import duels, published_instance, random_pairs, sigma, told_record

from algorithms.best_duel.bradley_terry_evidence import BradleyTerryEvidence
from algorithms.best_duel.feature_space import arm_points
from algorithms.best_duel.thresholds import practical_threshold
from algorithms.errors import InvalidParameter
from algorithms.protocols import Batch

ONE_HOT = np.array([[a, 1 - a, b == 0, b == 1, b == 2] for a in (0, 1) for b in (0, 1, 2)], dtype=float)


def random_rounds(features, theta, seed, rounds=6, size=20):
    rng = np.random.default_rng(seed)
    return [duels(features, theta, random_pairs(len(features), size, rng), rng) for _ in range(rounds)]


def evidence_after(features, rounds, **params):
    return BradleyTerryEvidence(*told_record(features, rounds, **params))


def fields(evidence):
    return [evidence.preferences, evidence.estimates, evidence.lower, evidence.upper, evidence.statistic]


@pytest.mark.parametrize("seed", range(3))
def test_statistic_and_intervals_follow_their_definitions(seed):
    features, theta = published_instance(seed, 5, 2)
    rounds = random_rounds(features, theta, seed)
    evidence = evidence_after(features, rounds, delta=0.1)
    x, t = arm_points(features), 120
    hessian = t**-0.5 * np.eye(2)
    log_odds = {(i, j): np.log(p / (1 - p)) for (i, j), p in np.ndenumerate(evidence.preferences)}
    for batch, _ in rounds:
        for i, j in batch.arms:
            chance = evidence.preferences[i, j]
            hessian += chance * (1 - chance) * np.outer(x[i] - x[j], x[i] - x[j])

    def squared_norm(i, j):
        return (x[i] - x[j]) @ np.linalg.solve(hessian, x[i] - x[j])

    best = max(range(5), key=lambda i: log_odds[i, 0])
    rivals = [i for i in range(5) if i != best]
    z = min(log_odds[i, best] ** 2 / (2 * squared_norm(i, best)) for i in rivals)
    reach = np.sqrt(2 * practical_threshold(0.1, t))
    assert evidence.best == best
    assert evidence.statistic == pytest.approx(z, rel=1e-4)
    for i in range(5):
        others = [j for j in range(5) if j != i]
        ends = [
            min(sigma(log_odds[i, j] + side * reach * np.sqrt(squared_norm(i, j))) for j in others)
            for side in (-1, 0, 1)
        ]
        assert [evidence.lower[i], evidence.estimates[i], evidence.upper[i]] == pytest.approx(ends, abs=1e-5)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 100.0))
def test_rotating_shifting_and_scaling_the_features_changes_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    features, theta = published_instance(seed, 6, 3)
    rounds = random_rounds(features, theta, seed, rounds=3)
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    moved = scale * features @ rotation + rng.normal(size=3)
    here, there = (evidence_after(x, rounds, delta=0.05, threshold="proven") for x in (features, moved))
    assert here.best == there.best
    for mine, theirs in zip(fields(here), fields(there), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-6, abs=1e-6)


def test_a_constant_and_a_repeated_column_change_nothing():
    features, theta = published_instance(0, 6, 3)
    rounds = random_rounds(features, theta, 0)
    wider = np.column_stack((features, np.ones(6)))
    for mine, theirs in zip(
        fields(evidence_after(features, rounds)), fields(evidence_after(wider, rounds)), strict=True
    ):
        assert mine == pytest.approx(theirs, rel=1e-6)


def test_one_hot_factors_are_told_apart_by_arms_that_never_met():
    theta = np.array([1.5, 0.0, 0.0, 1.0, 2.0])
    rng = np.random.default_rng(0)
    chain = np.tile([[0, 1], [1, 2], [2, 5], [5, 4], [4, 3]], (200, 1))
    evidence = evidence_after(ONE_HOT, [duels(ONE_HOT, theta, chain, rng)], delta=0.05)
    assert evidence.points.shape == (6, 3)
    assert evidence.best == 5
    assert evidence.is_separated
    assert evidence.preferences[5, 0] == pytest.approx(sigma(3.5), abs=0.03)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000))
def test_naming_the_arms_in_another_order_renames_the_answer(seed):
    features, theta = published_instance(seed, 5, 2)
    order = np.random.default_rng(seed).permutation(5)  # new name of each arm
    rounds = random_rounds(features, theta, seed, rounds=3)
    renamed = [(Batch(order[batch.arms], batch.examples), outcomes) for batch, outcomes in rounds]
    here, there = evidence_after(features, rounds), evidence_after(features[np.argsort(order)], renamed)
    assert there.best == order[here.best]
    assert there.estimates[order] == pytest.approx(here.estimates, abs=1e-6)
    assert there.preferences[np.ix_(order, order)] == pytest.approx(here.preferences, abs=1e-6)


def test_two_ties_are_a_win_and_a_loss():
    features, _ = published_instance(0, 3, 2)
    pairs = Batch([[0, 1], [0, 1], [1, 2]], [0, 0, 0])
    ties, halves = (evidence_after(features, [(pairs, outcomes)]) for outcomes in ([0.5, 0.5, 1], [1, 0, 1]))
    assert (ties.preferences == halves.preferences).all()


def test_unscored_duels_say_nothing():
    features, theta = published_instance(0, 4, 2)
    rounds = random_rounds(features, theta, 0)
    unscored = (Batch([[0, 1], [2, 3]], [0, 0]), [np.nan, np.nan])
    with_them, without = evidence_after(features, [*rounds, unscored]), evidence_after(features, rounds)
    assert with_them.statistic == pytest.approx(without.statistic, rel=1e-5)


def test_nothing_is_known_before_the_first_scored_duel():
    features, _ = published_instance(0, 3, 2)
    evidence = evidence_after(features, [(Batch([[0, 1]], [0]), [np.nan])], delta=0.05)
    assert evidence.best is None
    assert np.isnan(evidence.estimates).all()
    assert (evidence.lower == 0.0).all()
    assert (evidence.upper == 1.0).all()
    assert evidence.statistic == 0.0
    assert not evidence.is_separated


def test_an_arm_set_aside_is_neither_best_nor_waited_for():
    features, theta = published_instance(0, 4, 2)
    strongest = int((features @ theta).argmax())
    rng = np.random.default_rng(0)
    others = [arm for arm in range(4) if arm != strongest]
    broken = Batch([[strongest, others[place % 3]] for place in range(60)], [0] * 60)
    healthy = duels(features, 9.0 * theta, random_pairs(4, 400, rng), rng)
    evidence = evidence_after(features, [healthy, (broken, [np.nan] * 60)], max_unscored=0.05)
    assert evidence.best == max(others, key=lambda arm: features[arm] @ theta)


def test_a_direction_without_duels_keeps_the_best_arm_from_being_separated():
    features = np.array([[0.0, 0.0], [-1.0, 0.0], [-0.9, 0.01]])
    much = Batch([[0, 1]] * 3_000, [0] * 3_000), [1.0] * 2_500 + [0.0] * 500
    some = Batch([[0, 2]] * 100, [0] * 100), [1.0] * 85 + [0.0] * 15
    assert evidence_after(features, [much], delta=0.05).statistic > practical_threshold(0.05, 3_000)
    assert not evidence_after(features, [much], delta=0.05).is_separated
    assert evidence_after(features, [much, some], delta=0.05).is_separated


def test_the_proven_threshold_asks_for_more_than_the_practical_one():
    features, theta = published_instance(0, 4, 2)
    rounds = random_rounds(features, 6.0 * theta, 0, rounds=1, size=400)
    practical, proven = (
        evidence_after(features, rounds, delta=0.05, threshold=name) for name in ("practical", "proven")
    )
    assert (proven.lower < practical.lower).all()
    assert (proven.upper > practical.upper).all()


def test_a_setting_without_features_is_refused():
    setting, record = told_record(ONE_HOT, [])
    bare = type(setting)(n_arms=6, n_examples=1)
    with pytest.raises(InvalidParameter, match="features must be given"):
        BradleyTerryEvidence(bare, record)

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from structured_duels import duels, fitted, published_instance, random_pairs, sigma, told_record

from winnow.algorithms.best_duel.bradley_terry import Tally
from winnow.algorithms.best_duel.count_evidence import CountEvidence
from winnow.algorithms.claims import Claim
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.bradley_terry import evidence as bradley_terry_evidence
from winnow.algorithms.papers.bradley_terry import feature_space
from winnow.algorithms.papers.bradley_terry.bounds import half_space_suprema, least_log_odds
from winnow.algorithms.papers.bradley_terry.evidence import BradleyTerryEvidence
from winnow.algorithms.papers.bradley_terry.feature_space import arm_points
from winnow.algorithms.papers.bradley_terry.mixture import log_mixture
from winnow.algorithms.protocols import Batch

ONE_HOT = np.array([[a, 1 - a, b == 0, b == 1, b == 2] for a in (0, 1) for b in (0, 1, 2)], dtype=float)


def random_rounds(features, theta, seed, rounds=6, size=20):
    rng = np.random.default_rng(seed)
    return [duels(features, theta, random_pairs(len(features), size, rng), rng) for _ in range(rounds)]


def evidence_after(features, rounds, **params):
    return BradleyTerryEvidence(*told_record(features, rounds, **params))


def fields(evidence):
    return [evidence.preferences, evidence.estimates, evidence.lower, evidence.upper, evidence.statistic]


def tally_of(rounds, points):
    """Each duel in a row of its own."""
    arms = np.concatenate([batch.arms for batch, _ in rounds])
    outcomes = np.concatenate([outcomes for _, outcomes in rounds])
    scored = ~np.isnan(outcomes)
    return Tally(
        points[arms[:, 0]] - points[arms[:, 1]],
        np.where(scored, outcomes, 0.0),
        scored.astype(int),
        (~scored).astype(int),
    )


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_statistic_and_intervals_follow_their_definitions(seed, epsilon):
    features, theta = published_instance(seed, 5, 2)
    rounds = random_rounds(features, 3.0 * theta, seed)
    evidence = evidence_after(features, rounds, delta=0.1, epsilon=epsilon)
    points = arm_points(features)
    tally = tally_of(rounds, points)
    fit = fitted(tally)
    mixed = log_mixture(tally, fit.theta)
    best = int((points @ fit.theta).argmax())
    lead = np.log((0.5 + epsilon) / (0.5 - epsilon))
    highest = half_space_suprema(tally, np.delete(points, best, axis=0) - points[best], lead, fit).max()
    assert evidence.best == best
    assert evidence.statistic == pytest.approx(mixed - highest, abs=1e-3)
    level = mixed - np.log(1.0 / 0.09)
    least = np.full((5, 5), np.inf)
    for i in range(5):
        others = [j for j in range(5) if j != i]
        least[i, others] = least_log_odds(tally, points[i] - points[others], fit, level)
        estimate = min(sigma((points[i] - points[j]) @ fit.theta) for j in others)
        assert evidence.estimates[i] == pytest.approx(estimate, abs=1e-6)
    for i in range(5):
        others = [j for j in range(5) if j != i]
        assert evidence.lower[i] == pytest.approx(sigma(least[i, others].min()), abs=2e-3)
        assert evidence.upper[i] == pytest.approx(sigma(-least[others, i].max()), abs=2e-3)


@tries(25)
@given(st.integers(0, 10_000), st.integers(1, 6), st.floats(0.1, 8.0))
def test_an_estimate_lies_in_its_interval(seed, rounds, steepness):
    features, theta = published_instance(seed, 5, 2)
    told = random_rounds(features, steepness * theta, seed, rounds=rounds)
    told[0][1][:2] = np.nan
    evidence = evidence_after(features, told, delta=0.9)
    assert (evidence.lower <= evidence.estimates).all()
    assert (evidence.estimates <= evidence.upper).all()
    assert (evidence.lower >= 0.0).all()
    assert (evidence.upper <= 1.0).all()


@tries(20)
@given(st.integers(0, 10_000), st.floats(1e-3, 1e3))
def test_shifting_and_scaling_a_column_changes_nothing(seed, scale):
    rng = np.random.default_rng(seed)
    features, theta = published_instance(seed, 6, 3)
    rounds = random_rounds(features, theta, seed, rounds=3)
    moved = features * np.array([scale, 1.0, -1.0]) + rng.normal(size=3)
    here, there = (evidence_after(x, rounds, delta=0.05) for x in (features, moved))
    assert here.best == there.best
    for mine, theirs in zip(fields(here), fields(there), strict=True):
        assert mine == pytest.approx(theirs, rel=1e-3, abs=2e-3)


def test_columns_of_unequal_scale_would_cost_evidence_if_they_were_not_standardised(monkeypatch):
    features, theta = published_instance(2, 5, 2)
    rounds = random_rounds(features, 6.0 * theta, 2)
    features = features * np.array([0.001, 1.0])
    standardised = evidence_after(features, rounds, delta=0.05)
    monkeypatch.setattr(feature_space, "_standardise", lambda x: x - x.mean(axis=0))
    assert evidence_after(features, rounds, delta=0.05).statistic < standardised.statistic - 3.0


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


@tries(20)
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


def test_unscored_duels_leave_the_estimates_and_make_everything_less_sure():
    features, theta = published_instance(0, 4, 2)
    rounds = random_rounds(features, theta, 0)
    unscored = (Batch([[0, 1], [2, 3]], [0, 0]), [np.nan, np.nan])
    with_them, without = evidence_after(features, [*rounds, unscored]), evidence_after(features, rounds)
    assert with_them.estimates == pytest.approx(without.estimates, abs=1e-6)
    assert with_them.statistic < without.statistic - 1.0
    assert (with_them.lower <= without.lower + 1e-6).all()
    assert (with_them.upper >= without.upper - 1e-6).all()


def test_nothing_is_known_before_the_first_scored_duel():
    features, _ = published_instance(0, 3, 2)
    evidence = evidence_after(features, [(Batch([[0, 1]], [0]), [np.nan])], delta=0.05)
    assert evidence.best is None
    assert np.isnan(evidence.estimates).all()
    assert (evidence.lower == 0.0).all()
    assert (evidence.upper == 1.0).all()
    assert evidence.statistic == 0.0
    assert not evidence.is_separated


def test_a_dropped_arm_is_neither_best_nor_waited_for():
    features, theta = published_instance(0, 4, 2)
    strongest = int((features @ theta).argmax())
    rng = np.random.default_rng(0)
    others = [arm for arm in range(4) if arm != strongest]
    broken = Batch([[strongest, others[place % 3]] for place in range(60)], [0] * 60)
    healthy = duels(features, 9.0 * theta, random_pairs(4, 400, rng), rng)
    evidence = evidence_after(features, [healthy, (broken, [np.nan] * 60)], max_unscored=0.05)
    assert evidence.best == max(others, key=lambda arm: features[arm] @ theta)


def test_an_arm_set_apart_by_a_direction_without_duels_keeps_the_best_arm_from_being_known():
    features = np.array([[0.0, 0.0], [-1.0, 0.0], [-0.9, 1.0]])
    much = Batch([[0, 1]] * 300, [0] * 300), [1.0] * 250 + [0.0] * 50
    some = Batch([[0, 2]] * 100, [0] * 100), [1.0] * 85 + [0.0] * 15
    assert not evidence_after(features, [much], delta=0.05).is_separated
    assert evidence_after(features, [much, some], delta=0.05).is_separated


def test_beaten_arms_are_those_whose_whole_interval_is_below_one_half():
    features, theta = published_instance(1, 5, 2)
    evidence = evidence_after(features, random_rounds(features, 9.0 * theta, 1, rounds=20), delta=0.1)
    assert evidence.is_separated
    others = np.arange(5) != evidence.best
    assert (evidence.beaten == (evidence.upper < 0.5)).all()
    assert (evidence.beaten == others).all()


def test_the_claim_names_the_model_and_the_whole_delta_also_when_arms_were_dropped():
    features, theta = published_instance(0, 4, 2)
    broken = Batch([[0, 1 + place % 3] for place in range(60)], [0] * 60), [np.nan] * 60
    evidence = evidence_after(features, [broken, *random_rounds(features, theta, 0)], delta=0.05)
    assert evidence.claim == Claim(kind="proven", delta=0.05, assumptions=("bradley-terry",))


INTERACTING = np.array([1.0, -2.0, 0.8, 0.6])
SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])


def interacting_rounds(n_rounds):
    rng = np.random.default_rng(0)
    return [duels(np.eye(4), INTERACTING, random_pairs(4, 50, rng), rng) for _ in range(n_rounds)]


def test_a_refuted_model_gives_way_to_counts_for_good():
    setting, record = told_record(SQUARE, [], delta=0.05)
    evidence = BradleyTerryEvidence(setting, record)
    for batch, outcomes in interacting_rounds(20):
        record.tell(batch, outcomes)
        evidence.update()
    by_counts = evidence.in_force
    assert evidence.is_refuted
    assert isinstance(by_counts, CountEvidence)
    assert by_counts.claim == Claim(kind="proven", delta=0.05)
    counted = CountEvidence(setting, told_record(SQUARE, interacting_rounds(20))[1])
    assert (by_counts.estimates == counted.estimates).all()


def test_a_model_that_holds_stays_in_force():
    features, theta = published_instance(0, 5, 2)
    evidence = evidence_after(features, random_rounds(features, theta, 0, rounds=30), delta=0.05)
    assert not evidence.is_refuted
    assert evidence.in_force is evidence


def test_no_arm_is_known_while_the_duels_favour_the_model_without_features(monkeypatch):
    utilities = np.array([2.0, 0.0, 0.0, 0.0])
    duelled = np.repeat(np.argwhere(np.triu(np.ones((4, 4)), 1)), 20, axis=0)
    shares = sigma(utilities[duelled[:, 0]] - utilities[duelled[:, 1]])
    setting, record = told_record(SQUARE, [(Batch(duelled, [0] * 120), shares)], delta=0.9)
    evidence = BradleyTerryEvidence(setting, record)
    beliefs = evidence._beliefs
    assert beliefs.statistic >= beliefs.price
    assert not evidence.is_refuted
    assert not evidence.is_separated
    monkeypatch.setattr(bradley_terry_evidence, "log_unstructured_mixture", lambda tally, z: -np.inf)
    assert BradleyTerryEvidence(setting, record).is_separated


def test_a_setting_without_features_is_refused():
    setting, record = told_record(ONE_HOT, [])
    bare = type(setting)(n_arms=6, n_examples=1)
    with pytest.raises(InvalidParameter, match="features must be an array"):
        BradleyTerryEvidence(bare, record)

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from scipy.special import logsumexp
from scipy.stats import norm
from structured_duels import duels, fitted, published_instance, random_pairs, sigma, told_record

from winnow.algorithms.best_duel.bradley_terry import evidence as bradley_terry_evidence
from winnow.algorithms.best_duel.bradley_terry import late_starts
from winnow.algorithms.best_duel.bradley_terry.evidence import BradleyTerryEvidence
from winnow.algorithms.best_duel.bradley_terry.late_starts import (
    LateStarts,
    Pooled,
    laplace_log_integral,
    pool,
)
from winnow.algorithms.best_duel.bradley_terry.mixture import SCALES
from winnow.algorithms.best_duel.bradley_terry.model import Tally, log_likelihood

R = 4  # coordinates that the weights are made for, where theta has one, to be integrated over
Z = np.array([[-1.0], [0.5], [1.5]])


@pytest.fixture
def early(monkeypatch):
    """Mixtures begin after 2, 4, 8, … duels."""
    monkeypatch.setattr(late_starts, "FIRST", 2)


def literal_log_integral(part):
    """By summing over a fine grid, for a single coordinate."""
    normals = [(0.0, scale) for scale in SCALES]
    if part.prior is not None:
        normals = [(part.prior.means[0, 0], part.prior.precisions[0, 0, 0] ** -0.5)]
    values = []
    for mean, scale in normals:
        thetas, step = np.linspace(mean - 12.0 * scale, mean + 12.0 * scale, 2_001, retstep=True)
        found = log_likelihood(part.tally, thetas[:, np.newaxis]) + norm.logpdf(thetas, mean, scale)
        values.append(logsumexp(found) + np.log(step))
    return logsumexp(values) - np.log(len(normals))


def literal_e(parts, theta):
    """E(theta) as it is defined, but for mixtures that count nothing yet."""
    logs = [part.log_weight + literal_log_integral(part) for part in parts]
    return np.exp(
        [log - log_likelihood(part.tally, np.array([theta])) for log, part in zip(logs, parts, strict=True)]
    ).sum()


def begun(outcomes, pair_of):
    """Mixtures and the tally after duels one by one.

    Args:
        outcomes: 0 or 1 each.
        pair_of: Which row of Z duels, given the fitted theta and how many duels there were.

    Returns:
        The mixtures, all that was told, and the rows of Z.
    """
    starts, pairs = LateStarts(R), []
    wins, counts = np.zeros(3), np.zeros(3)
    told = Tally(Z, wins, counts, np.zeros(3, int))
    for duel, won in enumerate(outcomes):
        fit = fitted(told, ridge=0.5)
        starts.begin(told, fit)
        pairs.append(pair_of(float(fit.theta[0]), duel))
        wins[pairs[-1]] += won
        counts[pairs[-1]] += 1.0
        told = Tally(Z, wins.copy(), counts.copy(), np.zeros(3, int))
    return starts, told, pairs


def by_score(at, duel):
    return (1 if at > 0.3 else 2) if duel % 3 else 0


def mean_of_e(theta, parts_of=LateStarts.parts):
    """The mean of E(theta) after seven duels, over all that may come of them."""
    total = 0.0
    for outcomes in product((0, 1), repeat=7):
        starts, told, pairs = begun(outcomes, by_score)
        wins = sigma(theta * Z[pairs, 0])
        chance = np.where(outcomes, wins, 1.0 - wins).prod()
        parts = parts_of(starts, told)
        unbegun = 1.0 - np.exp([part.log_weight for part in parts]).sum()
        total += chance * (literal_e(parts, theta) + unbegun)
    return total


@pytest.mark.parametrize("theta", [0.0, 0.8, -2.0])
def test_the_mean_of_e_at_the_truth_is_one_over_all_outcomes(early, theta):
    assert mean_of_e(theta) == pytest.approx(1.0, abs=1e-6)


def test_duels_that_taught_a_prior_may_not_be_counted(early):
    def everything(starts, told):
        return [part._replace(tally=told) for part in LateStarts.parts(starts, told)]

    assert mean_of_e(0.8, everything) > 1.05


@tries(30)
@given(st.integers(0, 10_000), st.integers(5, 60), st.floats(-3.0, 3.0))
def test_what_is_pooled_is_at_most_e_for_every_theta(seed, n_duels, truth):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(3, size=n_duels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(late_starts, "FIRST", 2)
        starts, told, _ = begun(
            (rng.random(n_duels) < sigma(truth * Z[pairs, 0])) * 1, lambda at, duel: pairs[duel]
        )
    parts = starts.parts(told)
    pooled = pool(parts, fitted(told).theta, rng.normal(size=(2, 1)))
    assert len(parts) > 1
    for theta in (*rng.normal(scale=3.0, size=10), truth):
        bound = pooled.log_mixture - log_likelihood(pooled.tally, np.array([theta]))
        assert bound <= np.log(literal_e(parts, theta)) + 1e-6


@pytest.mark.parametrize("there", [-0.5, 0.0, 1.5])
def test_what_is_pooled_is_sharp_where_it_is_asked_for(there, early):
    rng = np.random.default_rng(0)
    starts, told, _ = begun((rng.random(300) < 0.6) * 1, lambda at, duel: duel % 3)
    parts = starts.parts(told)
    pooled = pool(parts, fitted(told).theta, np.array([[there]]))
    bound = pooled.log_mixture - float(log_likelihood(pooled.tally, np.array([there])))
    assert len(parts) == 1 + late_starts.KEPT
    assert bound == pytest.approx(np.log(literal_e(parts, there)), abs=0.1)


def test_mixtures_begin_at_doublings_and_their_weights_sum_to_one_at_most(monkeypatch):
    starts, r = LateStarts(6), 6
    z, nothing = np.eye(r), np.zeros(r, int)
    seen = {}
    for n in range(1, 70_000, 7):
        told = Tally(z, np.full(r, n / 2.0 / r), np.full(r, n / r), nothing)
        starts.begin(told, fitted(told, ridge=1.0))
        for part in starts.parts(told)[1:]:
            seen[part.log_weight] = float(part.tally.counts.sum()) - n
        assert len(starts.parts(told)) <= 1 + late_starts.KEPT
    assert len(seen) == 11
    assert -np.array(sorted(seen.values(), reverse=True)) == pytest.approx(64.0 * 2.0 ** np.arange(11), abs=8)
    assert np.exp(list(seen)).sum() + np.exp(starts.parts(told)[0].log_weight) < 1.0


@pytest.mark.parametrize("r", [1, 2])
def test_with_few_coordinates_none_begins_late(r):
    starts = LateStarts(r)
    told = Tally(np.eye(r), np.full(r, 500.0), np.full(r, 900.0), np.zeros(r, int))
    starts.begin(told, fitted(told))
    assert [(part.log_weight, part.prior) for part in starts.parts(told)] == [(0.0, None)]


@pytest.mark.parametrize("seed", range(4))
def test_duels_without_a_score_count_at_most_as_the_worst_outcomes_would(seed, early):
    rng = np.random.default_rng(seed)
    starts, before, _ = begun(rng.integers(2, size=20), lambda at, duel: duel % 3)
    missing = np.array([1, 2, 1])
    part = starts.parts(before._replace(unscored=missing))[-1]
    found = part.log_mixture(np.zeros(1))
    for gained in product(*(range(most + 1) for most in missing)):
        tally = part.tally._replace(
            wins=part.tally.wins + gained, counts=part.tally.counts + missing, unscored=0 * missing
        )
        assert found <= literal_log_integral(part._replace(tally=tally)) + 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_the_quick_value_is_near_the_bound(seed):
    features, theta = published_instance(seed, 8, 4)
    rng = np.random.default_rng(seed)
    config, record = told_record(features, [])
    evidence = BradleyTerryEvidence(config, record)
    for _ in range(12):
        record.tell(*duels(features, theta, random_pairs(8, 50, rng), rng))
        evidence.update()
    beliefs = evidence._beliefs
    late = beliefs.parts[1:]
    assert len(late) == late_starts.KEPT
    for part in late:
        about = laplace_log_integral(part, beliefs.fit.theta)
        assert about == pytest.approx(part.log_mixture(beliefs.fit.theta), abs=0.3)


def duels_until_known(features, theta, seed):
    rng = np.random.default_rng(seed)
    config, record = told_record(features, [], delta=0.05)
    evidence = BradleyTerryEvidence(config, record)
    while not evidence.is_separated:
        record.tell(*duels(features, theta, random_pairs(len(features), 50, rng), rng))
        evidence.update()
    assert evidence.best == (features @ theta).argmax()
    assert evidence.lower[evidence.best] >= 0.5
    return record.n_told


def test_late_starts_save_a_fifth_of_the_duels_of_many_coordinates(monkeypatch):
    features, theta = published_instance(5, 10, 6)
    with_them = [duels_until_known(features, 3.0 * theta, seed) for seed in range(4)]
    monkeypatch.setattr(late_starts, "FEWEST", 7)
    without = [duels_until_known(features, 3.0 * theta, seed) for seed in range(4)]
    assert sum(with_them) < 0.8 * sum(without)


def test_a_set_without_any_theta_refutes_the_model_and_nobody_is_known(monkeypatch):
    features, theta = published_instance(0, 6, 4)
    told = [
        duels(features, 9.0 * theta, random_pairs(6, 400, np.random.default_rng(0)), np.random.default_rng(1))
    ]
    assert BradleyTerryEvidence(*told_record(features, told, delta=0.05)).is_separated

    def too_much(parts, theta, rivals):
        pooled = pool(parts, theta, rivals)
        return Pooled(tally=pooled.tally, log_mixture=pooled.log_mixture + 300.0)

    monkeypatch.setattr(bradley_terry_evidence, "pool", too_much)
    evidence = BradleyTerryEvidence(*told_record(features, told, delta=0.05))
    assert evidence.statistic > 300.0
    assert not evidence.is_separated
    assert evidence.is_refuted

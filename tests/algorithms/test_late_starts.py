from collections import Counter
from copy import deepcopy
from functools import cache
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries
from scipy.special import logsumexp
from scipy.stats import norm
from structured_duels import duels, fitted, published_instance, random_pairs, sigma, told_record

from winnow.algorithms.best_duel.bradley_terry import Tally, log_likelihood
from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.papers.bradley_terry import evidence as bradley_terry_evidence
from winnow.algorithms.papers.bradley_terry import mixture
from winnow.algorithms.papers.bradley_terry.evidence import BradleyTerryEvidence
from winnow.algorithms.papers.bradley_terry.mixture import (
    SCALES,
    LateStarts,
    Normals,
    Pooled,
    laplace_log_integral,
    pool,
)
from winnow.algorithms.protocols import Batch

R = 4  # coordinates that the weights are made for, where theta has one, to be integrated over
Z = np.array([[-1.0], [0.5], [1.5]])


@pytest.fixture
def early(monkeypatch):
    """Mixtures begin after 2, 4, 8, … duels."""
    monkeypatch.setattr(mixture, "FIRST", 2)


def literal_log_integral(part):
    """By summing over a fine grid, for a single coordinate."""
    means, deviations = np.zeros(len(SCALES)), SCALES
    if part.prior is not None:
        means, deviations = part.prior.means[0], part.prior.precisions[0, 0] ** -0.5
    grid, step = np.linspace(-12.0, 12.0, 2_001, retstep=True)
    thetas = means[:, np.newaxis] + deviations[:, np.newaxis] * grid  # (normals, points)
    found = log_likelihood(part.tally, thetas[..., np.newaxis]) + norm.logpdf(grid)
    return logsumexp(found) + np.log(step) - np.log(len(means))


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


FEATURES, PAIRS = np.array([[-1.0], [0.0], [1.5]]), np.array([[0, 1], [2, 1], [0, 2]])


class Path(NamedTuple):
    """What may come of the first duels."""

    arms: np.ndarray
    outcomes: np.ndarray
    ways: int  # in which this may come in other orders of duels that are told at once
    evidence: BradleyTerryEvidence
    record: DuelRecord


@cache
def told_paths(size, ties):
    """Whatever may come of six duels of three arms, told in groups of this size.

    Those that begin alike share what they have in common. All tests have mixtures begin as `half_late` says.
    """
    config, record = told_record(FEATURES, [])
    paths = [Path(np.zeros((0, 2), int), np.zeros(0), 1, BradleyTerryEvidence(config, record), record)]
    for first in range(0, 6, size):
        paths = [longer for path in paths for longer in continued(path, first, size, ties)]
    return paths


def continued(path, first, size, ties):
    """A path with every outcome of its next duels; which pairs duel depends on what was told before."""
    score = 0.0 if first == 0 else path.evidence.scores[0]
    pairs = [by_score(score, duel) for duel in range(first, first + size)]
    found = product((0.0, 0.5, 1.0) if ties else (0.0, 1.0), repeat=size)
    ways = Counter(tuple(sorted(zip(pairs, outcomes, strict=True))) for outcomes in found)
    for told, more_ways in ways.items():
        arms, outcomes = PAIRS[[pair for pair, _ in told]], np.array([outcome for _, outcome in told])
        evidence, record = deepcopy((path.evidence, path.record))
        record.tell(Batch(arms, [0] * size), outcomes)
        evidence.update()
        yield Path(
            np.vstack([path.arms, arms]),
            np.append(path.outcomes, outcomes),
            path.ways * more_ways,
            evidence,
            record,
        )


def mean_of_e(theta, *, size=1, ties=0.0, parts_of=lambda evidence: evidence._beliefs.parts):
    """The mean of E(theta) after six duels of three arms, over all that may come of them.

    Args:
        theta: Of the arms' one feature, as it is standardised.
        size: Duels that are told at once.
        ties: Share of the less likely outcome, and as much of the other, that is a tie.
        parts_of: What each mixture counts.
    """
    total = 0.0
    for arms, outcomes, ways, evidence, _ in told_paths(size, ties > 0.0):
        win = sigma(theta * (evidence.points[arms[:, 0], 0] - evidence.points[arms[:, 1], 0]))
        tie = ties * np.minimum(win, 1.0 - win)
        likely = np.select([outcomes == 0.5, outcomes == 1.0], [2.0 * tie, win - tie], 1.0 - win - tie).prod()
        parts = parts_of(evidence)
        unbegun = 1.0 - np.exp([part.log_weight for part in parts]).sum()
        total += ways * likely * (literal_e(parts, theta) + unbegun)
    return total


@pytest.fixture
def half_late(early, monkeypatch):
    """Mixtures that begin late have half of the weights, also where theta has one coordinate."""
    monkeypatch.setattr(mixture, "late_weight", lambda r: 0.5)


@pytest.mark.parametrize("theta", [0.0, 0.8, -2.0])
@pytest.mark.parametrize("size", [1, 2])
def test_the_mean_of_e_at_the_truth_is_one_over_all_outcomes(half_late, theta, size):
    assert mean_of_e(theta, size=size) == pytest.approx(1.0, abs=1e-6)


def test_ties_make_it_less(half_late):
    assert 0.5 < mean_of_e(0.8, size=3, ties=0.5) < 1.0 - 1e-3


def broken_parts(kind):
    """What mixtures must not count, or begin from."""

    def parts(evidence):
        beliefs = evidence._beliefs
        first, *late = beliefs.parts
        if kind == "all duels":
            late = [part._replace(tally=first.tally) for part in late]
        else:
            prior = Normals(beliefs.fit.theta[np.newaxis], beliefs.fit.hessian[np.newaxis])
            late = [part._replace(prior=prior) for part in late]
        return [first, *late]

    return parts


@pytest.mark.parametrize("kind", ["all duels", "the last fit"])
def test_duels_that_taught_a_prior_may_not_be_counted(half_late, kind):
    assert mean_of_e(0.8, parts_of=broken_parts(kind)) > 1.01


@tries(30)
@given(st.integers(0, 10_000), st.integers(5, 60), st.floats(-3.0, 3.0))
def test_what_is_pooled_is_at_most_e_for_every_theta(seed, n_duels, truth):
    rng = np.random.default_rng(seed)
    pairs = rng.integers(3, size=n_duels)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mixture, "FIRST", 2)
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
    assert len(parts) == 1 + mixture.KEPT
    assert bound == pytest.approx(np.log(literal_e(parts, there)), abs=0.1)


@pytest.mark.parametrize("r", [3, 4, 6, 40])
def test_mixtures_begin_at_doublings_with_weights_that_are_fixed_and_sum_to_one(r):
    starts, late = LateStarts(r), min(0.6, (r - 2) / (r + 1))
    seen = {}
    for n in range(1, 9_000, 7):
        told = Tally(np.eye(r), np.full(r, n / 2.0 / r), np.full(r, n / r), np.zeros(r, int))
        starts.begin(told, fitted(told, ridge=1.0))
        for part in starts.parts(told)[1:]:
            seen[part.log_weight] = n - float(part.tally.counts.sum())
        assert len(starts.parts(told)) <= 1 + mixture.KEPT
    shares = late * 0.15 * 0.85 ** np.arange(8)  # of infinitely many, which sum to late
    assert np.exp(list(seen)) == pytest.approx(shares, rel=1e-9)
    assert list(seen.values()) == pytest.approx(64.0 * 2.0 ** np.arange(8), abs=8)
    assert np.exp(starts.parts(told)[0].log_weight) == pytest.approx(1.0 - late)


def test_a_tell_that_skips_doublings_begins_one_mixture():
    starts = LateStarts(6)
    for n in (1_000, 1_001, 2_100):
        told = Tally(np.eye(6), np.full(6, n / 12.0), np.full(6, n / 6.0), np.zeros(6, int))
        starts.begin(told, fitted(told, ridge=1.0))
    assert [part.tally.counts.sum() for part in starts.parts(told)] == pytest.approx([2_100.0, 1_100.0])


def test_outcomes_whose_sums_are_rounded_are_no_evidence():
    # 15.1 + 1 - 15.1 is more than 1: the second tenth of these outcomes would else be won more than wholly.
    starts = LateStarts(3)
    before = Tally(np.eye(3), np.array([15.1, 30.0, 30.0]), np.full(3, 31.0), np.zeros(3, int))
    starts.begin(before, fitted(before))
    told = before._replace(wins=before.wins + np.array([1.0, 0.5, 0.5]), counts=before.counts + 1.0)
    part = starts.parts(told)[-1]
    assert (told.wins - before.wins)[0] > 1.0
    assert part.tally.wins[0] == 1.0


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
    assert len(late) == mixture.KEPT
    for part in late:
        about = laplace_log_integral(part, beliefs.fit.theta)
        assert about == pytest.approx(part.log_mixture(beliefs.fit.theta), abs=0.3)


def duels_until_known(features, theta, seed):
    rng = np.random.default_rng(seed)
    config, record = told_record(features, [], delta=0.05)
    evidence = BradleyTerryEvidence(config, record)
    while not evidence.is_separated:
        record.tell(*duels(features, theta, random_pairs(len(features), 100, rng), rng))
        evidence.update()
    assert evidence.best == (features @ theta).argmax()
    assert evidence.lower[evidence.best] >= 0.5
    return record.n_told


def test_late_starts_save_a_fifth_of_the_duels_of_many_coordinates(monkeypatch):
    features, theta = published_instance(5, 10, 6)
    with_them = [duels_until_known(features, 3.0 * theta, seed) for seed in range(4)]
    monkeypatch.setattr(mixture, "late_weight", lambda r: 0.0)
    without = [duels_until_known(features, 3.0 * theta, seed) for seed in range(4)]
    assert sum(with_them) < 0.8 * sum(without)


def test_a_set_without_any_theta_refutes_the_model_and_nobody_is_known(monkeypatch):
    features, theta = published_instance(0, 6, 4)
    rng = np.random.default_rng(0)
    told = [duels(features, 9.0 * theta, random_pairs(6, 100, rng), rng) for _ in range(4)]

    def told_evidence():
        config, record = told_record(features, [], delta=0.05)
        evidence = BradleyTerryEvidence(config, record)
        for batch, outcomes in told:
            record.tell(batch, outcomes)
            evidence.update()
        return evidence

    assert told_evidence().is_separated

    def too_much(parts, theta, rivals):
        pooled = pool(parts, theta, rivals)
        return Pooled(tally=pooled.tally, log_mixture=pooled.log_mixture + 300.0)

    monkeypatch.setattr(bradley_terry_evidence, "pool", too_much)
    evidence = told_evidence()
    assert evidence.statistic > 300.0
    assert not evidence.is_separated
    assert (evidence.lower == 0.0).all()
    assert (evidence.upper == 1.0).all()
    assert evidence.is_refuted

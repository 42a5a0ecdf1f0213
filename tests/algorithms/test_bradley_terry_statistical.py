"""Seeded simulations of what the structured thresholds promise, and of what would break it."""

import numpy as np
import pytest
from failure_rates import fails_too_often
from structured_duels import duels, published_instance, random_pairs, told_record

from algorithms.best_duel import bradley_terry_evidence
from algorithms.best_duel.bradley_terry_evidence import BradleyTerryEvidence
from algorithms.best_duel.llm_po_bt import LlmPoBt
from algorithms.best_duel.setting import Setting
from algorithms.protocols import round_rng

PATHS, LEVEL = 200, 0.2
CAMPAIGNS, DELTA = 150, 0.1

pytestmark = pytest.mark.statistical


def misses():
    """Whether a path ever has an interval without its preference, in 25 looks at up to 250 duels."""
    features, theta = published_instance(3, 4, 2)
    theta = 2.0 * theta
    scores = features @ theta
    chances = 1.0 / (1.0 + np.exp(scores - scores[:, np.newaxis]))
    worst = np.where(np.eye(4, dtype=bool), 1.0, chances).min(axis=1)
    for seed in range(PATHS):
        rng = np.random.default_rng([1, seed])
        setting, record = told_record(features, [], delta=LEVEL, threshold="proven")
        evidence = BradleyTerryEvidence(setting, record)
        missed = False
        for _ in range(25):
            record.tell(*duels(features, theta, random_pairs(4, 10, rng), rng))
            evidence.update()
            if (evidence.lower > worst).any() or (evidence.upper < worst).any():
                missed = True
                break
        yield missed


def errors():
    """Whether a campaign of LLM-PO separates a wrong one of 4 arms, whose first two are close."""
    features = np.array([[0.5, 0.0], [0.45, 0.6], [-0.5, 0.5], [-0.5, -0.6]])
    theta = np.array([2.0, 0.0])
    for seed in range(CAMPAIGNS):
        setting = Setting(n_arms=4, n_examples=9, features=features, delta=DELTA, batch_size=10, budget=400)
        selector, round_ = LlmPoBt(setting), 0
        while len(batch := selector.ask(round_rng(seed, round_))):
            selector.tell(batch, duels(features, theta, batch.arms, np.random.default_rng([seed, round_]))[1])
            round_ += 1
        decision = selector.decision()
        yield decision.reason == "confident" and decision.best != 0


def test_proven_intervals_ever_miss_on_at_most_the_allowed_share_of_paths():
    # None of 200 now, alarm at 70: a true rate of 0.45 is seen with probability 0.998.
    assert not fails_too_often(misses(), PATHS, LEVEL)


def test_the_check_catches_a_threshold_without_the_price_of_not_knowing_theta(monkeypatch):
    def no_price(fit, information, widest, *, delta, **_):
        return np.log(1.0 / delta)

    # 118 of 200.
    monkeypatch.setattr(bradley_terry_evidence, "proven_threshold", no_price)
    assert fails_too_often(misses(), PATHS, LEVEL)


def test_stopped_campaigns_name_a_wrong_arm_at_most_as_often_as_allowed():
    # None of 150 now, alarm at 36: a true rate of 0.35 is seen with probability 0.998.
    assert not fails_too_often(errors(), CAMPAIGNS, DELTA)


def test_the_check_catches_a_threshold_of_a_tenth_of_a_nat(monkeypatch):
    # 69 of 150.
    monkeypatch.setattr(bradley_terry_evidence, "practical_threshold", lambda delta, n_duels: 0.1)
    assert fails_too_often(errors(), CAMPAIGNS, DELTA)

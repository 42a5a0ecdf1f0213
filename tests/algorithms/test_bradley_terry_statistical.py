"""Seeded simulations of what the Bradley-Terry evidence promises, and of what would break it."""

import numpy as np
import pytest
from failure_rates import fails_too_often
from structured_duels import duels, published_instance, random_pairs, sigma, told_record

from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.papers.bradley_terry import bounds, mixture
from winnow.algorithms.papers.bradley_terry import evidence as bradley_terry_evidence
from winnow.algorithms.papers.bradley_terry.evidence import BradleyTerryEvidence
from winnow.algorithms.papers.bradley_terry.llm_po_bt import LlmPoBt
from winnow.algorithms.protocols import round_rng

PATHS, LEVEL = 200, 0.2
CAMPAIGNS, DELTA = 200, 0.1
# Two arms at the top that differ little.
CLOSE = np.array([[0.5, 0.0], [0.45, 0.6], [-0.5, 0.5], [-0.5, -0.6]]), np.array([2.0, 0.0])
# log10 of parameters and of context length, and what matters is the first, whose column is small.
SIZES = np.column_stack([[9.0, 9.05, 8.9, 8.8], [3.0, 5.0, 4.0, 6.0]]), np.array([8.0, 0.0])
# Four coordinates, and another arm that is nearly as good as the best.
WIDE = np.vstack([np.eye(4), [0.0, 0.0, 0.5, 0.5]]), np.array([0.55, 0.45, 0.0, -0.6])
SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
INTERACTING = np.array([1.0, -2.0, 0.8, 0.6])

pytestmark = pytest.mark.statistical


def misses(n_arms=4, d=2):
    """Whether a path ever has an interval without its preference, in 10 looks at up to 250 duels."""
    features, theta = published_instance(3, n_arms, d)
    theta = 2.0 * theta
    scores = features @ theta
    worst = np.where(np.eye(n_arms, dtype=bool), 1.0, sigma(scores[:, np.newaxis] - scores)).min(axis=1)
    for seed in range(PATHS):
        rng = np.random.default_rng([1, seed])
        config, record = told_record(features, [], delta=LEVEL)
        evidence = BradleyTerryEvidence(config, record)
        missed = False
        for _ in range(10):
            record.tell(*duels(features, theta, random_pairs(n_arms, 25, rng), rng))
            evidence.update()
            if (evidence.lower > worst).any() or (evidence.upper < worst).any():
                missed = True
                break
        yield missed


def errors(world, unscored=0.0):
    """Whether a campaign of LLM-PO is confident of an arm that is not the best one.

    Args:
        world: Features and theta.
        unscored: The share of the best arm's wins that the judge cannot read.
    """
    features, theta = world
    best = int((features @ theta).argmax())
    for seed in range(CAMPAIGNS):
        config = BestDuelConfig(
            n_arms=len(features), n_examples=9, features=features, delta=DELTA, batch_size=20, budget=400
        )
        selector, round_ = LlmPoBt(config), 0
        while len(batch := selector.ask(round_rng(seed, round_))):
            rng = np.random.default_rng([seed, round_])
            _, outcomes = duels(features, theta, batch.arms, rng)
            winners = np.where(outcomes == 1.0, batch.arms[:, 0], batch.arms[:, 1])
            outcomes[(winners == best) & (rng.random(len(batch)) < unscored)] = np.nan
            selector.tell(batch, outcomes)
            round_ += 1
        decision = selector.decision()
        yield decision.reason == "confident" and decision.best != best


def false_refutations():
    """Whether random duels of an additive model ever refute it, in 16 looks at up to 400 duels."""
    theta = np.array([1.0, 0.7])
    for seed in range(PATHS):
        rng = np.random.default_rng([2, seed])
        config, record = told_record(SQUARE, [], delta=0.9)
        evidence = BradleyTerryEvidence(config, record)
        for _ in range(16):
            record.tell(*duels(SQUARE, theta, random_pairs(4, 25, rng), rng))
            evidence.update()
        yield evidence.is_refuted


def wrong_under_interactions(runs):
    """How many of the campaigns with additive features are confident of a wrong arm."""
    n_wrong = 0
    for seed in range(runs):
        config = BestDuelConfig(
            n_arms=4, n_examples=9, features=SQUARE, delta=0.05, batch_size=10, budget=300
        )
        selector, round_ = LlmPoBt(config), 0
        while len(batch := selector.ask(round_rng(seed, round_))):
            _, outcomes = duels(np.eye(4), INTERACTING, batch.arms, np.random.default_rng([seed, round_]))
            selector.tell(batch, outcomes)
            round_ += 1
        decision = selector.decision()
        n_wrong += decision.reason == "confident" and decision.best != 0
    return n_wrong


def unconverged_suprema(tally, spans, lead, fit):
    """What a maximisation reports that stops after its first step, from a point far off."""
    return bounds.log_likelihood(tally, far_off(spans, lead, fit))


def far_off(spans, lead, fit):
    return bounds.nearest_in_planes(spans, lead, fit._replace(theta=0.0 * fit.theta))


def test_intervals_ever_miss_on_at_most_the_allowed_share_of_paths():
    assert not fails_too_often(misses(), PATHS, LEVEL)


def test_the_check_catches_a_confidence_set_without_the_price_of_not_knowing_theta(monkeypatch):
    def highest(tally, start):
        return float(bounds.log_likelihood(tally, start))

    monkeypatch.setattr(mixture, "log_mixture", highest)
    assert fails_too_often(misses(), PATHS, LEVEL)


@pytest.mark.parametrize("world", [CLOSE, SIZES])
def test_confident_campaigns_name_a_wrong_arm_at_most_as_often_as_allowed(world):
    assert not fails_too_often(errors(world), CAMPAIGNS, DELTA)


def test_mixtures_that_begin_late_make_no_wrong_arm_confident(monkeypatch):
    monkeypatch.setattr(mixture, "FIRST", 16)
    assert not fails_too_often(errors(WIDE, unscored=0.2), CAMPAIGNS, DELTA)


def test_intervals_that_rest_on_late_mixtures_miss_on_at_most_the_allowed_share_of_paths(monkeypatch):
    monkeypatch.setattr(mixture, "FIRST", 16)
    assert not fails_too_often(misses(5, 4), PATHS, LEVEL)


def test_the_check_catches_late_mixtures_without_the_price_of_their_prior(monkeypatch):
    monkeypatch.setattr(mixture, "FIRST", 16)
    priced = mixture.Part.log_mixture

    def highest(part, start):
        if part.prior is None:
            return priced(part, start)
        return float(bounds.log_likelihood(part.tally, start)) - part.log_weight

    monkeypatch.setattr(mixture.Part, "log_mixture", highest)
    assert fails_too_often(misses(5, 4), PATHS, LEVEL)


def test_wins_that_the_judge_cannot_read_make_no_wrong_arm_confident():
    assert not fails_too_often(errors(CLOSE, unscored=0.4), CAMPAIGNS, DELTA)


def test_the_check_catches_a_supremum_that_has_not_converged(monkeypatch):
    monkeypatch.setattr(bradley_terry_evidence, "half_space_suprema", unconverged_suprema)
    monkeypatch.setattr(bradley_terry_evidence, "nearest_in_planes", far_off)
    assert fails_too_often(errors(CLOSE), CAMPAIGNS, DELTA)


def test_a_model_that_holds_is_refuted_at_most_as_often_as_allowed():
    assert not fails_too_often(false_refutations(), PATHS, 0.09)


def test_interactions_are_noticed_before_a_wrong_arm_is_named_in_nearly_all_campaigns(monkeypatch):
    assert wrong_under_interactions(12) <= 2
    monkeypatch.setattr(bradley_terry_evidence, "log_unstructured_mixture", lambda *_: -np.inf)
    assert wrong_under_interactions(12) >= 8

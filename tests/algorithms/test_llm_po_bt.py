from dataclasses import replace

import numpy as np
import pytest
from structured_duels import duels, published_instance

from tests.benchmarks.best_duel_hardness import characteristic_time_bt
from winnow.algorithms.best_duel.config import BestDuelConfig
from winnow.algorithms.best_duel.duel_record import DuelRecord
from winnow.algorithms.best_duel.llm_po import LlmPo
from winnow.algorithms.claims import Claim
from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.papers.bradley_terry.evidence import BradleyTerryEvidence
from winnow.algorithms.papers.bradley_terry.feature_space import arm_points, differences
from winnow.algorithms.papers.bradley_terry.llm_po_bt import (
    GROWTH,
    MOST_SWEEPS,
    TOLERANCE,
    LlmPoBt,
    allocate,
    exploration_pairs,
    instance,
)
from winnow.algorithms.protocols import Batch, round_rng

FEATURES, THETA = published_instance(4, 8, 3)


def config(batch_size=1, features=FEATURES, **params):
    return BestDuelConfig(
        n_arms=len(features), n_examples=9, features=features, **{"batch_size": batch_size, **params}
    )


def played(selector, n_rounds, features=FEATURES, theta=THETA, seed=0):
    """Rounds of asks and tells, until nothing is asked or there were this many."""
    rounds = []
    for round_ in range(n_rounds):
        batch = selector.ask(round_rng(seed, round_))
        if len(batch) == 0:
            break
        _, outcomes = duels(features, theta, batch.arms, np.random.default_rng([seed, round_]))
        selector.tell(batch, outcomes)
        rounds.append((batch, outcomes))
    return rounds


def asked_pairs(batches):
    return [tuple(sorted(arms)) for batch in batches for arms in batch.arms.tolist()]


def test_single_duels_are_those_of_the_sampling_rule_of_the_paper():
    problem = config()
    record = DuelRecord(problem)
    evidence = BradleyTerryEvidence(problem, record)
    points, pairs = arm_points(FEATURES), record.pairs
    floor = exploration_pairs(differences(points, pairs))
    counts, allocation, best, due = np.zeros(len(pairs)), None, None, 0.0
    picks = []
    for t, (batch, outcomes) in enumerate(played(LlmPoBt(problem, exploration=0.7, penalty=2.0), 400)):
        behind = [pair for pair in floor if counts[pair] < max(1, 0.7 * np.sqrt(t))]
        if allocation is None or behind:
            pick = min(behind, key=lambda pair: counts[pair])
        else:
            pick = int(np.argmax(t * allocation.weights - counts))
        picks.append(allocation is not None and not behind)
        assert asked_pairs([batch]) == [tuple(pairs[pick])]
        counts[pick] += 1
        record.tell(batch, outcomes)
        evidence.update()
        if evidence.best != best or t + 1 >= due:
            if allocation is not None and evidence.best != best:
                allocation = allocation._replace(rivals=np.full(7, 1 / 7))
            allocation = allocate(
                instance(points, evidence.scores, pairs, np.arange(8)),
                penalty=2.0 * (t + 1) ** (-1 / 8),
                tolerance=TOLERANCE,
                most_sweeps=MOST_SWEEPS,
                start=allocation,
            )
            best, due = evidence.best, GROWTH * (t + 1)
    assert sum(picks) > 300


def test_a_batch_spreads_as_single_duels_without_answers_would():
    whole, single = LlmPoBt(config(batch_size=150)), LlmPoBt(config(batch_size=1))
    for batch, outcomes in played(whole, 5):
        single.tell(batch, outcomes)
    together = whole.ask(round_rng(0, 99))
    one_by_one = [single.ask(round_rng(0, 100 + place)) for place in range(150)]
    assert asked_pairs([together]) == asked_pairs(one_by_one)
    assert len(set(asked_pairs([together]))) > 3


def test_the_shares_of_duels_come_close_to_the_best_ones():
    features, theta = FEATURES, 3.0 * THETA
    selector = LlmPoBt(config(batch_size=25))
    rounds = played(selector, 160, theta=theta)
    counts = np.zeros((8, 8))
    for first, second in asked_pairs([batch for batch, _ in rounds]):
        counts[first, second] += 1
    pairs = np.argwhere(np.triu(np.ones((8, 8)), 1))
    problem = instance(arm_points(features), features @ theta, pairs, np.arange(8))
    shares = (counts / counts.sum())[pairs[:, 0], pairs[:, 1]]
    hessian = (problem.z.T * (shares * problem.curvature)) @ problem.z
    norms = ((problem.rivals @ np.linalg.inv(hessian)) * problem.rivals).sum(axis=1)
    psi = (problem.gaps**2 / (2.0 * norms)).min()
    assert psi * characteristic_time_bt(features, theta) > 0.8


def test_it_needs_fewer_duels_than_all_pairs_in_turn():
    # Seven at a time, since each look at the evidence is dear. Of five seeds, none took half as many.
    theta, size = 3.0 * THETA, 7
    adaptive = played(LlmPoBt(config(delta=0.05, batch_size=size)), 1_000, theta=theta)
    problem = config(delta=0.05)
    record = DuelRecord(problem)
    evidence, t = BradleyTerryEvidence(problem, record), 0
    rng = np.random.default_rng(0)
    while not evidence.is_separated:
        record.tell(*duels(FEATURES, theta, record.pairs[np.arange(t, t + size) % 28], rng))
        evidence.update()
        t += size
    assert sum(len(batch) for batch, _ in adaptive) < 0.7 * t


def test_a_pair_that_is_never_scored_does_not_hold_the_others_up():
    selector = LlmPoBt(config(batch_size=4, max_unscored=1.0))
    mute, asked = None, 0
    for round_ in range(60):
        batch = selector.ask(round_rng(0, round_))
        pairs = asked_pairs([batch])
        mute = mute or pairs[0]
        _, outcomes = duels(FEATURES, THETA, batch.arms, np.random.default_rng(round_))
        selector.tell(batch, np.where([pair == mute for pair in pairs], np.nan, outcomes))
        asked += pairs.count(mute)
    assert asked < 60
    assert selector.decision().best is not None


def test_without_any_score_it_goes_on_asking():
    selector = LlmPoBt(config(batch_size=4, max_unscored=1.0))
    for round_ in range(5):
        selector.tell(selector.ask(round_rng(0, round_)), [np.nan] * 4)
    assert selector.decision().best is None
    assert len(selector.ask(round_rng(0, 5))) == 4


def test_a_dropped_arm_is_asked_no_more():
    selector = LlmPoBt(config(batch_size=10))
    selector.tell(Batch([[0, 1 + place % 7] for place in range(10)], [0] * 10), [np.nan] * 10)
    later = played(selector, 20)
    assert later
    assert all(0 not in batch.arms for batch, _ in later)


def test_features_in_one_direction_make_do_with_one_pair_to_explore():
    line = np.array([[0.0, 5.0], [1.0, 5.0], [3.0, 5.0]])
    selector = LlmPoBt(config(features=line, delta=0.05))
    rounds = played(selector, 2_000, line, np.array([0.5, 0.0]))
    assert selector.decision().best == 2
    assert selector.decision().reason == "confident"
    assert len(rounds) < 1_000


SQUARE = np.array([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
INTERACTING = np.array([1.0, -2.0, 0.8, -0.4])


def played_against_interactions(selector, n_rounds, seed=0):
    return played(selector, n_rounds, np.eye(4), INTERACTING, seed)


def test_once_the_model_is_refuted_it_goes_on_as_llm_po_and_what_it_says_needs_no_model():
    selector = LlmPoBt(config(features=SQUARE, batch_size=10, delta=0.05))
    rounds = played_against_interactions(selector, 2_000, seed=2)
    decision = selector.decision()
    assert selector.is_refuted
    assert (decision.best, decision.reason) == (0, "confident")
    assert decision.claim == Claim(kind="proven", delta=0.05, refuted=("bradley-terry",))
    counted = LlmPo(BestDuelConfig(n_arms=4, n_examples=9, batch_size=10, delta=0.05))
    for batch, outcomes in rounds:
        counted.tell(batch, outcomes)
    assert counted.decision() == replace(decision, claim=Claim(kind="proven", delta=0.05))


def test_a_resumed_campaign_knows_that_the_model_was_refuted_and_asks_the_same():
    params = {"features": SQUARE, "batch_size": 10, "delta": 0.05}
    original, resumed = LlmPoBt(config(**params)), LlmPoBt(config(**params))
    for batch, outcomes in played_against_interactions(original, 40, seed=2):
        resumed.tell(batch, outcomes)
    assert original.is_refuted
    assert resumed.is_refuted
    assert resumed.ask(round_rng(0, 99)) == original.ask(round_rng(0, 99))


def test_a_model_that_holds_is_named_in_the_claim():
    selector = LlmPoBt(config(batch_size=10, delta=0.05))
    played(selector, 500, theta=6.0 * THETA)
    decision = selector.decision()
    assert decision.reason == "confident"
    assert decision.claim == Claim(kind="proven", delta=0.05, assumptions=("bradley-terry",))
    assert not selector.is_refuted
    assert decision.claim.refuted == ()


def test_with_epsilon_an_arm_that_is_good_enough_is_known_sooner():
    theta = 3.0 * THETA
    exact, near = (
        len(played(LlmPoBt(config(batch_size=10, delta=0.05, epsilon=epsilon)), 800, theta=theta))
        for epsilon in (0.0, 0.1)
    )
    assert near < 0.8 * exact


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"exploration": 0.0}, "exploration must be positive and finite, got 0.0"),
        ({"penalty": -1.0}, "penalty must be non-negative and finite, got -1.0"),
        ({"n0": 0}, "n0 must be at least 1, got 0"),
    ],
)
def test_parameters_out_of_range_are_refused(params, message):
    with pytest.raises(InvalidParameter, match=message):
        LlmPoBt(config(), **params)


def test_arms_without_features_are_refused():
    with pytest.raises(InvalidParameter, match="features must be an array with a row of numbers"):
        LlmPoBt(BestDuelConfig(n_arms=3, n_examples=2))

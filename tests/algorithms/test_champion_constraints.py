"""Constraints on further outcomes: whole campaigns of champion."""

from collections import deque

import numpy as np
import pytest
from failure_rates import fails_too_often
from hypothesis import given
from hypothesis import strategies as st
from property_settings import tries

from winnow.algorithms.champion.constraints import Constraints
from winnow.algorithms.errors import InvalidParameter, MalformedBatch, OutcomeOutOfRange
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector

DELTA, RUNS = 0.2, 60
BETS = (3.0, 1.0, 0.35, 0.12)


def world(seed, n_arms=4, n_examples=30, n_constraints=1, unscored=0.0):
    """Scores, shape (K, N), and values, shape (J, K, N), all of them 0 or 1."""
    rng = np.random.default_rng([43, seed])
    chances = np.clip(0.6 + rng.normal(0.0, 0.1, (n_arms, 1)), 0.05, 0.95)
    scores = (rng.random((n_arms, n_examples)) < chances).astype(float)
    chances = np.clip(0.9 + rng.normal(0.0, 0.06, (n_constraints, n_arms, 1)), 0.0, 1.0)
    values = (rng.random((n_constraints, n_arms, n_examples)) < chances).astype(float)
    scores[rng.random(scores.shape) < unscored] = np.nan
    values[rng.random(values.shape) < unscored] = np.nan
    return scores, values


def selector_of(scores, at_least, **params):
    n_arms, n_examples = scores.shape
    given = {"delta": DELTA, "batch_size": 8, "max_unscored": 1.0, "constraints": np.array(at_least)}
    return create_selector("champion", n_arms=n_arms, n_examples=n_examples, **given | params)


def told(batch, scores, values):
    pairs = (batch.arms, batch.examples)
    return np.column_stack([scores[pairs], *(each[pairs] for each in values)])


def ended(selector, scores, values, seed=0, ahead=0):
    """The decision at the end and how many pairs were told, with rounds in flight beside the first."""
    in_flight, asked, n_told = deque(), 0, 0
    while True:
        while len(in_flight) <= ahead and len(batch := selector.ask(round_rng(seed, asked))):
            in_flight.append(batch)
            asked += 1
        if not in_flight:
            return selector.decision(), n_told
        batch = in_flight.popleft()
        selector.tell(batch, told(batch, scores, values))
        n_told += len(batch)


def is_right(decision, scores, values, at_least, epsilon=0.0):
    """Whether what is claimed is true, whatever scores and values that are missing would have been."""
    bounds = np.array(at_least)[:, np.newaxis] - 1e-9
    meets = (np.nan_to_num(values).mean(axis=2) >= bounds).all(axis=0)
    may_meet = (np.nan_to_num(values, nan=1.0).mean(axis=2) >= bounds).all(axis=0)
    if decision.best is None:
        return not may_meet.any()
    highest = np.nan_to_num(scores, nan=1.0).mean(axis=1)
    highest[decision.best] = lowest = np.nan_to_num(scores).mean(axis=1)[decision.best]
    return bool(meets[decision.best]) and lowest >= highest[may_meet].max() - epsilon - 1e-9


def rows(*means, n_examples=40, seed=1):
    """Rows of 0 and 1 with these means."""
    rng = np.random.default_rng(seed)
    found = [np.arange(n_examples) < round(mean * n_examples) for mean in means]
    return np.array([rng.permutation(each) for each in found]).astype(float)


def test_the_best_of_those_that_meet_the_constraints_is_named_and_not_the_best():
    scores = rows(0.95, 0.8, 0.4, 0.3, n_examples=120)
    values = rows(0.5, 0.95, 0.95, 1.0, n_examples=120)[np.newaxis]
    decision, n_told = ended(selector_of(scores, [0.9]), scores, values)
    assert (decision.best, decision.reason, decision.claim.kind) == (1, "confident", "proven")
    assert decision.claim.delta == DELTA
    assert decision.status[1] == "best"
    assert n_told < 0.6 * scores.size


def test_who_cannot_meet_them_is_infeasible_and_where_nobody_can_nobody_is_named():
    scores, values = rows(0.9, 0.7, 0.5), rows(0.9, 0.95, 0.5)[np.newaxis]
    decision, n_told = ended(selector_of(scores, [1.0]), scores, values)
    assert (decision.best, decision.reason, decision.claim.kind) == (None, "confident", "exact")
    assert decision.status == ("infeasible",) * 3
    assert n_told < 0.6 * scores.size
    decision, _ = ended(selector_of(scores, [0.93]), scores, values)
    assert (decision.best, decision.claim.kind) == (1, "exact")
    assert decision.status[0] == "infeasible"


def test_by_bets_alone_it_is_proven_that_nobody_meets_them():
    scores, values = rows(0.9, 0.7, n_examples=200), rows(0.2, 0.1, n_examples=200)[np.newaxis]
    decision, n_told = ended(selector_of(scores, [0.6]), scores, values)
    assert (decision.best, decision.claim.kind, decision.claim.delta) == (None, "proven", DELTA)
    assert decision.status == ("unfit",) * 2
    assert n_told < 100


def test_equal_rows_that_meet_them_are_tied_and_another_that_does_not_is_not():
    scores = rows(0.75, 0.75, 0.75, 0.2)
    values = rows(1.0, 0.95, 0.6, 1.0)[np.newaxis]
    decision, _ = ended(selector_of(scores, [0.9], delta=1e-9), scores, values)
    assert decision.status == ("tied", "tied", "infeasible", "eliminated")
    assert decision.claim.kind == "exact"


def test_a_value_that_is_missing_leaves_open_who_meets_them():
    scores, values = rows(0.9, 0.5), rows(0.9, 1.0)[np.newaxis]
    values[0, 0, values[0, 0].argmax()] = np.nan
    decision, _ = ended(selector_of(scores, [0.9], delta=1e-9), scores, values)
    assert (decision.reason, decision.claim.kind) == ("exhausted", "none")
    assert decision.status[0] == "active"


def test_with_the_budget_spent_nothing_is_claimed():
    scores, values = rows(0.9, 0.7), rows(0.9, 1.0)[np.newaxis]
    decision, _ = ended(selector_of(scores, [0.9], budget=30), scores, values)
    assert (decision.reason, decision.claim.kind) == ("budget", "none")


def test_arms_that_were_dropped_raise_the_stated_error_and_are_not_claimed_of():
    scores, values = rows(0.95, 0.8, 0.3, n_examples=120), np.ones((1, 3, 120))
    scores[0], values[0, 1, :6] = np.nan, 0.0
    selector = selector_of(scores, [0.9], max_unscored=0.5)
    decision, _ = ended(selector, scores, values)
    assert (decision.best, decision.status[0]) == (1, "dropped")
    assert decision.claim.kind in ("exact", "proven")
    assert decision.claim.kind == "exact" or decision.claim.delta == 2 * DELTA


@tries(15, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    at_least=st.sampled_from([[0.9], [0.85, 1.0], [0.8, 0.9]]),
    batch_size=st.sampled_from([1, 8, 20]),
    unscored=st.sampled_from([0.0, 0.05]),
    ahead=st.sampled_from([0, 2]),
)
def test_what_is_exact_is_true_and_a_wealth_is_the_average_of_those_of_the_formulas(
    seed, at_least, batch_size, unscored, ahead
):
    scores, values = world(seed, n_constraints=len(at_least), unscored=unscored)
    selector = selector_of(scores, at_least, batch_size=batch_size, epsilon=0.02)
    decision, _ = ended(selector, scores, values, seed, ahead)
    if decision.claim.kind == "exact":
        assert is_right(decision, scores, values, at_least, epsilon=0.02)
    bounds = np.array(at_least)[:, np.newaxis]
    may_meet = (np.nan_to_num(values, nan=1.0).mean(axis=2) >= bounds - 1e-9).all(axis=0)
    assert not any(may_meet[arm] for arm, each in enumerate(decision.status) if each == "infeasible")
    arms, bets = np.arange(len(scores)), [each for each in selector.evidence.constraints if each.is_bet_on]
    for each in bets:
        found = [literal_wealth(each, arm) for arm in arms]
        np.testing.assert_allclose(each.wealths.since_start(arms), found, rtol=1e-9)
    n_bets = 1 + sum(bound < 1.0 for bound in at_least)
    by_constraints = sum(each.wealths.since_start(arms) for each in bets)
    by_mean = n_bets * selector.wealths - by_constraints
    assert (by_mean >= -1e-9 * selector.wealths).all()
    assert len(bets) == n_bets - 1


def literal_wealth(constraint, arm):
    """Of an arm, from its draws in their order."""
    draws = constraint.draws
    if draws.count[arm] == 0:
        return 1.0
    played = draws.history(np.array([arm])).played
    fixed, adaptive, before, left = [1.0] * 4, 1.0, 0.0, draws.n_examples
    for x, bet in zip(played.scores, played.adaptive, strict=True):
        m = (constraint.least - before) / left
        cap = 0.8 / max(1.0 - m, 1e-9)
        fixed = [
            wealth * (1.0 + min(each * draws.n_examples / left, cap) * (m - x))
            for wealth, each in zip(fixed, BETS, strict=True)
        ]
        adaptive *= 1.0 + min(bet, cap) * (m - x)
        before, left = before + x, left - 1
    return 0.5 * np.mean(fixed) + 0.5 * adaptive


@pytest.mark.parametrize("ahead", [0, 3])
def test_a_fresh_selector_that_is_told_the_same_goes_on_bit_for_bit(ahead):
    scores, values = world(3, n_examples=60, n_constraints=2, unscored=0.05)
    original = selector_of(scores, [0.8, 0.85])
    in_flight, finished, asked = deque(), [], 0
    while True:
        resumed = selector_of(scores, [0.8, 0.85])
        for round_ in finished:
            resumed.tell(*round_)
        for batch in in_flight:
            resumed.take_up(batch)
        assert resumed.decision() == original.decision()
        batch = original.ask(round_rng(1, asked))
        assert resumed.ask(round_rng(1, asked)) == batch
        asked += 1
        if len(batch):
            in_flight.append(batch)
        if len(in_flight) > ahead or not len(batch):
            if not in_flight:
                break
            first = in_flight.popleft()
            finished.append((first, told(first, scores, values)))
            original.tell(*finished[-1])
    assert original.decision().claim.kind != "none"


def misled(seed):
    """A candidate with a high mean that just misses the constraint, and two that are nearly as good."""
    rng = np.random.default_rng([47, seed])
    scores = rows(0.9, 0.75, 0.7, 0.7, n_examples=40, seed=rng)
    values = rows(0.88, 0.9, 0.9, 0.95, n_examples=40, seed=rng)[np.newaxis]
    return scores, values


def fails(seed):
    scores, values = misled(seed)
    decision, _ = ended(selector_of(scores, [0.9]), scores, values, seed)
    return decision.claim.kind == "proven" and not is_right(decision, scores, values, [0.9])


@pytest.mark.statistical
def test_what_is_proven_is_wrong_with_probability_delta_at_most():
    """At a false-alarm rate of 1e-6."""
    assert not fails_too_often((fails(seed) for seed in range(RUNS)), RUNS, DELTA)


@pytest.mark.statistical
def test_a_level_that_a_row_raises_which_misses_the_constraint_is_caught(monkeypatch):
    monkeypatch.setattr(Constraints, "are_met", np.ones(4, dtype=bool))
    assert fails_too_often((fails(seed) for seed in range(RUNS)), RUNS, DELTA)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"constraints": np.array([0.0])}, "constraints must be an array of numbers above 0 and at most 1"),
        ({"constraints": np.array([0.5, 1.1])}, "constraints must be an array of numbers above 0"),
        ({"constraints": np.array([[0.5]])}, "constraints must be an array of numbers above 0"),
        ({"delta": None}, "delta must be set if there are constraints"),
        ({"start": "race"}, "start must be 'auto' or 'champion' with constraints"),
        ({"top_m": 2}, "top_m must be 1 with constraints"),
        ({"groups": np.arange(30) % 2}, "groups must be None with constraints"),
        (
            {"prefer": "cost", "costs": np.ones(4), "epsilon": 0.1},
            "prefer must be 'mean' with constraints",
        ),
    ],
)
def test_what_does_not_go_with_constraints_is_refused(params, said):
    with pytest.raises(InvalidParameter, match=said):
        selector_of(np.zeros((4, 30)), [0.9], **params)


def test_outcomes_of_another_shape_or_range_are_refused_and_nothing_changes():
    selector = selector_of(np.zeros((4, 30)), [0.9])
    batch, before = Batch(np.array([0, 1]), np.array([2, 2])), selector.decision()
    with pytest.raises(MalformedBatch, match=r"outcomes must be of shape \(2, 2\), got shape \(2,\)"):
        selector.tell(batch, [1.0, 0.0])
    with pytest.raises(OutcomeOutOfRange, match=r"arm 1, example 2\) must be in \[0, 1\] or NaN, got 1.5"):
        selector.tell(batch, [[1.0, 1.0], [1.0, 1.5]])
    assert selector.decision() == before
    with pytest.raises(InvalidParameter, match="constraints must be None if arms are added"):
        selector.add_arms(1)

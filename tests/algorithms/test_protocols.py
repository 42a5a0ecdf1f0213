import dataclasses

import numpy as np
import pytest

from winnow.algorithms.claims import EXACT, Claim
from winnow.algorithms.decision import Decision, statuses
from winnow.algorithms.errors import InvalidParameter, MalformedBatch
from winnow.algorithms.protocols import EMPTY_BATCH, Batch, round_rng


def test_a_batch_is_a_read_only_copy_that_equals_by_value():
    arms = np.array([1, 2])
    batch = Batch(arms, [3, 4])
    arms[0] = 9
    assert batch == Batch([1, 2], [3, 4])
    assert batch != Batch([1, 2], [3, 5])
    assert (len(batch), len(EMPTY_BATCH)) == (2, 0)
    with pytest.raises(ValueError, match="read-only"):
        batch.arms[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        batch.arms = arms


def test_a_batch_of_duels_has_two_arms_per_example():
    assert len(Batch([[0, 1], [2, 0], [1, 2]], [5, 5, 6])) == 3


@pytest.mark.parametrize(
    ("arms", "examples", "message"),
    [
        ([0, 1], [0], r"shapes \(B,\) or \(B, 2\) and \(B,\), got shapes \(2,\) and \(1,\)"),
        ([[0, 1]], [0, 1], r"got shapes \(1, 2\) and \(2,\)"),
        ([[0, 1, 2]], [0], r"got shapes \(1, 3\) and \(1,\)"),
        (0, 0, r"got shapes \(\) and \(\)"),
        ([0.5], [0], "arms must be integers, got dtype float64"),
    ],
)
def test_a_malformed_batch_is_refused(arms, examples, message):
    with pytest.raises(MalformedBatch, match=message):
        Batch(arms, examples)


def test_decisions_are_equal_when_every_field_is_nan_included():
    def decision(**changed):
        nothing = np.array([np.nan, 0.5])
        arrays = dict(estimates=nothing, lower=nothing, upper=nothing)
        words = dict(best=1, status=("dropped", "active"), stop=False, reason="running")
        return Decision(**{**arrays, **words, **changed})

    assert decision() == decision()
    assert decision() != decision(best=None)
    assert decision() != decision(reason="budget")
    assert decision() != decision(status=("active", "active"))
    assert decision() != decision(claim=EXACT)
    assert decision() != decision(upper=np.array([np.nan, np.nextafter(0.5, 1.0)]))
    assert decision() != decision(ranking=np.array([np.nan, 0.5]))
    assert decision(ranking=np.array([0.1, 0.5])) != decision(ranking=np.array([0.2, 0.5]))


def test_arms_are_ranked_by_the_ranking_or_else_by_the_estimates():
    estimates, ranking = np.array([0.2, 0.5]), np.array([0.4, 0.3])
    words = dict(best=1, status=("active", "active"), stop=False, reason="running")
    arrays = dict(estimates=estimates, lower=estimates, upper=estimates)
    assert Decision(**arrays, **words).ranked_by is estimates
    assert Decision(**arrays, **words, ranking=ranking).ranked_by is ranking


def test_a_claim_states_an_error_probability_where_it_is_proven_and_only_there():
    assert Claim(kind="proven", delta=0.05, assumptions=("winner-exists",)).delta == 0.05
    with pytest.raises(InvalidParameter, match="delta must be a number for a proven claim"):
        Claim(kind="proven")
    with pytest.raises(InvalidParameter, match=r"None for any other, got 0\.05"):
        Claim(kind="heuristic", delta=0.05)


def test_the_last_group_that_an_arm_is_in_names_its_status():
    groups = [("tied", np.array([True, True, False])), ("dropped", np.array([False, True, False]))]
    assert statuses(3, groups) == ("tied", "dropped", "active")


def test_a_round_draws_the_same_numbers_again_and_others_than_its_neighbours():
    draws = [round_rng(seed, round_).random() for seed in (0, 1) for round_ in (0, 1)]
    assert len(set(draws)) == 4
    assert round_rng(1, 1).random() == draws[3]

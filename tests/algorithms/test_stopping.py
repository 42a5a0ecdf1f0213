import dataclasses

import numpy as np
import pytest

from algorithms.best_mean.score_matrix import ScoreMatrix
from algorithms.best_mean.setting import Setting
from algorithms.best_mean.stopping import Stopping
from algorithms.errors import InvalidParameter
from algorithms.protocols import Batch

N = 10


def told(rows, **params):
    """The stopping rule and means once the first examples of each arm have these scores."""
    setting = Setting(n_arms=len(rows), n_examples=N, **params)
    matrix = ScoreMatrix(setting)
    stopping = Stopping(setting, matrix)
    for arm, row in enumerate(rows):
        batch = Batch([arm] * len(row), range(len(row)))
        stopping.tell(batch, matrix.tell(batch, row))
    return stopping, matrix.means


def reason(rows, **params):
    stopping, means = told(rows, **params)
    return stopping.decision(means).reason


def test_nothing_is_known_before_the_first_tell():
    stopping, means = told([[], [], []])
    decision = stopping.decision(means)
    assert (decision.best, decision.stop, decision.reason) == (None, False, "running")
    assert np.isnan(decision.estimates).all()
    assert (decision.lower == 0).all()
    assert (decision.upper == 1).all()


def test_ties_of_a_finished_matrix_are_separated_at_any_delta():
    # Both means are exactly 0.5, so either is a maximum; the first is named.
    stopping, means = told([[0.5] * N, [1, 0] * 5], delta=1e-6)
    decision = stopping.decision(means)
    assert (decision.best, decision.reason) == (0, "confident")


@pytest.mark.parametrize(("epsilon", "expected"), [(0.0, "running"), (0.09, "running"), (0.11, "confident")])
def test_epsilon_is_how_far_the_best_may_lie_below_the_maximum(epsilon, expected):
    # Arm 0 is known to be 0.5; arm 1 lacks one pair, so its mean is 0.4 to 0.5; arm 2 lacks two: 0.4 to 0.6.
    rows = [[0.5] * N, [1.0] * 4 + [0.0] * 5, [1.0] * 4 + [0.0] * 4]
    assert reason(rows, delta=1e-9, epsilon=epsilon) == expected


def test_without_delta_a_campaign_is_never_separated():
    rows = [[1.0] * N, [0.0] * 9]
    assert reason(rows) == "running"
    assert reason(rows, delta=0.05) == "confident"


def test_the_budget_counts_unscored_pairs():
    rows = [[1.0, np.nan], [0.0]]
    assert reason(rows, budget=4) == "running"
    assert reason(rows, budget=3) == "budget"


def test_room_is_what_the_budget_leaves_beside_the_pending_pairs():
    setting = Setting(n_arms=2, n_examples=N, budget=8)
    matrix = ScoreMatrix(setting)
    stopping = Stopping(setting, matrix)
    assert stopping.room(matrix.means, 20) == 8
    matrix.ask(0, np.arange(5))
    assert (stopping.room(matrix.means, 20), stopping.room(matrix.means, 2)) == (3, 2)


def test_an_arm_is_set_aside_from_the_eighth_pair_on_when_too_many_are_unscored():
    nan = np.nan
    assert reason([[nan] * 7, [1.0] * N]) == "running"
    assert reason([[nan] * 8, [1.0] * N]) == "exhausted"
    assert reason([[nan] * 4 + [1.0] * 4, [1.0] * N]) == "running"
    assert reason([[nan] * 5 + [1.0] * 4, [0.0] * N]) == "exhausted"
    assert reason([[nan] * 5 + [1.0] * 4, [0.0] * N], max_unscored=0.6) == "running"


def test_an_arm_set_aside_is_not_the_best_and_stays_aside():
    setting = Setting(n_arms=2, n_examples=20)
    matrix = ScoreMatrix(setting)
    matrix.tell(Batch([0] * 9, range(9)), [np.nan] * 5 + [1.0] * 4)
    matrix.tell(Batch([0] * 11, range(9, 20)), [1.0] * 11)
    matrix.tell(Batch([1], [0]), [0.1])
    decision = Stopping(setting, matrix).decision(matrix.means)
    assert decision.best == 1
    assert not matrix.free_of_arm[0]


def test_without_intervals_all_else_is_the_same():
    rows = [[1.0, 0.0, 1.0], [0.0]]
    (plain, means), (bare, _) = told(rows, budget=4), told(rows, budget=4, intervals=False)
    decision, bare_decision = plain.decision(means), bare.decision(means)
    assert np.isnan([bare_decision.lower, bare_decision.upper]).all()
    assert dataclasses.replace(bare_decision, lower=decision.lower, upper=decision.upper) == decision


def test_a_campaign_that_stops_by_intervals_cannot_do_without():
    with pytest.raises(InvalidParameter, match="intervals must be true for a delta, got False"):
        Setting(n_arms=2, n_examples=N, delta=0.05, intervals=False)

import dataclasses

import numpy as np
import pytest

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix
from winnow.algorithms.best_mean.stopping import Stopping, single_levels
from winnow.algorithms.bounds.confidence_sequences import EndLevels
from winnow.algorithms.claims import EXACT, HEURISTIC, NOTHING_CLAIMED, Claim
from winnow.algorithms.errors import ImpossibleState, InvalidParameter
from winnow.algorithms.protocols import Batch

N = 10
NAN = np.nan


def rule(rows, n_examples=N, variant="mended", **params):
    """The stopping rule and its matrix once the first examples of each arm have these scores."""
    config = BestMeanConfig(n_arms=len(rows), n_examples=n_examples, **params)
    matrix = ScoreMatrix(config)
    stopping = Stopping(config, matrix, variant)
    for arm, row in enumerate(rows):
        batch = Batch([arm] * len(row), range(len(row)))
        stopping.tell(batch, matrix.tell(batch, row))
    return stopping, matrix


def decided(rows, ranking=None, **params):
    return rule(rows, **params)[0].decision(None if ranking is None else np.array(ranking, dtype=float))


def reason(rows, **params):
    return decided(rows, **params).reason


def test_nothing_is_known_before_the_first_tell():
    decision = decided([[], [], []])
    assert (decision.best, decision.stop, decision.reason) == (None, False, "running")
    assert np.isnan(decision.estimates).all()
    assert (decision.lower == 0).all()
    assert (decision.upper == 1).all()
    assert decision.status == ("active",) * 3
    assert decision.claim == NOTHING_CLAIMED


@pytest.mark.parametrize(("epsilon", "expected"), [(0.0, "running"), (0.09, "running"), (0.11, "confident")])
def test_epsilon_is_how_far_the_best_may_lie_below_the_maximum(epsilon, expected):
    # Arm 0 is known to be 0.5; arm 1 lacks one pair, so its mean is 0.4 to 0.5; arm 2 lacks two: 0.4 to 0.6.
    rows = [[0.5] * N, [1.0] * 4 + [0.0] * 5, [1.0] * 4 + [0.0] * 4]
    decision = decided(rows, delta=1e-9, epsilon=epsilon)
    assert decision.reason == expected
    if expected == "confident":
        assert decision.status == ("best", "not-better", "not-better")
        assert decision.claim == EXACT


def test_without_delta_a_campaign_goes_on_when_the_best_is_known():
    rows = [[1.0] * N, [0.0] * 9]
    going_on, stopped = decided(rows), decided(rows, delta=0.05)
    assert (going_on.reason, going_on.claim, going_on.status) == (
        "running",
        NOTHING_CLAIMED,
        ("active", "eliminated"),
    )
    assert (stopped.reason, stopped.claim, stopped.status) == ("confident", EXACT, ("best", "eliminated"))


def test_an_arm_with_unscored_examples_is_never_known_exactly():
    # A is right on 89% of 150, B on 60% and unreadable on the rest: B may be anything from 0.6 to 1.
    rows = [np.arange(150) < 134, np.where(np.arange(150) < 90, 1.0, NAN)]
    for delta in (None, 0.05):
        decision = decided(rows, n_examples=150, delta=delta)
        assert (decision.stop, decision.reason) == (True, "exhausted")
        assert decision.claim == NOTHING_CLAIMED
        assert decision.status == ("active", "active")
        np.testing.assert_allclose([decision.lower[1], decision.upper[1]], [0.6, 1.0], atol=1e-12)


def test_unscored_examples_that_cannot_change_the_answer_leave_it_exact():
    rows = [[1.0] * 9 + [NAN], [1.0] * 5 + [0.0] * 2 + [NAN] * 3]  # at least 0.9 against at most 0.8
    decision = decided(rows)
    assert (decision.reason, decision.claim, decision.best) == ("exhausted", EXACT, 0)
    assert decision.status == ("best", "eliminated")
    rows[1][5] = 1.0  # at most 0.9: never better, perhaps as good
    assert decided(rows).status == ("best", "not-better")
    assert decided(rows).claim == EXACT
    rows[1][6] = 1.0  # at most 1
    assert decided(rows).status == ("active", "active")
    assert decided(rows).claim == NOTHING_CLAIMED


def test_equal_sums_are_a_tie_however_they_are_added_up():
    upwards = [0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.2, 0.2, 0.7, 0.9]
    downwards = upwards[::-1]
    assert np.cumsum(upwards)[-1] != np.cumsum(downwards)[-1]  # as floats; `sum` corrects that from 3.12 on
    rows = [upwards, downwards, [0.0] * 8]
    decision = decided(rows, delta=1e-6)
    assert (decision.reason, decision.claim) == ("confident", EXACT)
    assert decision.status == ("tied", "tied", "eliminated")
    assert decision.best in (0, 1)


def test_when_all_sums_are_equal_all_arms_are_tied():
    for worth in (0.0, 0.5, 1.0):
        decision = decided([[worth] * N] * 3)
        assert decision.status == ("tied",) * 3
        assert (decision.reason, decision.claim) == ("exhausted", EXACT)


def test_known_ties_end_a_campaign_once_all_others_are_out_and_not_before():
    tied = [[1.0] * 6 + [0.0] * 4] * 2
    assert reason([*tied, [0.0] * 3], delta=1e-9) == "running"
    assert decided([*tied, [0.0] * 3], delta=1e-9).status == ("active",) * 3
    decision = decided([*tied, [0.0] * 5], delta=1e-9)
    assert (decision.reason, decision.status) == ("confident", ("tied", "tied", "eliminated"))
    decision = decided([*tied, [0.0] * 4], delta=1e-9)  # at most as good, perhaps as good
    assert (decision.reason, decision.status) == ("confident", ("tied", "tied", "not-better"))


def test_known_means_within_epsilon_of_the_highest_are_tied_and_the_highest_is_recommended():
    rows = [[0.5] * N, [0.55] * N, [0.45] * N, [0.4] * N]
    decision = decided(rows, epsilon=0.1)
    assert decision.status == ("tied", "tied", "tied", "eliminated")
    assert decision.best == 1
    assert decided(rows).status == ("eliminated", "best", "eliminated", "eliminated")


def test_an_arm_that_is_not_fully_scored_is_not_tied():
    decision = decided([[1.0] * N, [1.0] * 9], delta=0.05)
    assert (decision.best, decision.reason, decision.claim) == (0, "confident", EXACT)
    assert decision.status == ("best", "not-better")


def test_a_perfect_arm_ends_a_campaign_without_filling_the_rows_that_cannot_beat_it():
    assert reason([[1.0] * N, [1.0]], delta=0.05) == "confident"
    assert reason([[1.0] * 9, [1.0]], delta=0.05) == "running"


def test_what_only_the_intervals_say_is_proven_and_not_exact():
    rows = [[1.0] * 60, [0.0] * 60]
    proven = decided(rows, n_examples=1_000, delta=0.05)
    assert (proven.reason, proven.claim) == ("confident", Claim(kind="proven", delta=0.05))
    assert proven.status == ("best", "eliminated")
    assert decided(rows, n_examples=1_000).claim == NOTHING_CLAIMED
    spent = decided(rows, n_examples=1_000, budget=120)
    assert (spent.reason, spent.claim) == ("budget", Claim(kind="proven", delta=0.05))


def test_at_the_end_of_a_budget_nothing_more_is_claimed_than_was_proven():
    rows = [[1.0] * 6, [0.0] * 6]
    assert decided(rows, n_examples=1_000, budget=12).claim == HEURISTIC
    asked_for_proof = decided(rows, n_examples=1_000, budget=12, delta=0.05)
    assert (asked_for_proof.claim, asked_for_proof.status) == (NOTHING_CLAIMED, ("active", "active"))
    assert decided(rows, budget=12, intervals=False).claim == EXACT  # 0.6 at least against 0.4 at most
    assert decided(rows, n_examples=1_000, budget=12, intervals=False).claim == HEURISTIC


def test_a_ranking_chooses_among_those_that_can_be_the_best_and_proves_nothing():
    rows = [[1.0] * 60, [0.0] * 60, [0.0] * 60]
    wrong = [0.1, 0.9, 0.8]
    decision = decided(rows, wrong, n_examples=1_000, delta=0.05)
    assert (decision.best, decision.status) == (0, ("best", "eliminated", "eliminated"))
    np.testing.assert_array_equal(decision.ranking, wrong)
    np.testing.assert_allclose(decision.estimates, [1.0, 0.0, decision.estimates[2]])
    open_question = decided([[1.0] * 3, [0.0] * 3, [0.0]], wrong, n_examples=1_000, delta=0.05)
    assert (open_question.best, open_question.status) == (1, ("active",) * 3)


def test_the_budget_counts_unscored_pairs():
    rows = [[1.0, NAN], [0.0]]
    assert reason(rows, budget=4) == "running"
    assert reason(rows, budget=3) == "budget"


def test_room_is_what_the_budget_leaves_beside_the_pending_pairs():
    stopping, matrix = rule([[], []], budget=8)
    assert stopping.room(20) == 8
    matrix.ask(0, np.arange(5))
    assert (stopping.room(20), stopping.room(2)) == (3, 2)


def test_an_arm_is_dropped_from_the_eighth_pair_on_when_too_many_are_unscored():
    assert reason([[NAN] * 7, [1.0] * N]) == "running"
    assert reason([[NAN] * 8, [1.0] * N]) == "exhausted"
    assert reason([[NAN] * 4 + [1.0] * 4, [1.0] * N]) == "running"
    assert reason([[NAN] * 5 + [1.0] * 4, [0.0] * N]) == "exhausted"
    assert reason([[NAN] * 5 + [1.0] * 4, [0.0] * N], max_unscored=0.6) == "running"


def test_a_dropped_arm_is_neither_best_nor_compared_with_and_stays_dropped():
    stopping, matrix = rule([[NAN] * 5 + [1.0] * 4, [0.1]], n_examples=20)
    for batch, scores in (
        (Batch([0] * 11, range(9, 20)), [1.0] * 11),
        (Batch([1] * 19, range(1, 20)), [0.1] * 19),
    ):
        stopping.tell(batch, matrix.tell(batch, scores))
    decision = stopping.decision()
    assert (decision.best, decision.status) == (1, ("dropped", "best"))
    assert decision.upper[0] > decision.upper[1]
    assert not matrix.free_of_arm[0]


def test_the_last_arm_left_is_recommended_once_it_has_a_score():
    assert decided([[NAN] * 8, [NAN]], delta=0.05).reason == "running"
    assert decided([[NAN] * 8, [NAN, 0.5]], delta=0.05).status == ("dropped", "best")


def test_without_intervals_all_else_is_the_same():
    rows = [[1.0, 0.0, 1.0], [0.0]]
    decision, bare = decided(rows, budget=4), decided(rows, budget=4, intervals=False)
    assert np.isnan([bare.lower, bare.upper]).all()
    assert dataclasses.replace(bare, lower=decision.lower, upper=decision.upper) == decision


def test_a_campaign_that_stops_by_intervals_cannot_do_without():
    with pytest.raises(InvalidParameter, match="intervals must be true if delta is set, got False"):
        BestMeanConfig(n_arms=2, n_examples=N, delta=0.05, intervals=False)


def test_scores_and_intervals_that_do_not_agree_end_the_campaign():
    stopping, matrix = rule([[1.0] * 5, [0.0] * 5])
    matrix.tell(Batch([0] * 5, range(5, 10)), [1.0] * 5)  # and the intervals are not told
    with pytest.raises(ImpossibleState, match=r"arm 0: .* interval from 0.5 to 1 reaches beyond 1 to 1"):
        stopping.decision()


CLOSE = [[1.0] * 24, [0.0, 1.0] * 12, [0.0, 1.0] * 12]


def test_mended_a_campaign_stops_where_the_intervals_that_are_shown_still_overlap():
    mended, paper = (
        decided(CLOSE, n_examples=1_000, delta=0.05, variant=variant) for variant in ("mended", "paper")
    )
    assert (mended.reason, mended.claim) == ("confident", Claim(kind="proven", delta=0.05))
    assert mended.status == ("best", "eliminated", "eliminated")
    assert mended.lower[0] < mended.upper[1]
    assert (paper.reason, paper.status) == ("running", ("active",) * 3)


def test_the_levels_of_the_ends_are_those_of_the_proof():
    config = BestMeanConfig(n_arms=5, n_examples=N, delta=0.1)
    assert single_levels(config, "mended") == EndLevels(lower=0.1 / 8, upper=0.05)
    assert single_levels(config, "paper") is None


def test_every_dropped_arm_adds_half_of_delta_to_what_is_stated_and_nothing_as_published():
    rows = [[1.0] * 90, [0.0] * 90, [NAN] * 8, [NAN] * 8]
    for n_dropped, stated in ((0, 0.1), (1, 0.15), (2, 0.2)):
        arms = rows[: 2 + n_dropped]
        mended = decided(arms, n_examples=1_000, delta=0.1)
        assert mended.claim == Claim(kind="proven", delta=pytest.approx(stated))
        assert mended.status == ("best", "eliminated", *["dropped"] * n_dropped)
        paper = decided(arms, n_examples=1_000, delta=0.1, variant="paper")
        assert paper.claim == Claim(kind="proven", delta=0.1)


def test_nothing_is_proven_by_ends_where_nothing_could_be_stated():
    rows = [[1.0] * 100, [0.0] * 100, [NAN] * 8]
    assert decided(rows, n_examples=1_000, delta=0.7).reason == "running"
    assert decided(rows, n_examples=1_000, delta=0.6).reason == "confident"
    rows[1] += [0.0] * 900  # at most 0, against at least 0.1
    assert decided(rows, n_examples=1_000, delta=0.7).claim == EXACT


def test_a_campaign_is_exhausted_when_the_arms_in_question_are():
    unknown = [1.0] * 5 + [NAN] * 5
    rows = [unknown, unknown, [0.0] * 9]  # the last is known to be below 0.5, and may be asked once more
    stopping, _ = rule(rows, delta=0.05)
    assert stopping.in_question.tolist() == [True, True, False]
    assert (stopping.decision().reason, stopping.room(5)) == ("exhausted", 0)
    stopping, _ = rule(rows, delta=0.05, variant="paper")
    assert stopping.in_question.all()
    assert stopping.decision().reason == "running"
    assert rule(rows)[0].in_question.all()


def test_an_arm_is_in_question_again_when_the_one_that_beat_it_is_dropped():
    stopping, matrix = rule([[1.0] * 9, [0.0] * 9, [0.0] * 8], n_examples=40, delta=0.3, max_unscored=0.4)
    assert stopping.in_question.tolist() == [True, False, False]
    batch = Batch([0] * 8, range(9, 17))
    stopping.tell(batch, matrix.tell(batch, [NAN] * 8))
    assert stopping.in_question.tolist() == [False, True, True]
    assert stopping.decision().status == ("dropped", "active", "active")


def test_asked_next_are_those_that_keep_it_from_stopping():
    # Known to be 0.5 to 0.6, 0.4 to 0.6, 0.3 to 0.55 and 0 to 0.1.
    rows = [[5 / 9] * 9, [1.0] * 4 + [0.0] * 4, [1.0] * 3 + [0.0] * 4 + [0.5], [0.0] * 9]

    def waits(**params):
        stopping, _ = rule(rows, delta=1e-9, **params)
        return stopping.in_question.tolist(), stopping.worth_asking.tolist()

    assert waits() == ([True, True, True, False], [True, True, True, False])
    assert waits(epsilon=0.06) == ([True, True, True, False], [True, True, False, False])
    assert waits(variant="paper", epsilon=0.06) == ([True] * 4, [True] * 4)
    stopping, matrix = rule(rows, delta=1e-9, epsilon=0.06)
    for arm, first in ((0, 9), (1, 8)):
        matrix.ask(arm, np.arange(first, N))
    assert stopping.worth_asking.tolist() == [True, True, True, False]  # nothing else is left to ask

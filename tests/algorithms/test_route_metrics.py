import numpy as np
import pytest

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.route.metrics import (
    cumulative_regret,
    optimal_pick_ratio,
    outscore_the_best,
    pick_shares,
)

EXPECTED = np.array([[0.9, 0.1], [0.2, 0.6], [0.5, 0.5], [0.0, 0.4]])  # means 0.4 and 0.4
ARMS = np.array([0, 0, 1, 1])


def test_the_lead_over_the_best_arm_is_the_mean_so_far_less_its_mean_unscored_rounds_left_out():
    scores = np.array([np.nan, 1.0, 0.0, 0.5])
    np.testing.assert_allclose(outscore_the_best(scores, EXPECTED), [np.nan, 0.6, 0.1, 0.1])


def test_equally_good_arms_are_both_optimal_picks():
    np.testing.assert_allclose(optimal_pick_ratio(ARMS, EXPECTED), [1.0, 0.5, 2 / 3, 0.75])


def test_regret_adds_up_what_the_best_arm_would_have_had_more():
    np.testing.assert_allclose(cumulative_regret(ARMS, EXPECTED), [0.0, 0.4, 0.4, 0.4])


def test_shares_are_per_type_and_window_and_unknown_where_a_type_did_not_come():
    shares = pick_shares(np.array([0, 1, 1, 1, 0]), np.array([0, 0, 0, 1, 1]), n_arms=3, window=3)
    np.testing.assert_allclose(shares[0], [[1 / 3, 2 / 3, 0.0], [np.nan] * 3])
    np.testing.assert_allclose(shares[1], [[np.nan] * 3, [0.5, 0.5, 0.0]])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: outscore_the_best(np.zeros(3), EXPECTED), r"scores must be of shape \(T,\)"),
        (lambda: optimal_pick_ratio(ARMS[:3], EXPECTED), "arms must be"),
        (lambda: cumulative_regret(ARMS, EXPECTED[:, 0]), "arms must be"),
        (lambda: pick_shares(ARMS, ARMS[:2], 2, 2), r"types must be of shape \(4,\)"),
        (lambda: pick_shares(ARMS, ARMS, 2, 0), "window must be at least 1, got 0"),
    ],
)
def test_arrays_that_do_not_go_together_are_refused(call, message):
    with pytest.raises(InvalidParameter, match=message):
        call()

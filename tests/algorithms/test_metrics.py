import itertools
import math

import numpy as np
import pytest
from scipy.stats import binomtest

from winnow.algorithms.best_mean.metrics import (
    NOBODY,
    arms_not_worse,
    arms_within_gap,
    best_arms,
    budget_to_reach,
    hardness,
    hits,
    ndcg,
    true_means,
)
from winnow.algorithms.errors import InvalidParameter

NAN = np.nan


def test_a_true_mean_leaves_missing_scores_out():
    assert true_means([[1, 0, NAN], [0.5, NAN, NAN]]).tolist() == [0.5, 0.5]
    assert true_means(np.array([[1, 1], [0, 1]], dtype=np.uint8)).tolist() == [1.0, 0.5]


def test_an_arm_without_scores_has_no_mean():
    message = r"^scores must be present for every arm, got 'no score for arm 1'$"
    with pytest.raises(InvalidParameter, match=message):
        true_means([[1.0, 0.0], [NAN, NAN]])


def test_all_arms_that_tie_at_the_top_are_best():
    assert best_arms([0.25, 0.75, 0.75, 0.5]).tolist() == [False, True, True, False]


def test_a_gap_lets_arms_in_up_to_and_including_itself():
    means = [0.75, 0.5, 0.25]
    assert arms_within_gap(means, 0.25).tolist() == [True, True, False]
    assert arms_within_gap(means, 0.24).tolist() == [True, False, False]
    with pytest.raises(InvalidParameter, match=r"^gap must be non-negative, got -0\.1$"):
        arms_within_gap(means, -0.1)


@pytest.mark.parametrize("level", [0.01, 0.1])
def test_mcnemars_test_is_a_two_sided_binomial_test_of_the_discordant_examples(level):
    rng = np.random.default_rng(0)
    scores = (rng.random((40, 60)) < np.linspace(0.4, 0.9, 40)[:, np.newaxis]).astype(float)
    best = scores[scores.mean(axis=1).argmax()]
    expected = []
    for row in scores:
        wins, losses = int(((row == 1) & (best == 0)).sum()), int(((row == 0) & (best == 1)).sum())
        p_value = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
        expected.append(p_value > level)
    assert arms_not_worse(scores, level).tolist() == expected
    assert 1 < sum(expected) < 40


def test_mcnemars_test_by_hand():
    # 5 of 5 discordant examples lost: 2 / 2^5 = 0.0625. 7 of 7: 2 / 2^7 = 0.0156.
    best = [1] * 8
    scores = np.array([best, [0] * 5 + [1] * 3, [0] * 7 + [1]], dtype=float)
    assert arms_not_worse(scores, 0.1).tolist() == [True, False, False]
    assert arms_not_worse(scores, 0.05).tolist() == [True, True, False]
    assert arms_not_worse(scores, 0.01).tolist() == [True, True, True]


def test_examples_that_either_arm_lacks_are_left_out_of_mcnemars_test():
    scores = np.array([[1.0] * 8 + [NAN] * 8, [0.0] * 4 + [NAN] * 4 + [0.0] * 8])
    assert arms_not_worse(scores, 0.1).tolist() == [True, True]  # 4 of 4: 0.125
    scores[1, 4] = 0.0
    assert arms_not_worse(scores, 0.1).tolist() == [True, False]  # 5 of 5: 0.0625


def test_an_arm_that_wins_more_often_is_not_worse_even_if_its_mean_is_lower():
    scores = np.array([[0.4] * 20 + [1.0] * 5, [0.5] * 20 + [0.0] * 5])
    assert arms_not_worse(scores, 0.1).tolist() == [True, True]


def test_nobody_is_never_right_though_it_would_index_the_last_arm():
    assert hits([NOBODY, 2], best_arms([0.0, 0.0, 1.0])).tolist() == [False, True]


def test_ndcg_by_hand():
    # Ranked 0.5, 1.0, 0.0 where 1.0, 0.5, 0.0 is best.
    means = [1.0, 0.5, 0.0]
    ideal = 1.0 / math.log2(2) + 0.5 / math.log2(3)
    assert ndcg([0.6, 0.7, 0.1], means) == pytest.approx((0.5 / math.log2(2) + 1.0 / math.log2(3)) / ideal)
    assert ndcg([3.0, 2.0, 1.0], means) == 1.0
    assert ndcg([0.6, 0.7, 0.1], means, top=1) == pytest.approx(0.5)


def literal_ndcg(estimates, means, top):
    """The average over all orders that the estimates allow."""
    keys = [-math.inf if math.isnan(each) else each for each in estimates]
    allowed = [
        order
        for order in itertools.permutations(range(len(keys)))
        if all(keys[a] >= keys[b] for a, b in itertools.pairwise(order))
    ]
    gains = [sum(means[arm] / math.log2(p + 2) for p, arm in enumerate(order[:top])) for order in allowed]
    ideal = sum(mean / math.log2(p + 2) for p, mean in enumerate(sorted(means, reverse=True)[:top]))
    return sum(gains) / len(gains) / ideal


@pytest.mark.parametrize("top", [1, 3, 10])
def test_ndcg_averages_over_the_orders_of_tied_and_unknown_arms(top):
    means = [0.9, 0.1, 0.4, 0.8, 0.3, 0.6]
    for estimates in (
        [0.5, 0.5, 0.5, 0.2, NAN, NAN],
        [NAN, -0.5, 0.0, 0.1, NAN, 0.2],
        [NAN] * 6,
        [0.1, 0.1, 0.9, 0.9, 0.9, NAN],
    ):
        assert ndcg(estimates, means, top) == pytest.approx(literal_ndcg(estimates, means, top))


def test_ndcg_is_one_where_no_ranking_is_better_than_another():
    assert ndcg([0.3, NAN], [0.0, 0.0]) == 1.0


def test_ndcg_refuses_what_it_cannot_rank():
    with pytest.raises(InvalidParameter, match=r"^means must be non-negative, got -0\.5$"):
        ndcg([0.0, 1.0], [-0.5, 1.0])
    with pytest.raises(InvalidParameter, match=r"^estimates must be of the means' shape"):
        ndcg([0.0], [0.5, 1.0])
    with pytest.raises(InvalidParameter, match=r"^top must be at least 1, got 0$"):
        ndcg([0.0, 1.0], [0.5, 1.0], top=0)


def test_hardness_sums_over_the_arms_below_the_best():
    assert hardness([0.75, 0.25, 0.5, 0.75]) == 1 / 0.25 + 1 / 0.0625
    assert hardness([0.5, 0.5]) == 0.0


def test_the_budget_is_the_first_that_reaches_the_level():
    budgets = [10, 20, 30, 40]
    assert budget_to_reach(budgets, [0.5, 0.95, 0.9, 1.0]) == 20
    assert budget_to_reach(budgets, [0.5, 0.95, 0.9, 1.0], level=0.96) == 40
    assert budget_to_reach(budgets, [0.5, 0.6, 0.7, 0.94]) == math.inf
    with pytest.raises(InvalidParameter, match=r"^budgets must be increasing"):
        budget_to_reach([10, 10], [0.0, 1.0])
    with pytest.raises(InvalidParameter, match=r"^accuracy must be of the budgets' shape"):
        budget_to_reach(budgets, [0.0, 1.0])

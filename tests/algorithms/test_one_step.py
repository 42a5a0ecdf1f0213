"""Exact tests of the one-step estimates: over all orderings of tiny tables, and against the formulas."""

from collections import defaultdict
from itertools import combinations, permutations, product

import numpy as np
import pytest

from winnow.algorithms.papers.best_mean.low_rank_predictions import ArmPredictions
from winnow.algorithms.papers.best_mean.prediction_means import OneStepMeans, control_weight

TABLE = np.array([[1.0, 0.0, 0.3, 1.0], [0.0, 0.9, 0.0, 1.0]])
N_ARMS, N = TABLE.shape
ROUNDS, REFIT_EVERY, LONG_ROUND = 7, 2, 4  # two examples are drawn in the long round, in others one


class PeekingMeans(OneStepMeans):
    """Lets the control weight of a pull see the scores of that very pull."""

    def pull(self, arm, examples, scores, predicted):
        before = self._residual_sums[arm], self._residuals[arm]
        if predicted is not None:
            left = N - self._told[arm]
            self._residual_sums[arm] += left * (scores - predicted.of(examples)).mean()
            self._residuals[arm] += 1
        step = super().pull(arm, examples, scores, predicted)
        if predicted is not None:
            residual = self._residual_sums[arm] - before[0]
            self._residual_sums[arm], self._residuals[arm] = before[0] + residual, before[1] + 1
        return step


def toy_predictions(told):
    """Predictions of both arms that depend on all that was told, and are wrong."""
    seen = np.full(TABLE.shape, 0.4)
    for arm, example, score in told:
        seen[arm, example] = 0.8 * score
    return 0.5 * seen.mean(axis=1)[:, np.newaxis] + 0.5 * seen[::-1]


def steps_of(orders, means):
    """What was told before each pull, and by how much its theta misses the mean of its arm."""
    told, drawn, arms = [], [0] * N_ARMS, {}
    predictions = None
    for round_ in range(ROUNDS):
        bounds = [np.inf if not seen else means.estimates[arm] + seen**-0.5 for arm, seen in enumerate(drawn)]
        arm = int(
            np.argmax([bound if seen < N else -np.inf for bound, seen in zip(bounds, drawn, strict=True)])
        )
        if round_ >= N_ARMS and (round_ - N_ARMS) % REFIT_EVERY == 0:
            predictions, arms = toy_predictions(told), {}
        if predictions is not None and arm not in arms:
            arms[arm] = ArmPredictions.untold(predictions[arm], np.array(orders[arm][: drawn[arm]]))
        size = 2 if round_ == LONG_ROUND else 1
        examples = np.array(orders[arm][drawn[arm] : drawn[arm] + size])
        past = tuple(told)
        scores = TABLE[arm, examples]
        yield past, means.pull(arm, examples, scores, arms.get(arm)) - TABLE[arm].mean()
        drawn[arm] += len(examples)
        told += [(arm, int(j), float(s)) for j, s in zip(examples, scores, strict=True)]


def largest_conditional_bias(means):
    """The largest |E[theta | past] - mean|, by all orderings of all rows; and the number of pasts."""
    errors = defaultdict(list)
    for orders in product(permutations(range(N)), repeat=N_ARMS):
        for past, error in steps_of(orders, means(N_ARMS, N)):
            errors[past].append(error)
    return max(abs(np.mean(of_past)) for of_past in errors.values()), len(errors)


def test_given_any_past_the_expected_step_is_the_mean_of_the_arm():
    bias, pasts = largest_conditional_bias(OneStepMeans)
    assert pasts > 300
    assert bias < 1e-12


def test_the_enumeration_catches_a_weight_that_sees_the_scores_it_is_for():
    assert largest_conditional_bias(PeekingMeans)[0] > 0.01


def test_weights_in_the_enumeration_are_not_all_zero_or_one():
    seen = set()

    class Watched(OneStepMeans):
        def weight(self, arm, size, predicted):
            seen.add(super().weight(arm, size, predicted))
            return super().weight(arm, size, predicted)

    largest_conditional_bias(Watched)
    assert {0.0, 1.0} < seen
    assert len(seen) > 20


def test_sums_kept_by_subtraction_equal_sums_made_anew():
    rng = np.random.default_rng(0)
    scores = rng.random(500).astype(np.float32)
    order = rng.permutation(500)
    kept = ArmPredictions.untold(scores, order[:20])
    for start in range(20, 480, 23):
        kept.remove(order[start : start + 23])
        anew = ArmPredictions.untold(scores, order[: start + 23])
        assert kept.left == anew.left
        assert kept.total == pytest.approx(anew.total, rel=1e-11, abs=1e-11)
        assert kept.squares == pytest.approx(anew.squares, rel=1e-11, abs=1e-11)
        assert kept.least <= anew.least <= anew.most <= kept.most


def test_the_mean_of_the_untold_predictions_is_known_before_each_draw_of_a_pull():
    rng = np.random.default_rng(1)
    scores, order = rng.random(30), rng.permutation(30)
    draws = ArmPredictions.untold(scores, order[:7]).draws(order[7:13])
    np.testing.assert_allclose(draws.means, [scores[order[t:]].mean() for t in range(7, 13)], rtol=1e-12)
    np.testing.assert_array_equal(draws.values, scores[order[7:13]])


def implied_proxy(predictions, size, mean_residual):
    """D, from the weight that it gives."""
    weight = control_weight(ArmPredictions.untold(predictions, np.array([], int)), size, mean_residual)
    assert 0.0 < weight < 1.0
    return predictions.sum() * mean_residual / (1.0 - weight)


@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_the_proxy_is_the_mean_square_of_a_batch_sum_over_all_batches(size):
    predictions = np.array([0.1, 0.9, 0.4, 0.4, 0.7, 0.2])
    sums = [len(predictions) / size * sum(batch) for batch in combinations(predictions, size)]
    assert implied_proxy(predictions, size, 0.5) == pytest.approx(np.mean(np.square(sums)), rel=1e-12)


def test_for_single_draws_the_proxy_is_that_of_the_paper():
    predictions = np.array([0.1, 0.9, 0.4, 0.4, 0.7, 0.2])
    assert implied_proxy(predictions, 1, 0.5) == pytest.approx(6 * (predictions**2).sum(), rel=1e-12)


@pytest.mark.parametrize(("mean_residual", "weight"), [(np.nan, 1.0), (-3.0, 1.0), (50.0, 0.0), (0.0, 1.0)])
def test_the_weight_stays_between_0_and_1_and_is_1_without_a_past(mean_residual, weight):
    predicted = ArmPredictions.untold(np.full(10, 0.5), np.array([], int))
    assert control_weight(predicted, 4, mean_residual) == weight


def test_predictions_that_are_all_zero_and_a_last_single_example_divide_by_nothing():
    assert control_weight(ArmPredictions.untold(np.zeros(5), np.array([], int)), 2, 1.0) == 1.0
    assert control_weight(ArmPredictions.untold(np.full(1, 0.5), np.array([], int)), 1, 0.25) == 0.5


def test_exact_predictions_give_the_exact_mean_at_once():
    means = OneStepMeans(1, N)
    means.pull(0, np.array([2]), TABLE[0, [2]], ArmPredictions.untold(TABLE[0], np.array([], int)))
    assert means.estimates[0] == pytest.approx(TABLE[0].mean(), abs=1e-15)


def test_a_full_row_is_known_though_its_steps_were_off():
    means = OneStepMeans(1, N)
    for example in range(N):
        means.pull(0, np.array([example]), TABLE[0, [example]], None)
    assert means.estimates[0] == TABLE[0].mean()


def test_an_unscored_pair_leaves_the_population_and_no_step_comes_of_it_alone():
    # One of four is unscored, so three count: 1 stands for all three, then 1 is told and 0 stands for two.
    means = OneStepMeans(1, 4)
    assert np.isnan(means.pull(0, np.array([0]), np.array([np.nan]), None))
    assert np.isnan(means.estimates[0])
    assert means.pull(0, np.array([1]), np.array([1.0]), None) == 1.0
    assert means.pull(0, np.array([2]), np.array([0.0]), None) == pytest.approx((1.0 + 2 * 0.0) / 3)
    means.pull(0, np.array([3]), np.array([1.0]), None)
    assert means.estimates[0] == pytest.approx(2 / 3)

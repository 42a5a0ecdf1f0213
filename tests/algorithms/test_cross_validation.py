import numpy as np
import pytest

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.low_rank.cross_validation import (
    Configuration,
    cross_validate,
    most_parsimonious_first,
    one_standard_error_rule,
)


def test_lower_ranks_and_stronger_ridges_come_first():
    pairs = [(each.rank, each.ridge) for each in most_parsimonious_first([8, 2], [0.1, 1.0])]
    assert pairs == [(2, 1.0), (2, 0.1), (8, 1.0), (8, 0.1)]


def test_the_first_row_within_one_standard_error_of_the_best_is_chosen():
    # The best row has mean 1 and standard error 0.1 * sqrt(5 / 4) / sqrt(5) = 0.05 over its five folds.
    best = 1.0 + 0.1 * np.array([1.0, 1.0, -1.0, -1.0, 0.0]) * np.sqrt(5 / 4)
    assert best.std() == pytest.approx(0.1)
    for loss_of_simplest, chosen in ((1.049, 0), (1.051, 1)):
        losses = np.array([[loss_of_simplest] * 5, [1.02] * 5, best, [1.01] * 5])
        losses[2] = 1.0 + (best - 1.0) * (0.05 * np.sqrt(5) / best.std(ddof=1))
        assert one_standard_error_rule(losses) == chosen


def test_the_rank_of_a_table_is_found_and_a_higher_one_passed_over():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2.0, (120, 2)) @ rng.normal(0, 1.0, (2, 150))
    scores = (rng.random(z.shape) < 1 / (1 + np.exp(-z))).astype(float)
    scores[rng.random(z.shape) < 0.1] = np.nan
    found = cross_validate(scores, ranks=[1, 2, 6], ridges=[0.1, 10.0], rng=np.random.default_rng(1))
    assert found.chosen.rank == 2
    assert found.losses.shape == (6, 5)
    assert found.configurations[0] == Configuration(rank=1, ridge=10.0)
    assert found.losses.mean(axis=1).min() < 0.9 * np.log(2)


def test_the_same_generator_gives_the_same_folds():
    scores = np.random.default_rng(0).random((10, 12))
    first, second = (
        cross_validate(scores, ranks=[1, 99], ridges=[0.1], rng=np.random.default_rng(4)) for _ in range(2)
    )
    np.testing.assert_array_equal(first.losses, second.losses)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"ranks": [0, 2]}, r"ranks must be one number or more, each at least 1, got \[0, 2\]"),
        ({"ridges": []}, r"ridges must be one number or more, each positive, got \[\]"),
        ({"folds": 1}, "folds must be at least 2, got 1"),
        ({"folds": 13}, "folds must be at most 12, the number of scores, got 13"),
    ],
)
def test_what_cannot_be_tried_is_refused(wrong, message):
    params = {"ranks": [1], "ridges": [0.1], "rng": np.random.default_rng(0), **wrong}
    with pytest.raises(InvalidParameter, match=message):
        cross_validate(np.full((3, 4), 0.5), **params)

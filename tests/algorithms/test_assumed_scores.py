"""Made-up scores have the means that were asked for, and fail together as often as is worked out."""

import numpy as np
import pytest

from winnow.algorithms.state.assumed_scores import assumed_scores, disagreement


def test_assumed_scores_have_exactly_the_means_that_were_assumed():
    rng = np.random.default_rng(0)
    scores = assumed_scores(np.array([0.8, 0.75, 0.0, 1.0, 0.333]), 40, alike=0.5, rng=rng)
    assert scores.mean(axis=1).tolist() == [0.8, 0.75, 0.0, 1.0, 13 / 40]
    assert set(np.unique(scores)) == {0.0, 1.0}


@pytest.mark.parametrize("alike", [0.0, 0.6])
def test_candidates_disagree_as_often_as_is_worked_out(alike):
    """Of 200 000 examples, so that the share has a standard error of 0.001; the seed is fixed."""
    scores = assumed_scores(np.array([0.8, 0.6]), 200_000, alike=alike, rng=np.random.default_rng(1))
    assert (scores[0] != scores[1]).mean() == pytest.approx(disagreement(0.8, 0.6, alike), abs=0.004)
    assert disagreement(0.8, 0.6, 0.0) == pytest.approx(0.8 * 0.4 + 0.2 * 0.6)

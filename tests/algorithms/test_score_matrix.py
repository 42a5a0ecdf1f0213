from collections import deque

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.best_mean.score_matrix import ScoreMatrix, highest
from winnow.algorithms.protocols import Batch

K, N = 4, 12


@given(seed=st.integers(0, 10_000), steps=st.integers(1, 12))
def test_running_counts_equal_those_counted_afresh(seed, steps):
    rng = np.random.default_rng(seed)
    matrix = ScoreMatrix(BestMeanConfig(n_arms=K, n_examples=N))
    scores, asked = np.full((K, N), -1.0), np.zeros((K, N), dtype=bool)
    in_flight = deque()
    for _ in range(steps):
        if rng.random() < 0.5 and matrix.free_of_arm.any():
            arm = highest(rng.random(K), matrix.free_of_arm, matrix.pending, rng)
            batch = matrix.ask(arm, matrix.draw(arm, 3, rng))
            assert not asked[batch.arms, batch.examples].any()
            asked[batch.arms, batch.examples] = True
            in_flight.append(batch)
            continue
        if in_flight and rng.random() < 0.6:
            batch = in_flight.popleft()
        else:
            batch = Batch(*rng.permutation(np.argwhere(~asked))[:5].T)
        outcomes = np.where(rng.random(len(batch)) < 0.5, np.nan, rng.random(len(batch)))
        matrix.tell(batch, outcomes)
        scores[batch.arms, batch.examples] = outcomes
        asked[batch.arms, batch.examples] = True
    told = scores != -1.0
    np.testing.assert_array_equal(matrix.told, told.sum(axis=1))
    np.testing.assert_array_equal(matrix.scored, (told & ~np.isnan(scores)).sum(axis=1))
    np.testing.assert_array_equal(matrix.pending, (asked & ~told).sum(axis=1))
    np.testing.assert_allclose(matrix.sums, np.where(told, np.nan_to_num(scores), 0.0).sum(axis=1))
    for end, worth in zip(matrix.possible_means, (0.0, 1.0), strict=True):
        completed = np.where(told, np.nan_to_num(scores, nan=worth), worth)
        np.testing.assert_allclose(end, completed.mean(axis=1), atol=1e-12)
    np.testing.assert_array_equal(matrix.fully_scored, (told & ~np.isnan(scores)).all(axis=1))
    free = ~asked & matrix.active[:, np.newaxis]
    np.testing.assert_array_equal(matrix.is_free(np.arange(K)[:, np.newaxis], np.arange(N)), free)
    np.testing.assert_array_equal(matrix.free_of_arm, free.sum(axis=1))
    left = np.flatnonzero(matrix.active)
    np.testing.assert_array_equal(matrix.open_examples(left), np.flatnonzero(free.any(axis=0)))

"""Seeded simulations: claims are wrong as seldom as promised, whatever is missing and whoever drops out."""

import numpy as np
import pytest
from failure_rates import fails_too_often
from selector_worlds import BestMeanWorld

from winnow.algorithms.bounds.confidence_sequences import FinitePopulationIntervals

DELTA, RUNS, N = 0.2, 200, 100

pytestmark = pytest.mark.statistical


def wrong_claims(name, **params):
    """Whether a campaign claims an arm that is not the best of those that were not dropped.

    Arm 0 is best until its server dies, arms 1 and 2 differ in one example, and arm 3 is right on half of the
    examples and mostly unreadable where it is wrong.
    """
    for seed in range(RUNS):
        rng = np.random.default_rng([23, seed])
        right = np.array([70, 64, 65, 50])
        truth = rng.permuted(np.arange(N) < right[:, np.newaxis], axis=1).astype(float)
        world = BestMeanWorld(n_arms=4, n_examples=N)
        world.scores = np.where((np.arange(4)[:, np.newaxis] == 3) & (truth == 0.0), np.nan, truth)
        world.scores[3, rng.permutation(N)[:10]] = 1.0  # right, or guessed
        truth[3] = np.nan_to_num(world.scores[3], nan=0.0)
        selector = world.selector(name, delta=DELTA, batch_size=16, max_unscored=0.55, **params)
        deaths = rng.integers(20, 80)
        for batch, _ in world.rounds(selector, seed=seed):
            deaths -= int((batch.arms == 0).sum())
            if deaths < 0:
                world.scores[0] = np.nan
        decision = selector.decision()
        left = np.array(decision.status) != "dropped"
        is_wrong = decision.best is not None and truth[decision.best].mean() < truth[left].mean(axis=1).max()
        yield decision.claim.kind in ("exact", "proven") and is_wrong


@pytest.mark.parametrize("name", ["ucb-e", "naive-pooling"])
@pytest.mark.parametrize("variant", ["mended", "paper"])
def test_claims_are_wrong_in_at_most_a_share_delta_of_campaigns(name, variant):
    # Of 200: 0 to 2; alarm at 70. A true rate of 0.5 is seen with probability above 0.999. What is stated
    # with an arm dropped is more than delta, and would be a weaker test.
    assert not fails_too_often(wrong_claims(name, variant=variant), RUNS, DELTA)


def test_the_check_catches_unscored_examples_that_are_left_out(monkeypatch):
    update = FinitePopulationIntervals.update

    def scored_only(self, arms, scores, is_draw=None):
        is_scored = ~np.isnan(scores)
        update(self, arms[is_scored], scores[is_scored], None if is_draw is None else is_draw[is_scored])

    monkeypatch.setattr(FinitePopulationIntervals, "update", scored_only)
    assert fails_too_often(wrong_claims("ucb-e"), RUNS, DELTA)  # 115

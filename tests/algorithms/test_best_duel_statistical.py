"""How often a campaign of duels stops with another arm than the best."""

import numpy as np
import pytest
from scipy.stats import binom

from algorithms.best_duel import count_evidence
from algorithms.protocols import round_rng
from algorithms.registry import create_selector

DELTA, RUNS, BUDGET, FALSE_ALARM = 0.1, 200, 400, 1e-6
PREFERENCES = np.array([[0.5, 0.51, 0.53], [0.49, 0.5, 0.52], [0.47, 0.48, 0.5]])


def too_many(errors):
    """Whether Binomial(RUNS, DELTA) would reach `errors` with probability below FALSE_ALARM."""
    return bool(binom.sf(errors - 1, RUNS, DELTA) < FALSE_ALARM)


def errors(name, threshold):
    """How many of RUNS seeded campaigns stop as separated with an arm that is not the best."""
    wrong = 0
    for run in range(RUNS):
        selector = create_selector(
            name, n_arms=3, n_examples=9, batch_size=8, budget=BUDGET, delta=DELTA, threshold=threshold
        )
        outcomes_rng, played = np.random.default_rng([run, 1]), 0
        while len(batch := selector.ask(round_rng(run, played))):
            chances = PREFERENCES[batch.arms[:, 0], batch.arms[:, 1]]
            selector.tell(batch, outcomes_rng.random(len(batch)) < chances)
            played += 1
        decision = selector.decision()
        wrong += decision.reason == f"separated-{threshold}" and decision.best != 0
    return wrong


# A true rate of 0.26 is seen with probability above 0.9: alarm at 44 of 200.
@pytest.mark.statistical
@pytest.mark.parametrize("threshold", ["practical", "proven"])
@pytest.mark.parametrize("name", ["llm-po", "rucb"])
def test_a_separated_arm_is_not_the_best_in_at_most_a_share_delta_of_campaigns(name, threshold):
    assert not too_many(errors(name, threshold))


@pytest.mark.statistical
def test_the_check_catches_a_threshold_that_forgets_how_long_it_looks(monkeypatch):
    monkeypatch.setattr(count_evidence, "practical_threshold", lambda delta, n_duels: 1.0)
    assert too_many(errors("llm-po", "practical"))

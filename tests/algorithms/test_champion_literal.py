"""The fast wealths against the slow literal ones, on whole campaigns."""

import numpy as np
import pytest
from literal_champion import LiteralChampion, literal_past

from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector

NEVER = 1e-290  # a delta at which no wealth is enough, so that arms are out for certain only


def world(seed, n_arms, n_examples, unscored):
    rng = np.random.default_rng(seed)
    ease, skill = rng.normal(0.0, 1.0, n_examples), rng.normal(0.0, 0.4, n_arms)
    scores = (rng.normal(0.0, 1.0, (n_arms, n_examples)) < ease + skill[:, np.newaxis]).astype(float)
    scores[0] = np.round(rng.random(n_examples), 2)
    scores[rng.random(scores.shape) < unscored] = np.nan
    return scores


@pytest.mark.parametrize(
    ("seed", "n_arms", "n_examples", "params"),
    [
        (0, 3, 40, {"start": "auto", "batch_size": 3}),
        (1, 5, 70, {"start": "auto", "batch_size": 16, "epsilon": 0.05}),
        (2, 6, 35, {"start": "champion", "batch_size": 4}),
        (3, 15, 50, {"start": "race", "batch_size": 30}),
        (4, 4, 60, {"start": "auto", "batch_size": 24}),
        (5, 5, 60, {"start": "auto", "batch_size": 12, "history": world(9, 20, 60, unscored=0.3)}),
        (6, 6, 40, {"start": "champion", "batch_size": 4, "history": world(9, 130, 40, unscored=0.6)}),
    ],
)
def test_wealths_are_those_of_the_formulas_written_out(seed, n_arms, n_examples, params):
    scores = world(seed, n_arms, n_examples, unscored=0.05)
    selector = create_selector("champion", n_arms=n_arms, n_examples=n_examples, delta=NEVER, **params)
    weight = selector.evidence.mode.weight
    past = literal_past(params["history"]) if "history" in params else None
    literal = LiteralChampion(n_arms, n_examples, weight, params.get("epsilon", 0.0), past)
    n_compared, round_ = 0, 0
    while len(batch := selector.ask(round_rng(seed, round_))):
        outcomes = scores[batch.arms, batch.examples]
        was_racing = selector.evidence.can_race
        selector.tell(batch, outcomes)
        round_ += 1
        if was_racing and selector.evidence.in_race:
            examples = batch.examples.reshape(-1, n_arms)[:, 0]
            literal.columns_told(examples, outcomes.reshape(-1, n_arms).T)
            literal.crown()
        else:
            literal.told(batch.arms, batch.examples, outcomes)
        if round_ % 5 == 0 or round_ < 12:
            arms = np.flatnonzero(selector.evidence.alive & (selector.evidence.draws.count < n_examples))
            wanted = [literal.wealth(int(arm)) for arm in arms]
            np.testing.assert_allclose(selector.wealths[arms], wanted, rtol=1e-9)
            n_compared += len(arms)
            if literal.champion is not None and len(arms):
                total = selector.evidence.total
                for higher in (0.0, 0.02, 0.3):
                    wanted = [literal.wealth_at(int(arm), higher) for arm in arms]
                    found = selector.evidence.wealths_at(arms, total + higher * n_examples)
                    np.testing.assert_allclose(found, wanted, rtol=1e-7)
    assert n_compared > 20
    assert literal.champion == selector.evidence.champion

"""With open ties, a campaign ends once no other arm can have a higher mean, whatever was not observed."""

import numpy as np
import pytest

from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector


def played(table, **params):
    selector = create_selector(
        "champion", n_arms=len(table), n_examples=table.shape[1], delta=0.05, batch_size=64, **params
    )
    asked = 0
    while len(batch := selector.ask(round_rng(0, asked))):
        selector.tell(batch, table[batch.arms, batch.examples])
        asked += len(batch)
    return asked, selector.decision()


@pytest.mark.parametrize(
    ("shape", "params", "most"),
    [((5, 1000), {}, 2200), ((500, 3), {}, 1001), ((5, 1000), {"top_m": 2}, 3000)],
)
def test_arms_that_are_all_right_end_once_none_can_be_higher(shape, params, most):
    asked, decision = played(np.ones(shape), ties="open", **params)
    assert asked <= most
    assert (decision.reason, decision.claim.kind) == ("confident", "exact")
    assert "not-better" in decision.status
    assert "tied" not in decision.status


def test_resolved_ties_go_on_to_the_whole_grid():
    asked, decision = played(np.ones((5, 100)), ties="resolve")
    assert asked == 500
    assert set(decision.status) == {"tied"}


def test_no_arm_is_left_that_can_be_higher():
    table = np.ones((4, 200))
    table[0, 150:] = 0.0
    _, decision = played(table, ties="open")
    assert table[decision.best].mean() == 1.0

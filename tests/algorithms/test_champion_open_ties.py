"""With open ties, a campaign ends once no other arm can have a higher mean, whatever was not observed."""

import numpy as np
import pytest

from tests.benchmarks.certain_end import cells
from winnow.algorithms.protocols import round_rng
from winnow.algorithms.registry import create_selector


def played(table, selector="champion", values=None, **params):
    """The number of comparisons until a selector stops, and its decision; `values` are of a constraint."""
    settings = {"delta": 0.05, "batch_size": 64} | params
    playing = create_selector(selector, n_arms=len(table), n_examples=table.shape[1], **settings)
    outcomes, asked = table if values is None else np.stack([table, values], axis=2), 0
    while len(batch := playing.ask(round_rng(0, asked))):
        playing.tell(batch, outcomes[batch.arms, batch.examples])
        asked += len(batch)
    return asked, playing.decision()


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


HALVES = {"groups": np.arange(1000) % 2}
QUESTIONS = {
    "race": {"selector": "race"},
    "race by groups": {"selector": "race", **HALVES, "group_weights": np.ones(2)},
    "weighted groups": {**HALVES, "group_weights": np.array([1.0, 3.0])},
    "least group": HALVES,
    "constraint": {"constraints": np.array([0.9]), "values": np.ones((5, 1000))},
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_ends_early_with_open_ties_and_not_with_resolved_ones(question):
    table, params = np.ones((5, 1000)), QUESTIONS[question]
    asked, decision = played(table, ties="open", **params)
    assert (decision.reason, decision.claim.kind) == ("confident", "exact")
    assert asked < 0.9 * 5000 if "race" not in question else asked <= 5000
    resolved, other = played(table, ties="resolve", **params)
    assert asked <= resolved == 5000
    assert set(other.status) == {"tied"}


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_not_observed_could_not_have_changed_the_answer(question):
    """Whatever the unobserved scores are, no other arm is higher: they are put as high as they can be."""
    rng = np.random.default_rng(1)
    table = (rng.random((5, 1000)) < np.array([1.0, 0.999, 1.0, 0.9, 0.5])[:, np.newaxis]).astype(float)
    params = dict(QUESTIONS[question])
    playing = create_selector(
        params.pop("selector", "champion"),
        n_arms=5,
        n_examples=1000,
        delta=0.05,
        ties="open",
        **{name: value for name, value in params.items() if name != "values"},
    )
    known, number = np.full(table.shape, np.nan), 0
    while len(batch := playing.ask(round_rng(1, number))):
        scores = table[batch.arms, batch.examples]
        known[batch.arms, batch.examples] = scores
        playing.tell(
            batch, np.stack([scores, np.ones_like(scores)], axis=1) if "values" in params else scores
        )
        number += 1
    decision = playing.decision()
    if decision.claim.kind == "exact":
        best, others = decision.best, np.arange(5) != decision.best
        assert np.nan_to_num(known[best]).mean() >= np.nan_to_num(known[others], nan=1.0).mean(axis=1).max()
    assert table[decision.best].mean() == table.mean(axis=1).max()


def test_the_cheapest_that_is_good_enough_is_still_looked_for_with_open_ties():
    """The end by certainty is about the best mean; a cheaper one has to be shown to be as good."""
    table = np.ones((4, 400))
    params = {"prefer": "cost", "costs": np.array([4.0, 3.0, 2.0, 1.0]), "epsilon": 0.2}
    asked, decision = played(table, ties="open", **params)
    resolved, other = played(table, ties="resolve", **params)
    assert asked <= resolved < 1600
    assert decision.status[3] == other.status[3] == "chosen"
    assert decision.claim.kind == "proven"


@pytest.mark.parametrize(
    "cell", [each for each in cells() if "one by one" not in each.name], ids=lambda each: each.name
)
def test_an_exact_answer_is_never_wrong_unless_unknown_scores_are_taken_for_known(cell):
    ends = [cell.end(np.random.default_rng([7, seed])) for seed in range(12)]
    false = sum(end.is_certain and end.is_wrong for end in ends)
    assert (false > 0) == (cell.expected == "broken")

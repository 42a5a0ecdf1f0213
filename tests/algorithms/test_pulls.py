"""How rounds are made of pulls, and that arms which are out are asked no more."""

import numpy as np
import pytest
from selector_worlds import BestMeanWorld

from winnow.algorithms.errors import InvalidParameter
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector

BY_BOUNDS = ("ucb-e", "naive-pooling", "pulse", "ucb-e-lrf-score-only")
STOPPING = (*BY_BOUNDS, "ucb-e-lrf", "row-mean", "lrf", "filled-subset")


def sizes(batch):
    """How many examples of which arms, in the order of the batch."""
    starts = np.flatnonzero(np.diff(batch.arms, prepend=-1))
    return [
        (int(arm), int(size))
        for arm, size in zip(batch.arms[starts], np.diff([*starts, len(batch)]), strict=True)
    ]


def told(*rows, **params):
    """UCB-E after these scores of its arms."""
    selector = create_selector("ucb-e", n_arms=len(rows), n_examples=200, **params)
    for arm, row in enumerate(rows):
        selector.tell(Batch([arm] * len(row), range(len(row))), row)
    return selector


def test_a_first_round_is_first_pulls_of_as_many_arms_as_fit():
    selector = create_selector("ucb-e", n_arms=9, n_examples=50, batch_size=20, first_pull=6)
    asked = sizes(selector.ask(round_rng(0, 0)))
    assert [size for _, size in asked] == [6, 6, 6, 2]
    assert len({arm for arm, _ in asked}) == 4
    later = sizes(selector.ask(round_rng(0, 1)))
    assert not {arm for arm, _ in asked} & {arm for arm, _ in later}


def test_a_pull_counts_at_once_so_that_a_round_is_shared_by_the_bounds():
    # a = 1: 0.6 + sqrt(1 / 4) = 1.1 falls to 0.6 + sqrt(1 / 8) = 0.954 after a pull of 4; the other has
    # 0.5 + sqrt(1 / 4) = 1 and then 0.854; 0.6 + sqrt(1 / 12) = 0.889 and 0.85.
    rows = [0.6] * 4, [0.5] * 4
    assert sizes(told(*rows, batch_size=12, pull=4).ask(round_rng(0, 0))) == [(0, 8), (1, 4)]
    assert sizes(told(*rows, batch_size=16, pull=4).ask(round_rng(0, 0))) == [(0, 12), (1, 4)]
    assert sizes(told(*rows, batch_size=12, variant="paper").ask(round_rng(0, 0))) == [(0, 12)]


def test_pairs_in_flight_count_as_asked():
    selector = told([0.6] * 4, [0.5] * 4, batch_size=4, pull=4)
    assert [sizes(selector.ask(round_rng(0, t))) for t in range(3)] == [[(0, 4)], [(1, 4)], [(0, 4)]]


def test_a_round_is_filled_up_where_a_row_ends():
    rows = [1.0] * 197, [0.5] * 8
    assert sorted(sizes(told(*rows, batch_size=8, a=100.0).ask(round_rng(0, 0)))) == [(1, 8)]
    assert sizes(told(*rows, batch_size=8, a=0.0).ask(round_rng(0, 0))) == [(0, 3), (1, 5)]


@pytest.mark.parametrize("name", STOPPING)
@pytest.mark.parametrize("variant", ["mended", "paper"])
def test_an_arm_that_is_out_is_asked_no_more_unless_as_published(name, variant):
    # Arm 3 is out after a few examples; the others are too close to be told apart.
    world = BestMeanWorld(n_arms=4, n_examples=80)
    world.scores = np.tile(np.arange(80) % 2, (4, 1)).astype(float)
    world.scores[:3, 0], world.scores[3] = 1.0, 0.0
    selector = world.selector(name, delta=0.05, batch_size=8, variant=variant)
    asked, is_out, afterwards = 0, False, 0
    for batch, _ in world.rounds(selector):
        of_arm = int((batch.arms == 3).sum())
        asked, afterwards = asked + of_arm, afterwards + is_out * of_arm
        is_out = selector.decision().status[3] == "eliminated"
    assert is_out
    assert asked < 80 or variant == "paper"
    assert afterwards == 0 or variant == "paper"


def test_as_published_an_arm_that_is_out_is_asked_on():
    # The test above would pass if nothing was ever asked of an arm that is out, in either variant.
    world = BestMeanWorld(n_arms=4, n_examples=150)
    world.scores = np.tile(np.arange(150) % 2, (4, 1)).astype(float)
    world.scores[:3, 0], world.scores[3] = 1.0, 0.0
    selector = world.selector("row-mean", delta=0.05, batch_size=8, variant="paper")
    assert sum(int((batch.arms == 3).sum()) for batch, _ in world.rounds(selector)) == 150


def test_without_delta_all_arms_are_asked_until_nothing_is_left():
    world = BestMeanWorld(n_arms=3, n_examples=60)
    world.scores[:] = np.array([0.0, 1.0, 0.5])[:, np.newaxis]
    selector = world.selector("ucb-e")
    assert sum(len(batch) for batch, _ in world.rounds(selector)) == 180
    assert selector.decision().reason == "exhausted"


@pytest.mark.parametrize("name", BY_BOUNDS)
@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"pull": 0}, "pull must be at least 1 or None, got 0"),
        ({"first_pull": -1}, "first_pull must be at least 1 or None, got -1"),
        (
            {"pull": 4, "variant": "paper"},
            "pull must be None if variant is 'paper', which pulls batch_size pairs",
        ),
        ({"first_pull": 4, "variant": "paper"}, "first_pull must be None if variant is 'paper'"),
        ({"variant": "published"}, "variant must be 'mended' or 'paper', got 'published'"),
    ],
)
def test_a_bad_value_is_refused_early_and_shown(name, params, message):
    with pytest.raises(InvalidParameter, match=message):
        BestMeanWorld().selector(name, **params)

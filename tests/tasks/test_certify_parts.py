"""How a dataset is divided into what a human may label and what the autoevaluator alone answers."""

from collections import Counter

import numpy as np
import pytest

from winnow.tasks.errors import SpecError
from winnow.tasks.objectives.certify.split import divide


def parts(has_target, *, seed=1, fingerprint="f", per_label=2, labellable=None):
    return divide(has_target, seed=seed, fingerprint=fingerprint, per_label=per_label, labellable=labellable)


def test_no_example_stands_twice_and_blocks_are_of_the_size_asked_for():
    found = parts([False] * 31)
    assert found.labellable.shape == (10,)
    assert found.blocks.shape == (10, 2)
    every = [*found.labellable.tolist(), *found.blocks.ravel().tolist()]
    assert len(every) == len(set(every)) == 30
    assert set(every) <= set(range(31))


def test_examples_with_a_target_are_the_labelled_ones_unless_more_are_asked_for():
    has_target = [position % 5 == 0 for position in range(30)]
    assert sorted(parts(has_target).labellable.tolist()) == [0, 5, 10, 15, 20, 25]
    more = parts(has_target, labellable=9).labellable.tolist()
    assert set(more[:6]) == {0, 5, 10, 15, 20, 25}
    assert len(set(more)) == 9
    assert set(parts(has_target, labellable=2).labellable.tolist()) < {0, 5, 10, 15, 20, 25}


def test_where_all_have_targets_as_many_are_labelled_as_leave_room_for_the_blocks():
    assert parts([True] * 30).labellable.shape == (10,)
    assert parts([True] * 30, per_label=0).labellable.shape == (30,)


def test_a_block_is_found_by_its_labelled_example():
    found = parts([False] * 30)
    for number, example in enumerate(found.labellable.tolist()):
        assert found.block(example) == found.blocks[number].tolist()


def test_the_draw_follows_from_the_seed_and_the_data_alone():
    first, again = parts([False] * 30), parts([False] * 30)
    assert np.array_equal(first.labellable, again.labellable)
    assert np.array_equal(first.blocks, again.blocks)
    for other in (parts([False] * 30, seed=2), parts([False] * 30, fingerprint="g")):
        assert not np.array_equal(first.labellable, other.labellable)


@pytest.mark.statistical
def test_every_example_is_labelled_equally_often_over_seeds():
    """Each of 600 draws takes 10 of 30: a count outside 200 +- 5 sd has a chance of about 2e-5 for all 30."""
    counts = Counter(
        example for seed in range(600) for example in parts([False] * 30, seed=seed).labellable.tolist()
    )
    assert all(abs(counts[example] - 200) < 5 * (600 * 2 / 9) ** 0.5 for example in range(30))


@pytest.mark.parametrize(
    ("count", "per_label", "labellable", "place"),
    [(2, 2, None, "certify.unlabelled_per_label"), (30, 2, 11, "certify.labellable")],
)
def test_too_few_examples_are_refused_with_the_key_to_change(count, per_label, labellable, place):
    with pytest.raises(SpecError, match=f"the dataset has {count} examples") as refused:
        parts([False] * count, per_label=per_label, labellable=labellable)
    assert refused.value.path == place

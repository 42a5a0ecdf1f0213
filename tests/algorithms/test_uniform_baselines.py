"""Row Mean Imputation and Filled Subset."""

import numpy as np
import pytest
from scipy.stats import chisquare
from selector_worlds import BestMeanWorld

from winnow.algorithms.best_mean.baselines.row_mean import RowMean
from winnow.algorithms.best_mean.config import BestMeanConfig
from winnow.algorithms.papers.best_mean.baselines import FilledSubset
from winnow.algorithms.protocols import Batch, round_rng
from winnow.algorithms.registry import create_selector

FALSE_ALARM = 1e-6
SEEDS = 3_000


def is_uneven(counts):
    """Whether equal chances would give counts this uneven with probability below FALSE_ALARM."""
    return chisquare(counts).pvalue < FALSE_ALARM


def test_row_mean_batches_have_the_asked_size_until_the_matrix_is_used_up():
    world = BestMeanWorld(n_arms=5, n_examples=7)
    sizes = [len(batch) for batch, _ in world.rounds(world.selector("row-mean", batch_size=8))]
    assert sizes == [8, 8, 8, 8, 3]


@pytest.mark.statistical
def test_row_mean_draws_every_free_pair_equally_often_though_rows_differ_in_length():
    counts, config = np.zeros((3, 8)), BestMeanConfig(n_arms=3, n_examples=8, batch_size=4)
    for seed in range(SEEDS):
        selector = RowMean(config)
        selector.tell(Batch([0] * 6, range(6)), [0.5] * 6)
        batch = selector.ask(round_rng(seed, 0))
        counts[batch.arms, batch.examples] += 1
    assert not counts[0, :6].any()
    assert not is_uneven(np.delete(counts.ravel(), range(6)))


@pytest.mark.statistical
def test_the_check_catches_rows_drawn_before_pairs():
    counts = np.zeros((3, 8))
    for seed in range(SEEDS):
        rng = round_rng(seed, 0)
        for arm in rng.integers(3, size=4):
            counts[arm, rng.integers(6, 8) if arm == 0 else rng.integers(8)] += 1
    assert is_uneven(np.delete(counts.ravel(), range(6)))


@pytest.mark.parametrize(("batch_size", "columns"), [(1, 1), (4, 1), (7, 1), (8, 2), (13, 3)])
def test_filled_subset_asks_as_many_whole_examples_as_fit_and_at_least_one(batch_size, columns):
    world = BestMeanWorld(n_arms=4, n_examples=6)
    for batch, _ in world.rounds(world.selector("filled-subset", batch_size=batch_size)):
        examples, sizes = np.unique(batch.examples, return_counts=True)
        assert set(sizes) == {4}
        assert len(examples) == min(columns, 6)


def test_filled_subset_passes_over_arms_that_are_set_aside_and_fits_more_examples():
    world = BestMeanWorld(n_arms=4, n_examples=30)
    world.scores[1] = np.nan
    batches = [batch for batch, _ in world.rounds(world.selector("filled-subset", batch_size=6))]
    assert [set(batch.arms) for batch in batches] == [{0, 1, 2, 3}] * 8 + [{0, 2, 3}] * 11
    assert [len(batch) for batch in batches] == [4] * 8 + [6] * 11


def test_filled_subset_completes_an_example_that_was_told_in_part():
    selector = create_selector("filled-subset", n_arms=3, n_examples=2)
    selector.tell(Batch([0, 1], [1, 1]), [0.5, 0.5])
    batch = selector.ask(round_rng(0, 0))
    assert set(zip(batch.arms, batch.examples, strict=True)) == {(2, 1), (0, 0), (1, 0), (2, 0)}


def test_only_the_budget_cuts_an_example_short():
    world = BestMeanWorld(n_arms=4, n_examples=6)
    sizes = [len(batch) for batch, _ in world.rounds(world.selector("filled-subset", budget=10))]
    assert sizes == [4, 4, 2]


@pytest.mark.statistical
def test_filled_subset_draws_examples_uniformly():
    counts, config = np.zeros(7), BestMeanConfig(n_arms=2, n_examples=7, batch_size=4)
    for seed in range(SEEDS):
        counts[FilledSubset(config).ask(round_rng(seed, 0)).examples] += 1
    assert not is_uneven(counts)
    assert is_uneven(np.sort(counts) * np.linspace(0.8, 1.2, 7))


class Takes:
    """A generator whose draws begin at a place of what it draws from."""

    def __init__(self, place):
        self._place = place

    def choice(self, values, size, replace):
        return np.roll(values, -self._place)[:size]


@pytest.mark.parametrize("name", ["filled-subset", "halving"])
def test_where_the_budget_ends_in_an_example_whom_it_leaves_out_has_nothing_to_do_with_which_it_is(name):
    """Each arm that is asked is asked on each of its free examples equally often."""
    counts = np.zeros((2, 4))
    for place in range(4):
        selector = create_selector(name, n_arms=2, n_examples=4, budget=3, batch_size=4)
        selector.tell(Batch([0, 0], [0, 1]), [0.5, 0.5])
        batch = selector.ask(Takes(place))
        assert len(batch) == 1
        counts[batch.arms, batch.examples] += 1
    assert len(set(counts[0, 2:])) == len(set(counts[1])) == 1

"""Tests of two arms on new examples: exact values, a slow literal version, properties, and error rates."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import beta, binomtest

from tests.benchmarks import new_examples as bench
from winnow.algorithms import new_examples
from winnow.algorithms.bounds import averaged_bets
from winnow.algorithms.new_examples import (
    BestThere,
    PairedSample,
    Row,
    best_there,
    clustered_sample,
    difference_interval,
    is_above,
    is_higher,
    paired_sample,
    sign_test,
)

NONE = PairedSample(None, begins_binary=False)


def sample_of(differences, *, binary=True, early=()):
    return PairedSample(np.array(differences, dtype=float), binary, [np.array(each) for each in early])


@pytest.mark.parametrize("gains", range(0, 12))
@pytest.mark.parametrize("losses", [0, 1, 5, 40])
def test_of_0_1_scores_the_sign_test_is_mcnemars(gains, losses):
    differences = np.array([1.0] * gains + [-1.0] * losses + [0.0] * 7)
    if gains + losses == 0:
        assert sign_test(differences) == 1.0
        return
    exact = binomtest(gains, gains + losses, alternative="greater").pvalue
    assert sign_test(differences) == pytest.approx(exact, rel=1e-12)


def test_of_other_scores_small_gains_do_not_count_and_small_losses_count_whole():
    assert sign_test(np.array([1.0, 0.9, 0.5, -0.1])) == sign_test(np.array([1.0, -1.0]))


def test_the_first_example_chooses_the_test_and_is_in_none():
    """Five gains show a level of 1/32; of six the first is spent."""
    level = 1.0 / 32.0 / new_examples.SHARE_OF_COMPLETE
    assert is_higher(sample_of([1.0] * 6), level * 1.001)
    assert not is_higher(sample_of([1.0] * 5), level * 1.001)
    assert not is_higher(sample_of([1.0] * 6, binary=False), level * 1.001)  # bets need more


def literal_half_mixture(gains, losses):
    """Mean over the Beta distributions of the likelihood ratio, over shares above one half."""

    def part(size):
        density = beta(size, size).pdf
        ratio = lambda q: density(q) * (2.0 * q) ** gains * (2.0 * (1.0 - q)) ** losses  # noqa: E731
        return 2.0 * quad(ratio, 0.5, 1.0, limit=200, points=[0.5 + gains / (gains + losses) / 2.0])[0]

    return np.mean([part(size) for size in (0.5, 4.0, 32.0, 256.0)])


@pytest.mark.parametrize(("seed", "n_common"), [(0, 0), (1, 60), (2, 0), (3, 60), (4, 20)])
def test_at_adaptive_ends_it_is_the_literal_mixture_at_every_prefix(seed, n_common):
    rng = np.random.default_rng(seed)
    drawn = rng.choice([1.0, 0.0, -1.0], p=[0.4, 0.4, 0.2], size=60)
    drawn[0] = 1.0
    most = 0.0
    for end in range(1, 61):
        gains, losses = (drawn[:end] > 0).sum(), (drawn[:end] < 0).sum()
        share = new_examples.SHARE_OF_ORDER * (2.0 if end <= n_common else 1.0)
        most = max(most, share * literal_half_mixture(gains, losses))
    level = 1.0 / most
    sample = replace(NONE, in_order=[drawn], n_common=n_common)
    assert is_higher(sample, level * 1.0001)
    assert not is_higher(sample, level * 0.9999)


def literal_capital(values, mean, level, horizon):
    """Capital after each value of bets tuned to `horizon` values, one value after the other."""
    capital, found = 1.0, [1.0]
    for place, value in enumerate(values):
        before = values[:place]
        means = [(0.5 + sum(before[: each + 1])) / (each + 2) for each in range(place)]
        squares = [(x - m) ** 2 for x, m in zip(before, means, strict=True)]
        variance = (0.25 + sum(squares)) / (place + 1)
        bet = min(math.sqrt(2.0 * math.log(1.0 / level) / (horizon * variance)), 0.75 / mean)
        capital *= 1.0 + bet * (value - mean)
        found.append(capital)
    return found


@pytest.mark.parametrize("mean", [-0.3, 0.0, 0.1])
def test_bets_are_the_literal_ones(mean):
    rng = np.random.default_rng(3)
    differences, level = rng.uniform(-0.4, 0.9, size=40), 0.04
    tested, values = (mean + 1.0) / 2.0, ((differences + 1.0) / 2.0).tolist()
    early = new_examples.SHARE_OF_ORDER * level
    wealths = [literal_capital(values, tested, early, 16.0 * 4.0**power) for power in range(6)]
    capital = np.mean(wealths, axis=0)
    for factor in (1.0 - 1e-9, 1.0 + 1e-9):
        levels = np.full(40, factor / capital[1:].max())
        levels[0] = early  # bets look at this one
        assert new_examples._ever_above(np.array(values), tested, levels) == (factor > 1.0)
    assert is_above(replace(NONE, in_order=[differences]), mean, level) == (capital.max() >= 1.0 / early)
    late = new_examples.SHARE_OF_COMPLETE * level
    orders = [np.random.default_rng([40, number]).permutation(40) for number in range(8)]
    ends = [literal_capital([values[each] for each in order], tested, late, 40)[-1] for order in orders]
    found = averaged_bets.average_capital(np.array(values), tested, late)
    assert found == pytest.approx(np.mean(ends), rel=1e-9)
    assert is_above(sample_of(differences), mean, level) == (np.mean(ends) >= 1.0 / late)


@pytest.mark.parametrize("has_all", [True, False])
def test_the_interval_ends_where_bets_refute_no_more_and_turns_with_the_arms(has_all):
    differences = np.random.default_rng(5).choice([1.0, 0.0, -1.0], p=[0.3, 0.5, 0.2], size=200)
    sample = sample_of(differences) if has_all else replace(NONE, in_order=[differences, differences[:50]])
    lower, upper = difference_interval(sample, 0.05)
    assert -1.0 <= lower < differences.mean() < upper <= 1.0
    assert is_above(sample, lower - 1e-9, 0.025)
    assert not is_above(sample, lower + 1e-9, 0.025)
    assert difference_interval(sample.mirrored, 0.05) == pytest.approx((-upper, -lower), abs=1e-12)


def test_without_a_difference_nothing_is_known():
    assert difference_interval(NONE, 0.05) is None
    assert difference_interval(sample_of([]), 0.05) is None
    assert not is_higher(sample_of([]), 0.5)
    assert not is_above(NONE, -0.5, 0.5)


def test_what_was_shown_once_stays_shown_as_the_sample_grows():
    drawn = np.concatenate([np.ones(40), -np.ones(60)])
    shown = [is_higher(replace(NONE, in_order=[drawn[:end]]), 0.05) for end in range(101)]
    assert not shown[5]
    assert shown[40:] == [True] * 61
    assert not is_higher(replace(NONE, in_order=[-drawn]), 0.05)


def row(order, scores, n=4):
    asked, found = np.zeros(n, dtype=bool), np.full(n, np.nan)
    asked[order] = True
    found[order] = scores
    return Row(np.array(order), found, asked)


def test_a_pair_is_sampled_in_the_order_of_either_arm_until_the_other_lacks_one():
    ours, theirs = row([2, 0, 1], [1.0, 1.0, 0.0]), row([0, 3, 2], [0.0, 1.0, 0.0])
    found = paired_sample(ours, theirs, np.arange(4), are_drawn=True)
    assert found.complete is None
    assert [each.tolist() for each in found.in_order] == [[1.0, 1.0], [1.0]]
    assert found.n_common == 0
    assert paired_sample(ours, theirs, np.arange(4), are_drawn=False).in_order == []


def test_a_pair_that_was_asked_on_all_is_complete_without_its_unscored_ones():
    ours, theirs = row([2, 0, 1, 3], [1.0, np.nan, 0.0, 0.25]), row([0, 1, 3, 2], [0.0, 1.0, 1.0, 0.0])
    found = paired_sample(ours, theirs, np.array([0, 2, 1, 3]), are_drawn=True)
    assert (found.complete.tolist(), found.begins_binary) == ([1.0, -1.0, -0.75], True)
    assert [each.tolist() for each in found.in_order] == [[1.0, -1.0, -0.75], [-1.0, -0.75, 1.0]]
    assert not paired_sample(ours, theirs, np.array([3, 2, 1, 0]), are_drawn=True).begins_binary


def test_examples_that_both_drew_in_one_order_are_counted_but_for_unscored_ones():
    ours, theirs = row([2, 0, 1], [1.0, np.nan, 0.0]), row([2, 0, 3, 1], [0.0, 1.0, 0.0, 0.0])
    found = paired_sample(ours, theirs, np.arange(4), are_drawn=True)
    assert [each.tolist() for each in found.in_order] == [[1.0, 0.0], [1.0]]
    assert found.n_common == 1
    assert paired_sample(ours, ours, np.arange(4), are_drawn=True).n_common == 2


def test_an_arm_is_excluded_by_any_other_at_the_level_of_those_that_hold_the_best():
    levels = {}

    def shown(*pairs):
        def is_shown(first, second, level):
            levels[first, second] = level
            return (first, second) in pairs

        return is_shown

    assert best_there(3, [0, 1, 2], frozenset(), 0.06, shown((1, 2))) == BestThere((0, 1), is_better=False)
    assert set(levels.values()) == {0.03}
    beaten = shown((1, 2), (1, 0))
    assert best_there(3, [0, 1, 2], frozenset(), 0.06, beaten) == BestThere((1,), is_better=True)
    assert levels[1, 0] == levels[1, 2] == 0.02
    assert best_there(3, [0], frozenset(), 0.06, beaten).candidates == (0, 1, 2)
    # (1, 2) and (2, 0): 1 alone is left, but is not shown to be better than 0.
    assert best_there(3, [0, 1, 2], frozenset(), 0.06, shown((1, 2), (2, 0))) == BestThere(
        (1,), is_better=False
    )


def test_of_a_silent_arm_nothing_is_shown_so_that_none_is_better_than_every_other():
    always = lambda first, second, level: first == 1  # noqa: E731
    found = best_there(3, [0, 1, 2], frozenset({2}), 0.06, always)
    assert found == BestThere((1, 2), is_better=False)
    assert best_there(3, [0, 1, 2], frozenset({1}), 0.06, always).candidates == (0, 1, 2)


@pytest.mark.parametrize("selector", ["champion", "race"])
def test_campaigns_that_end_when_they_are_sure_are_wrong_no_more_often_than_promised(selector):
    """40 campaigns; at a true rate of 15%, 18 wrong ones have probability below 1e-5."""
    wrong = sum(
        bench.campaign_errs(selector, 16, 4, 60, np.random.default_rng([1, seed])) for seed in range(40)
    )
    assert wrong < 18


def test_statements_on_new_examples_are_wrong_no_more_often_than_promised():
    """500 tables each; at a true rate of 5%, 46 wrong ones have probability below 1e-4."""
    for is_wrong, n_arms in ((bench.excludes_the_best, 2), (bench.names_a_better_one, 3)):
        wrong = sum(is_wrong(n_arms, 100, 0.3, 0.6, np.random.default_rng([2, seed])) for seed in range(500))
        assert wrong < 46
    wrong = sum(
        bench.any_interval_misses(2, 60, 0.3, 0.6, np.random.default_rng([3, seed])) for seed in range(200)
    )
    assert wrong < 25


def test_broken_variants_are_caught():
    """Of 400: the level of K - 1 pairs for a pair that the data chose; a fixed size at a chosen end."""
    chosen = sum(
        bench.chosen_pair_at_the_level_of_all(20, 300, np.random.default_rng([4, i])) for i in range(400)
    )
    assert chosen > 46
    ended = sum(bench.mcnemar_at_any_end(100, 0.2, np.random.default_rng([5, i])) for i in range(400))
    assert ended > 110


def literal_ratio_capital(sums, sizes, mean, level, order):
    """Capital of bets on clusters in one order, against "the mean per example is at most `mean`"."""
    largest, capital = max(sizes), 1.0
    shares = [sums[each] / largest - (sizes[each] / largest - 1.0) / 2.0 for each in order]
    for place, each in enumerate(order):
        before = shares[:place]
        means = [(0.5 + sum(before[: at + 1])) / (at + 2) for at in range(place)]
        squares = [(x - m) ** 2 for x, m in zip(before, means, strict=True)]
        variance = (0.25 + sum(squares)) / (place + 1)
        bet = min(math.sqrt(2.0 * math.log(1.0 / level) / (len(sums) * variance)), 0.75 / mean)
        capital *= 1.0 + bet * (sums[each] - mean * sizes[each]) / largest
    return capital


def test_the_interval_of_clusters_ends_where_literal_bets_refute_no_more():
    rng = np.random.default_rng(6)
    sizes = rng.integers(1, 8, size=40)
    sums = rng.binomial(sizes, 0.7).astype(float)
    lower, upper = averaged_bets.ratio_interval(sums, sizes, 0.1)
    assert 0.0 < lower < sums.sum() / sizes.sum() < upper < 1.0
    orders = [np.random.default_rng([40, number]).permutation(40) for number in range(8)]

    def capital(sums, mean):
        return np.mean([literal_ratio_capital(sums, sizes, mean, 0.05, order) for order in orders])

    for those, end in ((sums, lower), (sizes - sums, 1.0 - upper)):
        assert capital(those, end - 1e-6) > 20.0 > capital(those, end + 1e-6)


def test_clusters_of_one_example_are_examples():
    differences = np.random.default_rng(2).choice([1.0, 0.0, -1.0], size=60, p=[0.5, 0.3, 0.2])
    alone = clustered_sample(differences, np.arange(60), np.arange(60))
    ends = difference_interval(alone, 0.05)
    assert ends == pytest.approx(difference_interval(sample_of(differences), 0.05), abs=1e-9)
    scores = (differences > 0).astype(float)
    as_ratio = averaged_bets.ratio_interval(scores, np.ones(60, dtype=int), 0.05)
    ours = averaged_bets.average_capital(scores, as_ratio[0], 0.025)
    assert ours == pytest.approx(1.0 / 0.025, rel=1e-6)


def test_a_sample_of_clusters_has_their_sums_in_a_given_order_without_what_is_unscored():
    differences = np.array([1.0, -1.0, np.nan, 1.0, 0.5, np.nan])
    found = clustered_sample(differences, np.array([0, 1, 1, 0, 0, 2]), np.array([2, 1, 0]))
    assert found.complete.tolist() == [-1.0 / 3.0, 2.5 / 3.0]
    assert (found.sizes.tolist(), found.n_examples, found.mean) == ([1, 3], 4, pytest.approx(1.5 / 4.0))
    assert clustered_sample(np.full(2, np.nan), np.array([0, 0]), np.array([0])).complete is None


def test_of_clusters_statements_are_wrong_no_more_often_than_promised_and_by_example_too_often():
    """200 tables each; at a true rate of 10%, 40 wrong ones have probability below 1e-4; at 5%, 25."""

    def wrong(by_cluster):
        return sum(
            bench.clusters_err(5, 300, 20, by_cluster, np.random.default_rng([7, i])) for i in range(200)
        )

    assert wrong(True) < 40 < wrong(False)
    assert sum(bench.ratio_errs(300, 20, np.random.default_rng([8, seed])) for seed in range(200)) < 25

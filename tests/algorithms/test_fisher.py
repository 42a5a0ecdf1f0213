"""Fisher's exact test for two counts out of the same number."""

import math

import pytest
from scipy import stats

from winnow.algorithms.bounds.binomial import larger_share_p_value
from winnow.algorithms.errors import InvalidParameter


@pytest.mark.parametrize("n", [1, 2, 5, 16])
def test_it_is_what_scipy_computes(n):
    for first in range(n + 1):
        for second in range(n + 1):
            table = [[second, n - second], [first, n - first]]
            expected = stats.fisher_exact(table, alternative="greater").pvalue
            assert larger_share_p_value(first, second, n) == pytest.approx(expected, rel=1e-12)


def test_by_hand_five_of_sixteen_are_no_change_and_six_are():
    assert larger_share_p_value(0, 5, 16) == math.comb(16, 5) / math.comb(32, 5)
    assert larger_share_p_value(0, 6, 16) < 0.01 < larger_share_p_value(0, 5, 16)


def test_more_changes_are_never_less_significant():
    for first in range(17):
        values = [larger_share_p_value(first, second, 16) for second in range(17)]
        assert values == sorted(values, reverse=True)
        assert values[0] == 1.0


@pytest.mark.parametrize("share", [0.01, 0.1, 0.3, 0.5, 0.9])
def test_two_equal_shares_are_told_apart_at_most_as_often_as_the_level_says(share):
    """Exactly, over all pairs of counts; a test without the first count would fail it."""

    def alarm(p_value):
        chance = stats.binom.pmf(range(17), 16, share)
        return sum(
            chance[first] * chance[second]
            for first in range(17)
            for second in range(17)
            if p_value(first, second, 16) < 0.01
        )

    assert alarm(larger_share_p_value) <= 0.01
    if share >= 0.3:
        assert alarm(lambda first, second, n: larger_share_p_value(0, second, n)) > 0.1


@pytest.mark.parametrize(("counts", "name"), [((-1, 0, 4), "first"), ((0, 5, 4), "second"), ((0, 0, 0), "n")])
def test_counts_that_cannot_be_are_refused(counts, name):
    with pytest.raises(InvalidParameter, match=f"^{name} must be "):
        larger_share_p_value(*counts)

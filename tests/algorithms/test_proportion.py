"""The interval of a probability, against tails that are added up one by one."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.algorithms.bounds.binomial import proportion_interval


def at_least(count, trials, p):
    return sum(math.comb(trials, k) * p**k * (1 - p) ** (trials - k) for k in range(count, trials + 1))


@given(trials=st.integers(1, 40), share=st.floats(0, 1), alpha=st.sampled_from([0.2, 0.05, 0.01]))
def test_at_an_end_what_was_seen_has_half_of_the_error_probability(trials, share, alpha):
    count = round(share * trials)
    lower, upper = proportion_interval(count, trials, alpha)
    assert lower <= count / trials <= upper
    if count > 0:
        assert at_least(count, trials, lower) == pytest.approx(alpha / 2)
    if count < trials:
        assert 1 - at_least(count + 1, trials, upper) == pytest.approx(alpha / 2)


def test_nothing_and_everything_reach_the_ends_of_the_unit_interval():
    assert proportion_interval(0, 10, 0.05)[0] == 0.0
    assert proportion_interval(10, 10, 0.05)[1] == 1.0


@pytest.mark.parametrize("p", [0.02, 0.3, 0.5])
def test_it_holds_as_often_as_it_says_for_every_probability(p):
    """Exactly: the chance of the counts whose interval misses p."""
    missed = 0.0
    for count in range(31):
        lower, upper = proportion_interval(count, 30, 0.05)
        if not lower <= p <= upper:
            missed += math.comb(30, count) * p**count * (1 - p) ** (30 - count)
    assert missed <= 0.05

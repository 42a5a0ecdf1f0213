"""The difference that a benchmark shows on new examples, against probabilities added up one by one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.algorithms.new_examples import (
    SHARE_OF_COMPLETE,
    PairedSample,
    examples_needed,
    is_higher,
    least_difference,
)

ALPHA = 0.05


def literal_p_value(wins, count):
    """One-sided, of a fair coin, by adding up all that are at least as many."""
    return sum(math.comb(count, k) / 2**count for k in range(wins, count + 1))


@given(
    n=st.integers(1, 60),
    n_arms=st.sampled_from([2, 5, 20]),
    alpha=st.sampled_from([0.2, 0.05, 0.01]),
    share=st.floats(0.0, 1.0),
)
def test_the_difference_is_the_first_that_the_sign_test_takes(n, n_arms, alpha, share):
    found = least_difference(n, n_arms, alpha, share)
    count, level = min(round(share * n), n - 1), SHARE_OF_COMPLETE * alpha / (n_arms - 1)
    taken = [wins for wins in range(count + 1) if 2 * wins >= count and literal_p_value(wins, count) <= level]
    assert found == (None if not taken else (2 * taken[0] - count) / n)


@pytest.mark.parametrize(("n", "n_arms"), [(100, 2), (300, 5), (1000, 20)])
def test_the_claims_take_that_difference_and_not_the_next_smaller_one(n, n_arms):
    count = round(0.18 * n)
    gains = round((least_difference(n, n_arms, ALPHA, 0.18) * n + count) / 2)

    def shown(gains):
        values = np.zeros(n)  # the first of them chooses the test
        values[1 : 1 + gains], values[1 + gains : 1 + count] = 1.0, -1.0
        return is_higher(PairedSample(values, True), ALPHA / (n_arms - 1))

    assert (shown(gains), shown(gains - 1)) == (True, False)


def test_more_examples_show_less_and_those_that_are_needed_show_it():
    found = [least_difference(n, 5, ALPHA, 0.18) for n in (100, 300, 1000, 3000, 10_000)]
    assert found == sorted(found, reverse=True)
    for difference in (0.01, 0.02, 0.1):
        needed = examples_needed(difference, 5, ALPHA, 0.18)
        assert least_difference(needed, 5, ALPHA, 0.18) <= difference
        assert least_difference(needed // 2, 5, ALPHA, 0.18) > difference


@pytest.mark.parametrize("n_examples", [1, 2, 5])
def test_a_few_examples_show_nothing(n_examples):
    assert least_difference(n_examples, 2, ALPHA, 1.0) is None


def test_what_takes_too_many_examples_has_no_number():
    assert examples_needed(1e-5, 5, ALPHA, 0.18) is None

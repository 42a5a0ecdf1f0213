"""The difference that a sign test needs, against probabilities that are added up one by one."""

import math

from hypothesis import given
from hypothesis import strategies as st

from winnow.algorithms.bounds.binomial import difference_for_new_examples


def literal_p_value(wins, count):
    """Two-sided, of a fair coin, by adding up all that is no likelier."""
    chances = [math.comb(count, k) / 2**count for k in range(count + 1)]
    return sum(each for each in chances if each <= chances[wins] * (1 + 1e-12))


@given(
    n=st.integers(1, 60),
    level=st.sampled_from([0.2, 0.05, 0.01]),
    share=st.floats(0.0, 1.0),
)
def test_the_difference_on_new_examples_is_the_first_that_the_sign_test_takes(n, level, share):
    found = difference_for_new_examples(n, level, share)
    count = round(share * n)
    taken = [
        wins for wins in range(count + 1) if 2 * wins >= count > 0 and literal_p_value(wins, count) <= level
    ]
    assert found == (None if not taken else (2 * taken[0] - count) / n)

"""The differences of 0/1 scores that a benchmark can show on new examples, before anything is scored."""

import math

import numpy as np
from scipy.special import betainc

from winnow.algorithms.new_examples.paired_sample import SHARE_OF_COMPLETE


def least_difference(n_examples: int, n_arms: int, alpha: float, disagreement: float) -> float | None:
    """Smallest difference of two arms that excludes the worse one as the best on new examples.

    Both are scored on every example, and their scores are 0 or 1: `is_higher` then is McNemar's exact test,
    at `SHARE_OF_COMPLETE` of the level alpha / (K - 1) of an exclusion. The first example only chooses the
    test, so that one fewer counts.

    Args:
        n_examples: n, at least 1.
        n_arms: K, at least 2.
        alpha: Error probability of the statement on all arms, in (0, 1).
        disagreement: Share of the examples on which exactly one of the two is right, in [0, 1].

    Returns:
        None if no split of the examples on which they disagree is uneven enough.
    """
    level = SHARE_OF_COMPLETE * alpha / (n_arms - 1)
    count = min(round(disagreement * n_examples), n_examples - 1)
    gains = np.arange(math.ceil(count / 2), count + 1)
    # As in `sign_test`; no gains at all, of no disagreement, show nothing.
    p_values = np.where(gains > 0, betainc(np.maximum(gains, 1), count - gains + 1, 0.5), 1.0)
    found = gains[p_values <= level]
    return None if not len(found) else float(2 * found[0] - count) / n_examples


MOST_EXAMPLES = 10_000_000


def examples_needed(difference: float, n_arms: int, alpha: float, disagreement: float) -> int | None:
    """About how many examples show a difference: twice that many show it, and half as many do not.

    Args:
        difference: In (0, disagreement].
        n_arms: See `least_difference`.
        alpha: See `least_difference`.
        disagreement: See `least_difference`.

    Returns:
        None if that is more than `MOST_EXAMPLES`.
    """

    def is_shown(n_examples: int) -> bool:
        least = least_difference(n_examples, n_arms, alpha, disagreement)
        return least is not None and least <= difference

    high = 1
    while not is_shown(high):
        if (high := 2 * high) > MOST_EXAMPLES:
            return None
    low = high // 2
    while high - low > max(1, low // 1000):
        middle = (low + high) // 2
        low, high = (low, middle) if is_shown(middle) else (middle, high)
    return high

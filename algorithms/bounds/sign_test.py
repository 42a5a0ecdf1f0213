"""How far apart two means of scores of 0 and 1 must be for a sign test to tell them apart."""

import math

from scipy.stats import binomtest


def difference_for_new_examples(n_examples: int, level: float, disagreement: float) -> float | None:
    """The smallest difference of two means of 0 and 1 scores that a sign test takes for more than chance.

    It is exact: on n examples, of which two candidates disagree on a given share, the two-sided binomial
    probability of a split as uneven by chance is at most `level` from this difference on. It speaks of new
    examples if those scored are a random sample of them, and of two candidates that were fixed beforehand.

    Args:
        n_examples: n.
        level: In (0, 1).
        disagreement: Share of the examples on which exactly one of the two is right, in [0, 1].

    Returns:
        None where no split of so few examples is uneven enough.
    """
    count = round(disagreement * n_examples)
    for wins in range(math.ceil(count / 2), count + 1):
        if wins > 0 and binomtest(wins, count).pvalue <= level:
            return (2 * wins - count) / n_examples
    return None

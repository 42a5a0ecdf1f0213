"""The number of comparisons of the two closest candidates that would probably settle an undecided answer.

An interval of a mean difference over n of N examples that are drawn without replacement has a width of about
sqrt(1/n - 1/N). The opponent could still be ahead by up to `reach` though it is `gap` behind; so the two are
told apart once that width is (gap + epsilon) / (gap + reach) of what it is now, if the gap stays. This is an
estimate and no bound: gaps move, and other candidates are asked too. Of 39 simulated races of two candidates
by `champion` (600 examples, gaps of 0.06 and 0.1), three in four took between a third and one and a half of
it, and the slowest 4.5 times as much.
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NextStep:
    """The comparisons that could tell the two closest candidates of an undecided campaign apart."""

    leading: str
    rival: str
    gap: float
    """The observed difference by which the opponent's mean is behind, above 0."""
    comparisons: int
    """Number of further comparisons of the two together, about, if the gap stays."""


def examples_to_separate(n: int, n_examples: int, *, gap: float, reach: float, epsilon: float) -> int | None:
    """The number of examples, about, that both candidates would have to be scored on.

    Args:
        n: Examples that both were scored on.
        n_examples: N, those of the benchmark.
        gap: Mean difference by which the opponent is behind, in [0, 1].
        reach: Difference by which it could still be ahead: the upper end of its difference's interval.
        epsilon: Difference by which it may be ahead without that mattering.

    Returns:
        A number in (n, N]; None if the two are told apart, there is no gap to go by, or the interval still is
        all that the examples which are left allow, so that its width says nothing of how it shrinks.
    """
    widest = (n_examples - n * (1.0 + gap)) / n_examples
    if not 0 < n < n_examples or gap + epsilon <= 0.0 or not epsilon < reach < widest:
        return None
    shrunk = ((gap + epsilon) / (gap + reach)) ** 2
    return math.ceil(1.0 / (1.0 / n_examples + (1.0 / n - 1.0 / n_examples) * shrunk))

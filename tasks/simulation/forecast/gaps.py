"""The smallest gap in mean that a campaign can separate on its own examples."""

import math
from collections.abc import Callable

LEVEL = 0.05
"""Of the test on new examples where the campaign asks for no delta."""

POWER = 0.9
"""Share of runs in which a gap that can be separated is: decided within the budget, for the right winner."""

STEPS = 5
"""Of the bisection: the factor between the gap that is reported and the next lower one that was tried is
(n / 2) ** (1 / 2 ** STEPS), 1.2 for 600 examples and 1.3 for 12 000."""


def smallest_separated(separates: Callable[[float], bool], n_examples: int, most: float) -> float | None:
    """The smallest gap that is separated, by bisection on a logarithmic scale.

    Args:
        separates: Whether a gap in mean, in (0, 1), is separated; taken to be true above any gap where it is.
        n_examples: n; gaps below 1 / n are not tried, as means of scores of 0 and 1 differ by no less.
        most: The largest gap that there can be.

    Returns:
        None where not even `most` is separated.
    """
    least = 1.0 / n_examples
    if not separates(most):
        return None
    low, high = least, most
    for _ in range(STEPS):
        middle = math.sqrt(low * high)
        middle = math.ceil(middle * n_examples - 1e-9) / n_examples  # a whole number of examples
        if not low < middle < high:
            break
        low, high = (low, middle) if separates(middle) else (middle, high)
    return high

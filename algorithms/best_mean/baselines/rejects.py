"""Schedules of halving: when the next arms are rejected, and which schedule a budget calls for.

Successive Rejects with A arms left, t common examples each, and a budget of B more pairs: with j arms left,
the worst one is rejected after m_j = max(t, 1, min(n, ceil(c / j))) examples each, j = A, ..., 2. c is the
largest integer whose cost, the sum over j of j (m_j - m_{j+1}) with m_{A+1} = t, is at most B. Published is
c = (T - K) / (1/2 + 1/2 + ... + 1/K) for K arms and T pairs, which can leave some of the budget, or exceed
the n examples; where m_j is capped at n, the pairs saved go to the other phases, as in the authors' program.
"""

from typing import Literal

import numpy as np

from winnow.algorithms.state.arrays import IntArray

Schedule = Literal["halving", "rejects"]
"""Action of `Halving` at the end of a phase: it keeps the better half, or rejects the worst arm."""


def rejection_target(n_arms: int, told: int, n_examples: int, left: int) -> int:
    """Number of common examples of each arm after which the first of some arms is rejected.

    Args:
        n_arms: A, at least 2.
        told: t, those that each arm has already.
        n_examples: n.
        left: B, pairs that can still be proposed.
    """
    low, high = 0, n_arms * n_examples  # the cost of the first is affordable, that of the second is not
    if _cost(high, n_arms, told, n_examples) <= left:
        return n_examples
    while high - low > 1:
        middle = (low + high) // 2
        if _cost(middle, n_arms, told, n_examples) <= left:
            low = middle
        else:
            high = middle
    return int(_targets(low, n_arms, told, n_examples)[0])


def schedule_for(n_arms: int, n_examples: int, budget: int | None) -> Schedule:
    """Schedule that errs less with a budget: "rejects" from where it completes the rows of the last two arms.

    With less, halving spends more on the last arms, and names the best one more often; with more, its phases
    are too few (docs/selectors.md has the measurements).
    """
    needed = _cost(2 * n_examples - 1, n_arms, 0, n_examples)
    return "rejects" if budget is None or budget >= needed else "halving"


def _targets(c: int, n_arms: int, told: int, n_examples: int) -> IntArray:
    """m_j for j = A, ..., 2, shape (A - 1,)."""
    sizes = np.arange(n_arms, 1, -1)
    found: IntArray = np.maximum(max(told, 1), np.minimum(n_examples, -(-c // sizes)))
    return found


def _cost(c: int, n_arms: int, told: int, n_examples: int) -> int:
    """Pairs that the phases take from here on."""
    added = np.diff(_targets(c, n_arms, told, n_examples), prepend=told)
    return int((np.arange(n_arms, 1, -1) * added).sum())

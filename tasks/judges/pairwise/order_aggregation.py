"""Rules by which the verdicts of both orders of two answers, of repeats and of judges become one value."""

from collections.abc import Sequence
from math import fsum
from typing import Literal

OrderAggregation = Literal["tie", "mean"]
"""The rule by which the two orders of a question become one value."""

Aggregation = Literal["majority", "mean"]
"""The rule by which several values of the same rank (repeats, then judges) become one."""


def aggregate_orders(values: Sequence[float], rule: OrderAggregation) -> float:
    """One value from the two orders of a question, or from the only one that was played.

    Under "tie", orders that do not prefer the same answer, or of which only one prefers neither, are a tie;
    those that agree keep their mean. Under "mean" it is the mean always. A judge that prefers a place
    and not an answer comes out as one half under both.
    """
    if rule == "tie" and len({side(value) for value in values}) > 1:
        return 0.5
    return _mean(values)


def aggregate(values: Sequence[float], rule: Aggregation) -> float:
    """One value from one or more; a single one stands as it is.

    Under "majority" each value above one half is a vote for A and each below it one for B; whoever has more
    than half of all values wins, and otherwise it is a tie.
    """
    if rule == "mean" or len(values) == 1:
        return _mean(values)
    sides = [side(value) for value in values]
    for winner in (1, -1):
        if 2 * sides.count(winner) > len(sides):
            return (1 + winner) / 2
    return 0.5


def side(value: float) -> int:
    """1 where A is preferred, -1 where B is, 0 where neither is."""
    return (value > 0.5) - (value < 0.5)


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)

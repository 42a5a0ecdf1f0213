"""From the scores of several readings or judges to one."""

from collections import Counter
from collections.abc import Sequence
from math import fsum
from statistics import median
from typing import Literal

from winnow.tasks.judges.pointwise.points import Points

Aggregation = Literal["mean", "median", "majority"]


def aggregate(scores: Sequence[float], rule: Aggregation, points: Points) -> float:
    """One score of one or more; a single one stands as it is.

    Under "majority" each score is a vote for the nearest point of the scale; where several points have the
    most votes, it is the mean of these.
    """
    if len(scores) == 1:
        return scores[0]
    if rule == "median":
        return median(scores)
    if rule == "mean":
        return min(1.0, fsum(scores) / len(scores))
    votes = Counter(map(points.nearest, scores))
    most = max(votes.values())
    leading = [point for point, count in votes.items() if count == most]
    return min(1.0, fsum(leading) / len(leading))

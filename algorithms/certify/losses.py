"""What an outcome says of a risk: human and autoevaluated losses as one unbiased observation."""

from typing import Literal

import numpy as np

from algorithms.arrays import FloatArray

HUMAN, AUTOEVALUATED, UNLABELLED = range(3)
"""Columns of the outcomes: the human loss l on a labelled example, the autoevaluator's loss a on it, and u,
the mean of the autoevaluator's losses on r unlabelled examples that belong to this labelled one alone."""

UNSCORED_AS: dict[Literal["worst", "best"], tuple[float, float, float]] = {
    "worst": (1.0, 0.0, 1.0),
    "best": (0.0, 1.0, 0.0),
}


def effective_losses(
    outcomes: FloatArray, factors: FloatArray, unscored: Literal["worst", "best"] = "worst"
) -> FloatArray:
    """The losses l + rho (u - a), for each reliance factor rho.

    If labelled and unlabelled examples come from one population, u - a has mean zero and every effective loss
    has the risk as its mean, whatever the autoevaluator is worth. It lies in [-rho, 1 + rho].

    A loss that is missing may have been anything in [0, 1], and may be missing because of what it was. It is
    put at the end of [0, 1] that makes the effective loss largest ("worst") or smallest ("best"). A capital
    that bets on low losses is then never more than it would be with the true ones under the same bets, so
    what holds for complete losses holds for every way of losing some.

    Args:
        outcomes: Shape (..., 3), columns as above, in [0, 1], NaN where unscored.
        factors: rho, shape (S,), in [0, 1].
        unscored: Which end.

    Returns:
        Shape (..., S).

    Source: Park et al. (2025), equation (10), for complete losses.
    """
    complete = np.where(np.isnan(outcomes), UNSCORED_AS[unscored], outcomes)
    surprise = complete[..., UNLABELLED] - complete[..., AUTOEVALUATED]
    losses: FloatArray = complete[..., HUMAN, np.newaxis] + factors * surprise[..., np.newaxis]
    return losses

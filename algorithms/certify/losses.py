"""What an outcome says of a risk: human and autoevaluated losses as one unbiased observation."""

from typing import Literal

import numpy as np

from winnow.algorithms.state.arrays import FloatArray

HUMAN, AUTOEVALUATED, UNLABELLED, MISSING = range(4)
"""Columns of the outcomes: the human loss l on a labelled example, the autoevaluator's loss a on it, u, the
mean of the autoevaluator's losses on r unlabelled examples that belong to this labelled one alone, and the
share of these r losses that are missing; u is the mean of the others. Without the last column none is."""

End = Literal["worst", "best"]


def effective_losses(outcomes: FloatArray, factors: FloatArray, end: End = "worst") -> FloatArray:
    """The losses l + rho (u - a), for each reliance factor rho.

    If labelled and unlabelled examples come from one population, u - a has mean zero and every effective loss
    has the risk as its mean, whatever the autoevaluator is worth. It lies in [-rho, 1 + rho].

    A loss that is missing may have been anything in [0, 1], and may be missing because of what it was. Each
    is put at the end of [0, 1] that makes the effective loss largest ("worst": l = 1, a = 0, and 1 for every
    one of the r losses behind u that is missing, the others as they are) or smallest ("best": 0, 1 and 0). As
    rho is not negative, l + rho (u - a) grows with l and with each of the r losses, and falls in a: so the
    worst effective loss is no less than the true one, outcome by outcome, and is still at most 1 + rho. A
    factor 1 - lambda (l' - alpha) with a bet lambda >= 0 is then positive and no more than with the true loss
    in place of l', and the bets, functions of what was told before, are predictable for the true losses too:
    given all that came before, missing or not, the factor has a mean of at most 1 if the risk is alpha or
    more. What is proved for complete losses so holds for every way of losing some. The best ones serve tests
    that bet the other way.

    What was answered is no missing loss, even if it cannot be read: see `tasks.objectives.certify.scoring`.

    Args:
        outcomes: Shape (..., 3) or (..., 4), columns as above, in [0, 1], NaN where unscored. Nothing is
            known of u where it is NaN, or where the share of missing losses is NaN or 1.
        factors: rho, shape (S,), in [0, 1].
        end: Where missing losses are put.

    Returns:
        Shape (..., S).

    Source: Park et al. (2025), equation (10), for complete losses.
    """
    human, auto, unlabelled = outcomes[..., HUMAN], outcomes[..., AUTOEVALUATED], outcomes[..., UNLABELLED]
    missing = np.zeros_like(unlabelled) if outcomes.shape[-1] == MISSING else outcomes[..., MISSING]
    missing = np.where(np.isnan(unlabelled) | np.isnan(missing), 1.0, missing)
    high, low = (1.0, 0.0) if end == "worst" else (0.0, 1.0)
    human = np.where(np.isnan(human), high, human)
    auto = np.where(np.isnan(auto), low, auto)
    unlabelled = np.nan_to_num(unlabelled) * (1.0 - missing) + high * missing
    losses: FloatArray = human[..., np.newaxis] + factors * (unlabelled - auto)[..., np.newaxis]
    return losses

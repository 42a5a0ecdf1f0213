"""Consistency check of a best-mean decision against itself and the scores."""

from collections.abc import Callable

import numpy as np

from winnow.algorithms.best_mean.arm_status import ROUNDING
from winnow.algorithms.claims import ArmStatus
from winnow.algorithms.decision import Decision
from winnow.algorithms.errors import ImpossibleState
from winnow.algorithms.state.arrays import BoolArray, FloatArray

SETTLED: tuple[ArmStatus, ...] = ("best", "top", "tied", "chosen", "not-better")
"""Statuses that an arm can have only if the decision claims something."""


def check_possible(
    decision: Decision,
    least: FloatArray,
    most: FloatArray,
    fully_scored: BoolArray,
    *,
    by_intervals: bool = True,
) -> None:
    """Raise if a decision contradicts itself or the scores, in O(K).

    Args:
        decision: A decision on K arms.
        least: Shape (K,), means if every missing score were 0.
        most: Shape (K,), means if every missing score were 1.
        fully_scored: Shape (K,), arms with a score on every example.
        by_intervals: Whether arms are eliminated by their intervals rather than by separate tests.

    Raises:
        ImpossibleState: If the known scores lie outside [0, 1] on average; an interval is empty or reaches
            beyond what the known scores allow; an estimate lies outside its interval; or a status
            contradicts any of these.
    """
    # `fmax` and `fmin` ignore NaN
    lower, upper = np.fmax(decision.lower, least), np.fmin(decision.upper, most)
    estimates = decision.estimates
    _refuse(
        (least < -ROUNDING) | (most > 1.0 + ROUNDING) | (least > most + ROUNDING),
        lambda arm: f"its scores allow means from {least[arm]:.9g} to {most[arm]:.9g}",
    )
    _refuse(
        (decision.lower < least - ROUNDING) | (decision.upper > most + ROUNDING),
        lambda arm: (
            f"its interval from {decision.lower[arm]:.9g} to {decision.upper[arm]:.9g} reaches beyond"
            f" {least[arm]:.9g} to {most[arm]:.9g}, the means that its scores allow"
        ),
    )
    _refuse(
        lower > upper + ROUNDING,
        lambda arm: f"the lower end {lower[arm]:.9g} of its interval is above the upper end {upper[arm]:.9g}",
    )
    _refuse(
        (estimates < lower - ROUNDING) | (estimates > upper + ROUNDING),
        lambda arm: (
            f"its estimate {estimates[arm]:.9g} lies outside its interval from {lower[arm]:.9g}"
            f" to {upper[arm]:.9g}"
        ),
    )
    _check_statuses(decision, lower, upper, fully_scored, by_intervals)


def _check_statuses(
    decision: Decision, lower: FloatArray, upper: FloatArray, fully_scored: BoolArray, by_intervals: bool
) -> None:
    status, n_arms = np.array(decision.status), len(lower)
    is_recommended = np.arange(n_arms) == decision.best
    highest = lower.max(initial=-np.inf, where=status != "dropped")
    is_settled = decision.claim.kind in ("exact", "proven")
    contradictions = [
        ("dropped", is_recommended, "yet it is recommended"),
        ("eliminated", is_recommended, "yet it is recommended"),
        ("eliminated", by_intervals & (upper >= highest), "yet its interval reaches that of every other arm"),
        ("best", ~is_recommended, "yet another arm is recommended"),
        ("tied", ~fully_scored, "yet not all of its examples are scored"),
        *((word, np.full(n_arms, not is_settled), "yet nothing is proven") for word in SETTLED),
    ]
    for word, contradicts, why in contradictions:
        for arm in np.flatnonzero((status == word) & contradicts)[:1].tolist():
            raise ImpossibleState(arm, f"its status is {word!r}, {why}")


def _refuse(is_wrong: BoolArray, difference: Callable[[int], str]) -> None:
    """Raise `ImpossibleState` for the first arm of a mask.

    Do nothing if the mask is empty.
    """
    if is_wrong.any():
        arm = int(is_wrong.argmax())
        raise ImpossibleState(arm, difference(arm))

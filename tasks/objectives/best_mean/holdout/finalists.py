"""Who is scored on the held-out examples: the winner, and the one that comes closest to it."""

import math
from collections.abc import Sequence

from winnow.tasks.queries.warnings import OUT


def finalists(best: int | None, estimates: Sequence[float | None], status: Sequence[str]) -> list[int]:
    """The best arm, then the one with the highest estimate of the others; as many as there are.

    Args:
        best: The arm that a decision names.
        estimates: By arm, None or NaN where unknown.
        status: By arm, see `algorithms.decision.ArmStatus`; those left out for good are no runners-up.
    """
    if best is None:
        return []
    rivals = [
        (-estimate, arm)
        for arm, (estimate, state) in enumerate(zip(estimates, status, strict=True))
        if arm != best and state not in OUT and estimate is not None and not math.isnan(estimate)
    ]
    return [best, *(arm for _, arm in sorted(rivals)[:1])]

"""`stopping.epsilon: auto`: a tolerance computed from the number of examples.

It is computed once, before the campaign begins.
"""

import math

from winnow.storage.objectives import traits_of
from winnow.tasks.errors import SpecError
from winnow.tasks.spec.campaign import CampaignSpec
from winnow.tasks.spec.selector_traits import GATE, PREFERS_COST

AUTO = "auto"

OF_1000 = 0.02
"""Epsilon for 1,000 examples.
It scales with 1 / sqrt(n), as the standard error of a difference does.
"""
LEAST, MOST = 0.01, 0.05

PLACE = "stopping.epsilon"


def auto_epsilon(n_examples: int) -> float:
    """The epsilon for a benchmark of n examples, in score units, to two decimals.

    Much smaller differences cost most of the comparisons, and say little about new examples.
    """
    return max(LEAST, round(min(MOST, OF_1000 * math.sqrt(1000.0 / n_examples)), 2))


def with_epsilon(spec: CampaignSpec, n_examples: int) -> CampaignSpec:
    """Replace `auto` by a number in a campaign's epsilon.

    Args:
        spec: A campaign.
        n_examples: Number of examples of its dataset, including held-out ones.

    Raises:
        SpecError: The campaign's question needs an explicit number.
    """
    if spec.stopping.epsilon != AUTO:
        return spec
    if why := why_a_number(spec.objective, spec.selector.name, spec.selector.params.get("prefer")):
        raise SpecError(f"{why}; write a number, such as {PLACE}: 0.02", path=PLACE)
    stopping = spec.stopping.model_copy(update={"epsilon": auto_epsilon(n_examples)})
    return spec.model_copy(update={"stopping": stopping})


def why_a_number(objective: str, selector: str, prefer: object) -> str | None:
    """Why the number of examples cannot determine the epsilon; None if it can.

    Args:
        objective: The campaign's objective.
        selector: Name of the campaign's selector.
        prefer: The selector's parameter `prefer`; None if it is not set.
    """
    if not traits_of(objective).scores_a_benchmark:
        return f"epsilon: {AUTO} is only for best-mean, and {objective} compares preferences"
    if selector == GATE:
        return (
            f"epsilon: {AUTO} does not apply to a gate, where it is how much worse than the baseline passes"
        )
    if selector == PREFERS_COST and prefer == "cost":
        return (
            f"epsilon: {AUTO} does not apply to prefer: cost, where it is how much worse a cheaper "
            "candidate may be"
        )
    return None

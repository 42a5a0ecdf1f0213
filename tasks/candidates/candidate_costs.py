"""Costs of candidates: one number for each, from the campaign's file."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.spec.selector_traits import PREFERS_COST

if TYPE_CHECKING:
    from winnow.tasks.candidates.candidates import Candidate
    from winnow.tasks.spec.campaign import CampaignSpec

PLACE = "selector.params.costs"


def check_costs(spec: "CampaignSpec", candidates: "Sequence[Candidate]") -> FloatArray | None:
    """Cost of each arm, shape (K,), for a selector that prefers cheaper arms; None for others.

    Raises:
        SpecError: If the costs are not a mapping from every candidate to a number of at least 0.
    """
    params = spec.selector.params
    if spec.selector.name != PREFERS_COST or not {"prefer", "costs"} & params.keys():
        return None
    costs = params.get("costs")
    if params.get("prefer") != "cost":
        if costs is None:
            return None
        raise SpecError("costs has no effect without `prefer: cost`; add it, or remove costs", path=PLACE)
    if not isinstance(costs, dict) or not all(map(_is_cost, costs.values())):
        raise SpecError("must map the name of each candidate to a number of at least 0", path=PLACE)
    found = given_costs(costs, [each.name for each in candidates], PLACE)
    return np.array(list(found.values()), dtype=np.float64)


def given_costs(costs: Mapping[str, float], names: Sequence[str], path: str) -> dict[str, float]:
    """Costs from a file, in the order of the names.

    Raises:
        SpecError: If the costs name an unknown candidate, or a candidate lacks one.
    """
    for name in costs:
        if name not in names:
            raise SpecError(unknown_name("candidate", str(name), names), path=path)
    if missing := [name for name in names if name not in costs]:
        raise SpecError(f"no cost for {', '.join(missing)}; add it", path=path)
    return {name: costs[name] for name in names}


def _is_cost(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and value >= 0.0

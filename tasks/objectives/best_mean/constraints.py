"""Constraints on the best candidate's means of metrics: checks, selector outcomes and words."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from winnow.algorithms.state.arrays import FloatArray
from winnow.storage.json_types import JsonObject
from winnow.storage.records.record_types import Values
from winnow.tasks.errors import SpecError, unknown_name
from winnow.tasks.spec.selector_traits import MEETS_CONSTRAINTS
from winnow.tasks.spec.stored_spec import Constraint, constraints_of

if TYPE_CHECKING:
    from winnow.tasks.spec.campaign import CampaignSpec

PLAIN = (("top_m", 1), ("prefer", "mean"), ("additions", "stated"))
"""Parameters that are incompatible with constraints, and their inactive values."""


def told_outcomes(
    constraints: Sequence[Constraint], scores: FloatArray, metrics: Sequence[Values]
) -> FloatArray:
    """Outcomes of B pairs for a selector, shape (B, 1 + J): the score, then the constrained values.

    Args:
        constraints: J of them.
        scores: Shape (B,).
        metrics: Values of each constraint's metric for each pair.
    """
    values = [[each.told(value) for each, value in zip(constraints, row, strict=True)] for row in metrics]
    return np.column_stack([scores, np.array(values, dtype=np.float64).reshape(len(scores), -1)])


def check_constraints(spec: "CampaignSpec") -> tuple[Constraint, ...]:
    """Check the constraints of a campaign.

    Raises:
        SpecError: If one names no metric, they contradict each other, or another setting is incompatible with
            constraints.
    """
    if not spec.constraints:
        return ()
    _check_question(spec)
    found = constraints_of({"constraints": [each.model_dump() for each in spec.constraints]})
    _check_metrics(found, [each.name for each in spec.metrics])
    return found


def params_of(constraints: Sequence[Constraint]) -> JsonObject:
    """The selector's parameter for the constraints; empty without constraints."""
    return {"constraints": np.array([each.least for each in constraints])} if constraints else {}


def _check_question(spec: "CampaignSpec") -> None:
    name, params = spec.selector.name, spec.selector.params
    if name != MEETS_CONSTRAINTS:
        raise SpecError(
            f"{name} compares all candidates by their scores and knows no constraints; choose selector "
            f"{MEETS_CONSTRAINTS}, or remove constraints",
            path="constraints",
        )
    if "constraints" in params:
        raise SpecError(
            "is made of the file's constraints; set them there, and remove it here",
            path="selector.params.constraints",
        )
    if spec.stopping.delta is None:
        raise SpecError(
            "constraints need delta, the chance that what is said of those that meet them is wrong; add it",
            path="stopping.delta",
        )
    if params.get("start") == "race":
        raise SpecError(
            "a race may be won by who meets no constraint; remove start or constraints",
            path="selector.params.start",
        )
    for key, plain in PLAIN:
        if params.get(key, plain) != plain:
            raise SpecError(
                f"{key} is not worked out for candidates that have to meet constraints; remove {key} or "
                "constraints",
                path=f"selector.params.{key}",
            )
    if spec.groups is not None:
        raise SpecError("constraints are not worked out with groups; remove one of them", path="groups")


def _check_metrics(constraints: Sequence[Constraint], metrics: Sequence[str]) -> None:
    for number, each in enumerate(constraints):
        if each.metric not in metrics:
            place = f"constraints[{number}].metric"
            raise SpecError(unknown_name("metric", each.metric, metrics), path=place)
    sides = Counter((each.metric, each.at_least is None) for each in constraints)
    for (metric, _), count in sides.items():
        if count > 1:
            raise SpecError(
                f"{metric} has {count} bounds on the same side; keep the stricter one", path="constraints"
            )
    at_most = {each.metric: each.at_most for each in constraints if each.at_most is not None}
    for each in constraints:
        most = at_most.get(each.metric)
        if each.at_least is not None and most is not None and each.at_least > most:
            raise SpecError(
                f"no mean of {each.metric} is {each.bound} and at most {most:g}; correct one of them",
                path="constraints",
            )

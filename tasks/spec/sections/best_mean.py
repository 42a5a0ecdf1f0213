"""How candidates are compared beyond plain means: by groups of examples, and under constraints."""

import sys
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from winnow.tasks.spec.sections.prompts import Name
from winnow.tasks.spec.spec_model import SpecModel

SHARED = ("equal", "size")


def _weights(value: object) -> object:
    """One complaint in place of one per type of a union; in YAML the name of a group may be a number."""
    if value in SHARED:
        return value
    if not isinstance(value, Mapping) or not value or not all(map(_is_weight, value.values())):
        raise ValueError("must be equal, size, or a number above 0 for each group, by name")
    return {str(key): float(each) for key, each in value.items()}


def _is_weight(value: object) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 < value <= sys.float_info.max  # a whole number may be too large for a float


class GroupsSpec(SpecModel):
    """Which examples are of one group, and what a candidate's means on the groups come to."""

    by: str = Field(min_length=1)
    """The field of an example whose value names its group."""
    objective: Literal["mean", "worst"] = "mean"
    """mean: the weighted mean of the groups' means; worst: the lowest of them."""
    weights: Annotated[Literal["equal", "size"] | dict[str, float], BeforeValidator(_weights)] = "equal"
    """For mean: "equal", by "size", which is the mean over all examples, or a number for each group."""

    @model_validator(mode="after")
    def _weighs_what_counts(self) -> Self:
        if self.objective == "worst" and self.weights != "equal":
            raise ValueError("weights are for objective: mean, the worst group counts alone; leave them out")
        return self


class ConstraintSpec(SpecModel):
    """A bound on a candidate's mean of one metric over all examples."""

    metric: Name
    """One of the file's metrics."""
    at_least: float | None = Field(default=None, gt=0.0, le=1.0)
    at_most: float | None = Field(default=None, ge=0.0, lt=1.0)

    @model_validator(mode="after")
    def _has_one_bound(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("give one of at_least and at_most; another bound is another constraint")
        return self

"""Groups of examples, and how their means decide which candidate is the best."""

from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from winnow.tasks.spec.spec_model import SpecModel


def _named_by_text(value: object) -> object:
    """In YAML the name of a group may be a number, or yes or no."""
    if isinstance(value, Mapping):
        return {str(key): each for key, each in value.items()}
    return value


Weights = (
    Literal["equal", "size"] | Annotated[dict[str, Annotated[float, Field(gt=0.0)]], Field(min_length=1)]
)


class GroupsSpec(SpecModel):
    """Which examples are of one group, and what a candidate's means on the groups come to."""

    by: str = Field(min_length=1)
    """The field of an example whose value names its group."""
    objective: Literal["mean", "worst"] = "mean"
    """mean: the weighted mean of the groups' means; worst: the lowest of them."""
    weights: Annotated[Weights, BeforeValidator(_named_by_text)] = "equal"
    """For mean: "equal", by "size", which is the mean over all examples, or a number for each group."""

    @model_validator(mode="after")
    def _weighs_what_counts(self) -> Self:
        if self.objective == "worst" and self.weights != "equal":
            raise ValueError("weights are for objective: mean, the worst group counts alone; leave them out")
        return self

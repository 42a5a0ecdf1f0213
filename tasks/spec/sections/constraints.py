"""What the means of metrics have to be, so that a candidate may be the best."""

from typing import Self

from pydantic import Field, model_validator

from winnow.tasks.spec.sections.prompts import Name
from winnow.tasks.spec.spec_model import SpecModel


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
